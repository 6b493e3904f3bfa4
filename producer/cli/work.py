"""Runs a run to its end, for commands that follow one: starts workers, shows progress, writes reports."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from producer import api, kinds
from producer.aggregate.gates import check_gates
from producer.cases.rescore import rewrite
from producer.cli.error_exit import InterruptedByUserError
from producer.cli.live.view import open_view
from producer.cli.local.local_workers import CALLS_END_S, LocalWorkers
from producer.cli.options.run_options import CaseOptions
from producer.cli.options.shared_options import InputOptions, SubmitChoice, refuse_no_text
from producer.cli.output import printable
from producer.cli.presenters import Ended
from producer.cli.run_lookup import find_run
from producer.cli.submission import Submission, announced, print_run_id, unread
from producer.following.follower import Follower
from producer.notify import notify
from producer.report_files import as_options, check_formats
from producer.reporting import IncrementalReports, write_reports
from producer.service_documents import RetryDocument
from producer.text import plural
from shared.errors import ProctorError, UsageError
from shared.kinds import CASES, Kind
from shared.ledger.bounds import LAYOUT
from shared.names import RunState
from shared.plugins import CODE, lacking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from producer.aggregate.gates import Gate
    from producer.cli.live.view import View
    from producer.cli.presenters import Presenter
    from producer.cli.session import Session
    from producer.documents import AnyRun
    from producer.notify import Webhook
    from producer.report_files import ReportFile
    from producer.turns.retry import Retried
    from shared.runs import RunInfo


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """Workers, time limit, reports and output of a run."""

    presenter: Presenter
    """Writes the result."""
    processes: int | None = None
    """Worker processes to start if none is alive; 0 starts none."""
    in_flight: int | None = None
    """Items in flight per process."""
    timeout_s: float | None = None
    """After this time the run is ended as incomplete."""
    files: Sequence[ReportFile] = ()
    """Reports to write when it has ended."""
    gates: Sequence[Gate] = ()
    """Conditions that fail the run."""
    with_text: bool = True
    """Whether reports contain the texts of turns."""
    webhook: Webhook | None = None
    """Where the summary is posted."""
    begun: Callable[[str], object] = str
    """Called with the id of the run as soon as it is known."""


def submit_and_follow(
    session: Session, submission: Submission, options: WorkOptions, workers: LocalWorkers | None = None
) -> int:
    """Submits a file, follows its run to the end, presents the result, and returns the exit code.

    Args:
        session: access to Redis and the data folder.
        submission: the file.
        options: how to work.
        workers: workers that the command has created; they may be started already.

    Raises:
        ProctorError: see `Submission.send`.
    """
    return work(
        session,
        submission.kind,
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
    """Begins a run, follows it to its end, presents the result, and returns the exit code.

    Args:
        session: access to Redis and the data folder.
        kind: kind of the run.
        options: how to work.
        begin: submits or resumes and returns the run's id, while workers start.
        workers: as for `submit_and_follow`.
    """
    workers = workers or LocalWorkers(
        session, [kind], processes=options.processes, in_flight=options.in_flight
    )
    access, view = session.access, open_view(session.output)
    run, incremental = "", None
    try:
        if not workers.is_working and not access.count_workers(kind, LAYOUT):
            workers.start()
        run = begin(view)
        session.seen.add(run)
        options.begun(run)
        incremental = IncrementalReports.of(
            access, run, options.files, gates=options.gates, with_text=options.with_text
        )
        wait = incremental.gather if incremental else None
        follower = Follower(access, run, workers=workers, timeout_s=options.timeout_s, wait=wait)
        for progress in follower:
            view.show(progress)
        view.close()
        workers.ask_to_stop()
        info = follower.info
        return conclude(session, info, options, incremental.end(info) if incremental else None)
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


def conclude(session: Session, info: RunInfo, options: WorkOptions, document: AnyRun | None = None) -> int:
    """Writes the reports and presents the result of a run that has ended, and returns its exit code.

    Args:
        session: access to Redis.
        info: the run.
        options: what to write.
        document: document of the run, if the reports are written already.

    Raises:
        InfrastructureError: a disk is full; the hint is how to write the reports later.
        RedisUnreachableError: Redis is unavailable for too long.
    """
    ended = Ended(info, document) if document is not None else _counted(session, info, options)
    options.presenter.ended(ended)
    if options.webhook is not None:
        _notify(session, options.webhook, ended.document)
    return ended.document.exit


def _counted(session: Session, info: RunInfo, options: WorkOptions) -> Ended:
    """Writes the reports of a run in one pass over its results."""
    details = options.presenter.details(info)
    document = write_reports(
        session.access,
        info,
        options.files,
        [details] if details else [],
        gates=options.gates,
        with_text=options.with_text,
    )
    return Ended(info, document, details)


def _notify(session: Session, webhook: Webhook, document: AnyRun) -> None:
    """Posts the summary of a run; a failure is a warning, and Ctrl-C ends the attempt."""
    try:
        why = notify(webhook, document, session.settings)
    except KeyboardInterrupt:
        why = "interrupted"
    if why:
        session.output.warn(f"the notification to {webhook.place} failed: {printable(why)}")
    else:
        session.output.detail(f"notified {webhook.place}")


def watch(session: Session, run: str, options: WorkOptions) -> int:
    """Follows a run to its end without workers of its own, presents the result, and returns the exit code."""
    view, follower = open_view(session.output), Follower(session.access, run)
    try:
        for progress in follower:
            view.show(progress)
    except KeyboardInterrupt:
        view.close()
        raise InterruptedByUserError(
            f"stopped following; {run} continues", hint=f"`proctor watch {run}` follows it again"
        ) from None
    finally:
        view.close()
    return conclude(session, follower.info, options)


def resume(session: Session, run: str, options: WorkOptions) -> int:
    """Continues a run that is paused, has no worker, or was cut short, and follows it to its end.

    A run that was cut short continues with the items that have no result; a queries run also with the query
    that could not connect.

    Raises:
        UnknownRunError: there is no such run.
        UsageError: a gate or a report format does not exist for this kind.
    """
    info = find_run(session, run)
    run = info.run
    check_gates(options.gates, info.kind)
    check_formats(options.files, info.kind)
    refuse_no_text(info.kind, no_text=not options.with_text)
    is_read_early = kinds.of(info.kind).traits.is_read_early
    is_done = info.state == RunState.FINISHED or (is_read_early and info.done >= info.total)
    if info.is_final and is_done:
        return conclude(session, info, options)
    _refuse_code(session, info, options)
    if info.is_final:
        api.retry(session.access, run, errors=False)
    if info.state == RunState.PAUSED:
        api.control(session.access, run, "resume")
    return work(session, info.kind, options, lambda _view: run)


def retry(
    session: Session,
    run: str,
    options: WorkOptions,
    *,
    positions: Sequence[int] | None,
    detach: bool,
    is_anew: bool = False,
) -> int:
    """Queues items again and, unless detached, follows the run to its end.

    Args:
        session: access to Redis.
        run: the run's id.
        options: how to work.
        positions: positions of the items; None: all that ended in error or have no result.
        detach: only queue them.
        is_anew: whether models are called again, even if answers are stored.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: the run is still in progress.
        UsageError: there is nothing to retry.
    """
    info = find_run(session, run)
    if positions is not None and not positions:
        hint = f"`proctor results {run} --errors` lists what ended in error"
        raise UsageError(f"nothing of {run} is dead", hint=hint)
    if not detach:
        _refuse_code(session, info, options)
    retried = api.retry(session.access, run, indexes=positions, is_anew=is_anew)
    if detach and session.options.json:
        session.output.document(RetryDocument(run_id=run, retried=retried.items, left=retried.left))
        return 0
    _print_retried(session, run, retried)
    if detach:
        session.output.data(run)
        return 0
    return work(session, info.kind, options, lambda _view: run)


def _refuse_code(session: Session, info: RunInfo, options: WorkOptions) -> None:
    """Refuses to start workers for a run that calls code, if they may not.

    Raises:
        UsageError: it would wait for others without end.
    """
    lacked = lacking(info.needs, allow_code=session.settings.allow_code)
    if CODE in lacked and options.processes != 0 and not session.access.count_workers(info.kind, info.layout):
        what = f"{info.run} calls code that stood beside its bench, which runs only with {CODE}"
        raise UsageError(what, hint=f"it may do whatever you may do: read it first, then add {CODE}")


def _print_retried(session: Session, run: str, retried: Retried) -> None:
    """Prints how many items were queued again, and how many were not."""
    session.output.note(f"retrying {plural(retried.items, 'item')} of {run}")
    if retried.left:
        session.output.warn(f"{plural(retried.left, 'item')} more wait for another `proctor retry {run}`")


def rescore(session: Session, run: str, config: Path | None, options: WorkOptions) -> int:
    """Submits the stored answers of a run with new criteria, and follows the new run to its end.

    Args:
        session: access to Redis.
        run: the run's id.
        config: the configuration whose criteria are used; None: the run's own.
        options: how to work, and what to write.

    Raises:
        UnknownRunError: there is no such run.
        UsageError: it has no answers to judge, or a report format does not exist for cases.
    """
    info = find_run(session, run)
    check_formats(options.files, CASES)
    with TemporaryDirectory(prefix="proctor-rescore-") as folder:
        found = rewrite(session.access.store, info, Path(folder), config)
        name = f"{info.name}, rescored" if info.name else ""
        choice = SubmitChoice(
            InputOptions(kind=CASES.name, name=name), cases=CaseOptions(outputs=str(found.outputs))
        )
        asked = unread(session, str(found.config), choice, origin=f"answers of {info.run}")
        cases = replace(asked.options.cases, hashes=found.hashes)
        asked = replace(asked, options=replace(asked.options, cases=cases))
        return submit_and_follow(session, announced(session, asked), options)


def detach(session: Session, submission: Submission, options: WorkOptions) -> int:
    """Submits a file, starts workers in the background that exit when it is done, and prints the run's id."""
    view = open_view(session.output)
    try:
        submitted = submission.send(view)
    finally:
        view.close()
    workers = LocalWorkers(
        session, [submitted.kind], processes=options.processes, in_flight=options.in_flight
    )
    if not session.access.count_workers(submitted.kind, submitted.layout):
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
    files, no_text = options.files, [] if options.with_text else ["--no-text"]
    words = ["resume", run]
    if files:
        words = ["run", "--resume", run, *as_options(files, "--export"), *no_text]
    message, hint = f"interrupted by {by}; {run} is kept", f"`{session.command(*words)}` continues it"
    with suppress(KeyboardInterrupt):
        workers.interrupt(run)
        try:
            info = session.access.impatient_store.info(run)
            options.presenter.interrupted(_counted(session, info, replace(options, gates=())))
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
