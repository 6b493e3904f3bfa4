"""Runs a run to its end for `run`, `resume`, `retry`, `rescore`, `demo`: workers, progress, summary."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from producer import kinds
from producer.aggregate.gates import check_gates
from producer.cli.ending import print_ending, print_so_far, write_reports
from producer.cli.error_exit import InterruptedByUserError
from producer.cli.incremental_reports import IncrementalReports
from producer.cli.live.follow import Follower
from producer.cli.live.view import open_view
from producer.cli.local.local_workers import CALLS_END_S, LocalWorkers
from producer.cli.options.run_options import CaseOptions
from producer.cli.options.shared_options import InputOptions, SubmitChoice, refuse_no_text
from producer.cli.report_files import as_options, check_formats
from producer.cli.run_lookup import change_state, find_run
from producer.cli.submission import Submission, print_run_id
from producer.rescore import rewrite
from producer.text import plural
from shared.errors import ProctorError
from shared.kinds import CASES, Kind
from shared.ledger.bounds import LAYOUT
from shared.names import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from producer.aggregate.gates import Gate
    from producer.cli.live.progress import View
    from producer.cli.report_files import ReportFile
    from producer.cli.session import Session
    from producer.documents import AnyRun
    from producer.notify import Webhook
    from shared.runs import RunInfo


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """Workers, time limit and reports of a run."""

    processes: int | None = None
    """Worker processes to start if none is alive; 0 starts none."""
    in_flight: int | None = None
    """Items in flight per process."""
    timeout_s: float | None = None
    """After this the run is ended as incomplete."""
    files: list[ReportFile] = field(default_factory=list)
    """Reports to write when it has ended."""
    gates: Sequence[Gate] = ()
    """Conditions that fail the run."""
    with_text: bool = True
    """Whether reports contain the texts of turns."""
    webhook: Webhook | None = None
    """Where the summary is posted."""
    is_shown: bool = True
    """Whether the result of the run is printed; else the caller prints what it makes of it."""
    is_kept: bool = True
    """Whether the run is still there for a next command."""
    show_instead: Callable[[AnyRun], None] | None = None
    """Prints what is shown in place of summary and verdict, given the run's document."""


def has_workers(session: Session, kind: Kind) -> bool:
    """Returns whether a live worker executes new runs of a kind."""
    return bool(session.count_workers(kind, LAYOUT))


def submit_and_follow(
    session: Session, submission: Submission, options: WorkOptions, workers: LocalWorkers | None = None
) -> int:
    """Submits a file, follows its run to the end, prints the result, and returns the exit code.

    Args:
        session: access to Redis and the data folder.
        submission: the file.
        options: how to work.
        workers: of this command, if it has made them; they may be started already.

    Raises:
        ProctorError: see `Submission.send`.
    """
    return work(
        session,
        submission.kind(),
        options,
        lambda view: submission.send(view, is_attended=True).run,
        workers,
    )


def work(
    session: Session,
    kind: Kind,
    options: WorkOptions,
    begin: Callable[[View], str],
    workers: LocalWorkers | None = None,
) -> int:
    """Begins a run, follows it to its end, prints the result, and returns the exit code.

    Args:
        session: access to Redis and the data folder.
        kind: kind of the run.
        options: how to work.
        begin: submits or resumes and returns the run's id, while workers start.
        workers: as of `submit_and_follow`.
    """
    workers = workers or LocalWorkers(
        session, [kind], processes=options.processes, in_flight=options.in_flight
    )
    view = open_view(session.output)
    run, incremental = "", None
    try:
        if not workers.is_working and not has_workers(session, kind):
            workers.start()
        run = begin(view)
        session.seen.add(run)
        incremental = IncrementalReports.of(
            session, run, options.files, gates=options.gates, with_text=options.with_text
        )
        meanwhile = incremental.gather if incremental else None
        limit_s = options.timeout_s
        info = Follower(
            session, run, view, local_workers=workers, timeout_s=limit_s, meanwhile=meanwhile
        ).follow()
        view.close()
        workers.ask_to_stop()
        document = incremental.end(info) if incremental else None
        if not options.is_shown:
            document = document or write_reports(session, info, options.files, with_text=options.with_text)
            return document.exit
        return _end(session, info, options, document)
    except KeyboardInterrupt as error:
        view.close()
        if incremental is not None:
            incremental.discard()
        raise _interrupted(session, run, workers, options, str(error) or "Ctrl-C") from None
    finally:
        if incremental is not None:
            incremental.discard()
        try:
            view.close()
        finally:  # workers must be stopped even if the terminal is gone
            workers.stop()


def _end(session: Session, info: RunInfo, options: WorkOptions, document: AnyRun | None = None) -> int:
    """Writes and prints what became of a run, and returns its exit code."""
    return print_ending(
        session,
        info,
        options.files,
        document=document,
        gates=options.gates,
        with_text=options.with_text,
        webhook=options.webhook,
        is_kept=options.is_kept,
        show_instead=options.show_instead,
    )


def resume(session: Session, run: str, options: WorkOptions) -> int:
    """Continues a run that is paused, has no worker, or was cut short, and follows it to its end.

    A run that was cut short continues with items without a result; a queries run also with the query that
    could not connect.

    Raises:
        UnknownRunError: there is no such run.
        UsageError: a gate or a report format does not exist for this kind.
    """
    info = find_run(session, run)
    run = info.run
    check_gates(options.gates, info.kind)
    check_formats(options.files, info.kind)
    refuse_no_text(info.kind, no_text=not options.with_text)
    handled = kinds.of(info.kind)
    is_done = info.state == RunState.FINISHED or (handled.traits.is_read_early and info.done >= info.total)
    if info.is_final and is_done:
        return _end(session, info, options)
    if info.is_final:
        session.require_broker()
        retry = handled.retry()
        retry(session.ledger, session.publisher, session.store, run, errors=False)
    if info.state == RunState.PAUSED:
        change_state(session, run, action="resume")
    return work(session, info.kind, options, lambda _view: run)


def rescore(session: Session, run: str, config: Path | None, options: WorkOptions) -> int:
    """Submits the stored answers of a run with criteria, and works the new run to its end.

    Args:
        session: access to Redis.
        run: the run's id.
        config: whose criteria are used; None: the run's own.
        options: how to work, and what to write.

    Raises:
        UnknownRunError: there is no such run.
        UsageError: it has no answers to judge, or cases are not written in a format.
    """
    info = find_run(session, run)
    check_formats(options.files, CASES)
    with TemporaryDirectory(prefix="proctor-rescore-") as folder:
        found = rewrite(session.store, info, Path(folder), config)
        name = f"{info.name}, rescored" if info.name else ""
        choice = SubmitChoice(
            InputOptions(kind=CASES.name, name=name), cases=CaseOptions(outputs=str(found.outputs))
        )
        submission = Submission(session, str(found.config), choice, origin=f"answers of {info.run}")
        submission.announce()
        return submit_and_follow(session, submission, options)


def detach(session: Session, submission: Submission, options: WorkOptions) -> int:
    """Submits a file, leaves it to workers that end with their work, and prints the run's id."""
    view = open_view(session.output)
    try:
        submitted = submission.send(view)
    finally:
        view.close()
    workers = LocalWorkers(
        session, [submitted.kind], processes=options.processes, in_flight=options.in_flight
    )
    if not session.count_workers(submitted.kind, submitted.layout):
        workers.start_in_background()
    session.output.note(f"`proctor watch {submitted.run}` follows it")
    print_run_id(session, submitted)
    return 0


_NOT_SUBMITTED: Final = "interrupted while the file was read; nothing of it was submitted"


def _interrupted(
    session: Session, run: str, workers: LocalWorkers, options: WorkOptions, by: str
) -> InterruptedByUserError:
    """Stops started workers, reports what is done so far, and builds the error with the next command.

    Another Ctrl-C ends the workers at once and skips the summary and the reports.
    """
    if workers.is_working:
        session.output.note(
            f"interrupted: running items have {CALLS_END_S:g} s to finish; Ctrl-C again ends them at once"
        )
    if not run:
        workers.stop()
        return InterruptedByUserError(_NOT_SUBMITTED, hint="`proctor runs` lists what was submitted before")
    files, no_text = options.files, ["--no-text"] * (not options.with_text)
    words = ["resume", run]
    if files:
        words = ["run", "--resume", run, *as_options(files, "--export"), *no_text]
    message, hint = f"interrupted by {by}; {run} is kept", f"`{session.command(*words)}` continues it"
    with suppress(KeyboardInterrupt):
        workers.interrupt(run)
        try:
            info = session.impatient_store.info(run)
            print_so_far(session, info, files, with_text=options.with_text)
            if files:
                session.output.note(f"written so far: {', '.join(str(file.path) for file in files)}")
        except ProctorError as error:
            session.output.error(error.message, hint=error.hint)
        else:
            message += f" with {info.done:,} of {plural(info.total, 'item')} done"
            if info.is_final:
                hint = f"`{session.command('report', run)}` shows it"
        workers.stop()
    return InterruptedByUserError(message, hint=hint)
