"""`proctor run FILE`: submits a file, runs it, follows it and reports, in one command."""

import os
import sys
import threading
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from producer.cli.completions import complete_files, complete_runs
from producer.cli.local.local_workers import LocalWorkers
from producer.cli.options.global_options import command as declare
from producer.cli.options.global_options import jsonl_option
from producer.cli.options.option_groups import option, option_group
from producer.cli.options.run_options import CaseOptions, ModelOptions, QueryOptions, SelectionOptions
from producer.cli.options.shared_options import (
    InputOptions,
    ReportOptions,
    SubmitChoice,
    WorkerOptions,
    config_option,
    gate_options,
    notify_option,
    one_file,
    refuse_no_text,
    submit_options,
    text_option,
)
from producer.cli.session import Session, pass_session
from producer.report_files import check_formats, plan_files
from shared.errors import UsageError
from shared.kinds import QUERIES, Kind
from shared.ledger.bounds import LAYOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from producer.aggregate.gates import Gate
    from producer.api import Plan
    from producer.cli.submission import Submission
    from producer.notify import Webhook


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Time limit, mode and continuation of a run."""

    timeout_s: float | None = option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="S",
        help="Seconds after which the run ends as incomplete.",
    )
    detach: bool = option(
        "--detach", is_flag=True, help="Leave the run to background workers and print its id."
    )
    resumed: str | None = option(
        "--resume",
        metavar="RUN",
        shell_complete=complete_runs,
        help="Continue this run instead of submitting a file.",
    )
    rank: bool = option(
        "--rank",
        is_flag=True,
        help="Then compare the models' answers in pairs, as `proctor rank` does.",
    )
    view: bool = option(
        "--view", is_flag=True, help="Show the run in a browser while it goes on, until Ctrl-C."
    )
    dry_run: bool = option(
        "--dry-run", is_flag=True, help="Check the file and count its items; send nothing."
    )
    is_list: bool = option(
        "--list", is_flag=True, help="With --dry-run, print the names of the items, one a line."
    )


@declare()
@click.argument("file", shell_complete=complete_files, required=False)
@config_option
@submit_options
@option_group("workers", WorkerOptions, in_flight="Items of the run in flight, across all workers.")
@option_group("reports", ReportOptions)
@option_group("options", RunOptions)
@text_option
@gate_options
@notify_option
@jsonl_option
@pass_session
def command(
    session: Session,
    /,
    *,
    file: str | None,
    config: str | None,
    submit: InputOptions,
    models: ModelOptions,
    cases: CaseOptions,
    selection: SelectionOptions,
    queries: QueryOptions,
    workers: WorkerOptions,
    reports: ReportOptions,
    options: RunOptions,
    no_text: bool,
    gates: tuple[str, ...],
    notify: str | None,
) -> int:
    """Evaluate FILE (`-`: stdin): submit it, run it, follow it and report.

    Without --redis or PROCTOR_REDIS_URL, it uses the embedded Redis of the data folder. Workers are started
    here only when none is alive for this kind of file, and stopped at the end. Ctrl-C stops them within
    seconds, writes the reports of what is done, and keeps the run.
    """
    from producer.aggregate.gates import parse_gate  # noqa: PLC0415 - start-up: only gates need it

    file = one_file(file, config)
    _refuse_contradictions(session, file, reports, options, gates)
    files, parsed_gates = plan_files(reports.paths, reports.formats), [parse_gate(text) for text in gates]
    webhook = _webhook(session, notify, options)
    submission, processes, started = None, workers.processes, None
    if file is not None:
        from producer.cli import submission as asking  # noqa: PLC0415 - start-up: `--help` must not load pydantic

        choice = SubmitChoice(submit, models, cases, selection, queries, workers.in_flight)
        asked = asking.unread(session, file, choice)  # a wrong option is refused before anything is started
        check_formats(files, asked.kind)
        refuse_no_text(asked.kind, no_text=no_text)
        if options.dry_run:
            return asking.print_contents(session, asked, is_list=options.is_list)
        submission, processes = _announced(session, asked, processes, options, parsed_gates)
        if not options.detach and not options.rank:
            started = _start(session, asked.kind, processes, workers.in_flight)
    with started or nullcontext():  # Ctrl-C while this process imports what follows stops them too
        from producer.cli import presenters, work  # noqa: PLC0415 - takes as long as workers do to start

        limits = (processes, workers.in_flight, options.timeout_s)
        presenter = presenters.presenter_of(session)
        with _viewed(session) if options.view else nullcontext(str) as begun:
            work_options = work.WorkOptions(
                presenter, *limits, files, parsed_gates, not no_text, webhook, begun
            )
            if submission is None:
                return work.resume(session, str(options.resumed), work_options)
            if options.detach:
                return work.detach(session, submission, work_options)
            if options.rank:
                from producer.cli import ranking_output  # noqa: PLC0415 - only a ranking loads the contracts of cases

                return ranking_output.run_and_rank(session, submission, work_options)
            return work.submit_and_follow(session, submission, work_options, started)


@contextmanager
def _viewed(session: Session) -> "Iterator[Callable[[str], object]]":
    """Serves pages while a run goes on; on a terminal also after it, until Ctrl-C."""
    from producer.view.web_server import watched  # noqa: PLC0415 - start-up: aiohttp costs 150 ms

    with watched(
        session.access.connect(), lambda address: session.output.note(f"the run: {address}")
    ) as show:
        yield show
        if sys.stderr.isatty():
            session.output.note("its page stays until Ctrl-C")
            with suppress(KeyboardInterrupt):
                threading.Event().wait()


def _webhook(session: Session, notify: str | None, options: RunOptions) -> "Webhook | None":
    if notify is None:
        return None
    if options.detach or options.dry_run or options.rank:
        raise UsageError("--notify is for a run that is followed", hint="`proctor watch RUN --notify URL`")
    from producer.notify import read_webhook  # noqa: PLC0415 - start-up: asyncio

    return read_webhook(notify, session.settings, os.environ)


def _announced(
    session: Session,
    asked: "Plan",
    processes: int | None,
    options: RunOptions,
    gates: "Sequence[Gate]",
) -> "tuple[Submission, int | None]":
    """Says what is going to be sent; also returns how many processes that keeps at work.

    None: the default. Further ones would only start and stop, which costs more than a few items.
    """
    from producer.cli.submission import announced  # noqa: PLC0415 - start-up: `--help` must not load pydantic

    kind, most = asked.kind, processes
    if processes is None and kind == QUERIES:
        most = min(session.settings.processes, asked.options.queries.concurrency)
    starts_workers = not options.detach and most != 0
    submission = announced(
        session,
        asked,
        gates,
        starts_workers=lambda: starts_workers and not session.access.count_workers(kind, LAYOUT),
    )
    if processes is not None or options.detach or submission.items is None:
        return submission, most
    return submission, max(1, min(submission.items, most or session.settings.processes))


def _start(session: Session, kind: Kind, processes: int | None, in_flight: int | None) -> LocalWorkers:
    """Starts workers if none is alive; they load what they need while this process does, and end with it."""
    workers = LocalWorkers(session, [kind], processes=processes, in_flight=in_flight)
    if not session.access.count_workers(kind, LAYOUT):
        workers.start()
    return workers


def _refuse_contradictions(
    session: Session, file: str | None, reports: ReportOptions, options: RunOptions, gates: tuple[str, ...]
) -> None:
    """Refuses options that exclude each other, such as `--detach` with options for the end of a run."""
    if (file is None) == (options.resumed is None):
        raise UsageError("name a FILE, or a run with --resume", hint="see `proctor run --help`")
    if options.rank and (options.detach or options.dry_run or options.resumed):
        raise UsageError("--rank follows a new run to its end", hint="`proctor rank RUN` ranks another one")
    if options.rank and (session.options.json or session.options.jsonl):
        raise UsageError("--rank prints a table", hint="`proctor rank RUN --json` prints the ranking as JSON")
    if session.options.jsonl and (options.detach or options.dry_run):
        raise UsageError("--jsonl follows a run to its end", hint="`proctor watch RUN --jsonl`, or --json")
    if options.is_list and not options.dry_run:
        raise UsageError("--list is for --dry-run", hint="`proctor validate FILE --list` lists all items")
    if options.view and (options.detach or options.dry_run):
        raise UsageError("--view follows a run to its end", hint="`proctor view` shows all runs")
    if options.detach and gates:
        raise UsageError("--fail-on judges a run that has ended", hint="`proctor watch RUN --fail-on …`")
    if options.detach and (reports.paths or reports.formats):
        raise UsageError("a report is written when the run has ended", hint="`proctor report RUN -o FILE`")
