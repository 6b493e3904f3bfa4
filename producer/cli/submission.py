"""Submits a file for `run` and `submit`, with its progress shown."""

import json
from dataclasses import replace

from producer.cli.context import Session
from producer.cli.errors import SCHEMA_VERSION
from producer.cli.live.view import View
from producer.cli.options.case_options import ALSO_CASES, ALSO_QUERIES, read_case_choice, refuse_case_options
from producer.cli.options.model_options import read_live_run, refuse_model_options
from producer.cli.options.query_options import read_query_choice, read_query_options, refuse_query_options
from producer.cli.options.shared_options import SubmitChoice
from producer.load.detect import detect_kind
from producer.load.source import Source
from producer.options import CaseChoice, QueryChoice, SubmitOptions, SubmittedRun
from producer.submit import submit
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.kinds import CASES, QUERIES, TURNS, Kind


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

    def queries(self) -> QueryRun:
        """How queries are to be asked.

        Raises:
            UsageError: an option cannot be used, or the file describes something else.
            ConfigError: a variable of the environment cannot be used.
        """
        choice = self._choice
        if self.kind() == QUERIES and choice.words:
            return read_query_options(choice.words, in_flight=choice.in_flight)
        taken = ALSO_QUERIES if self.kind() == CASES else ()
        refuse_query_options(
            {name: value for name, value in choice.words.items() if name not in taken}, self.kind()
        )
        return QueryRun()

    def query_choice(self) -> QueryChoice:
        """Which queries are to be asked."""
        if self.kind() != QUERIES:
            return QueryChoice()
        return read_query_choice(self._choice.words, self._choice.case_words)

    def cases(self) -> CaseChoice:
        """How cases are to be run.

        Raises:
            UsageError: an option cannot be used, or the file describes something else.
        """
        choice = self._choice
        if self.kind() == CASES:
            return read_case_choice(
                choice.case_words, choice.model_words, choice.words, in_flight=choice.in_flight
            )
        taken = ALSO_CASES if self.kind() == QUERIES else ()
        refuse_case_options(
            {name: value for name, value in choice.case_words.items() if name not in taken}, self.kind()
        )
        return CaseChoice()

    def live(self) -> LiveRun | None:
        """How turns are to be answered; None: not by a model.

        Raises:
            UsageError: an option cannot be used, or the file describes something that asks no model.
        """
        choice = self._choice
        if self.kind() == TURNS:
            return read_live_run(choice.model_words, in_flight=choice.in_flight)
        if self.kind() == QUERIES:
            refuse_model_options(choice.model_words, self.kind())
        return None

    def options(self) -> SubmitOptions:
        """What the submit is told.

        Raises:
            UsageError: as `queries`, `live` and `cases` say.
        """
        session, choice, settings = self._session, self._choice, self._session.settings
        return SubmitOptions(
            idempotency_key=choice.idempotency_key,
            namespace=choice.namespace,
            summary_policy=choice.summary_policy,
            queries=self.queries(),
            query_choice=self.query_choice(),
            live=self.live(),
            cases=self.cases(),
            results_ttl_s=settings.results_ttl_s,
            max_backlog_items=settings.max_backlog_items,
            patience_s=settings.patience_s,
            on_warning=session.output.warn,
        )

    def send(self, view: View, *, is_attended: bool = False) -> SubmittedRun:
        """Puts all of it into the queue, or nothing.

        Args:
            view: told how far it is.
            is_attended: the caller stays until the run has ended, and sees it if Redis crashes within the
                second that its disk needs: the file is still there. Otherwise that second is waited for.

        Raises:
            InputError: the file breaks its contract.
            ProctorError: as `producer.submit.submit` says.
        """
        session = self._session
        if session.connection.risk:
            session.output.warn(f"{session.connection.risk}; `proctor doctor` says how to mend it")
        options = replace(
            self.options(),
            await_disk=not (is_attended and self.source.repeatable),
            on_progress=lambda items: view.loading(self.source.name, items),
            on_wait=view.say,
            on_warning=(lambda warning: view.say(f"warning: {warning}"))
            if session.output.live
            else session.output.warn,
        )
        session.require_broker()
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
        "kind": submitted.kind.name,
        "total": submitted.total,
        "threads": submitted.threads,
        "duplicate": submitted.duplicate,
        "exit": 0,
    }
    session.output.data(json.dumps(document))
