"""Submits a file for `run` and `submit`, with its progress shown."""

import json

from producer.cli.context import Session
from producer.cli.errors import SCHEMA_VERSION
from producer.cli.live import View
from producer.cli.params import SubmitChoice
from producer.load.detect import detect_kind
from producer.load.source import Source
from producer.options import SubmitOptions, SubmittedRun
from producer.submit import submit
from shared.names import Kind


class Submission:
    """One file on its way into the queue.

    Args:
        session: names the Redis.
        file: path, or `-` for stdin.
        choice: what the command line says.
    """

    def __init__(self, session: Session, file: str, choice: SubmitChoice) -> None:
        self._session = session
        self._choice = choice
        self.source = Source(file)

    def kind(self) -> Kind:
        """What the file describes.

        Raises:
            InputError: it cannot be read, or looks like nothing we know.
        """
        return self._choice.kind or detect_kind(self.source)

    def send(self, view: View) -> SubmittedRun:
        """Puts all of it into the queue, or nothing.

        Raises:
            InputError: the file breaks its contract.
            ProctorError: as `producer.submit.submit` says.
        """
        session, choice, settings = self._session, self._choice, self._session.settings
        options = SubmitOptions(
            idempotency_key=choice.idempotency_key,
            namespace=choice.namespace,
            summary_policy=choice.summary_policy,
            results_ttl_s=settings.results_ttl_s,
            max_backlog_items=settings.max_backlog_items,
            patience_s=settings.patience_s,
            on_progress=lambda items: view.loading(self.source.name, items),
            on_wait=view.say,
        )
        submitted = submit(session.ledger, session.publisher, self.source, kind=self.kind(), options=options)
        if submitted.duplicate:
            view.say(f"this key was submitted before: {submitted.run}")
        return submitted


def tell_run_id(session: Session, submitted: SubmittedRun) -> None:
    """Prints the id of a submitted run: alone on its line, or as a document."""
    if not session.options.json:
        session.output.data(submitted.run)
        return
    document = {
        "schema_version": SCHEMA_VERSION,
        "run_id": submitted.run,
        "kind": submitted.kind,
        "total": submitted.total,
        "threads": submitted.threads,
        "duplicate": submitted.duplicate,
        "exit": 0,
    }
    session.output.data(json.dumps(document))
