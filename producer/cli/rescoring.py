"""Judges the answers of a run again, for `rescore`."""

from pathlib import Path
from tempfile import TemporaryDirectory

from producer.cli.context import Session
from producer.cli.files import check_formats
from producer.cli.run_lookup import find_run
from producer.cli.shared_options import chosen
from producer.cli.submission import Submission
from producer.cli.work import WorkOptions, work
from producer.rescore import rewrite
from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.names import Kind


def rescore(session: Session, run: str, config: Path | None, options: WorkOptions) -> int:
    """Submits the stored answers of a run with criteria, and works the new run to its end.

    Args:
        session: names the Redis.
        run: the run's id.
        config: whose criteria are used; None: the run's own.
        options: how to work, and what to write.

    Raises:
        UnknownRunError: there is no such run.
        UsageError: it has no answers to judge, or cases are not written in a format.
    """
    info = find_run(session, run)
    check_formats(options.files, Kind.CASES)
    with TemporaryDirectory(prefix="proctor-rescore-") as folder:
        found = rewrite(session.store, info, Path(folder), config)
        words = {"outputs": str(found.outputs)}
        choice = chosen(Kind.CASES, "", SummaryPolicy.GUARDRAIL, "", words=words)
        submission = Submission(session, str(found.config), choice)
        return work(session, Kind.CASES, options, lambda view: submission.send(view, is_attended=True).run)
