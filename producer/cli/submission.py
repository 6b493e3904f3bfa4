"""Turns a command line into a plan, says what it is going to send, and submits it."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import click

from producer import api
from producer.aggregate.gates import Gate
from producer.api import Plan
from producer.cli.live.view import View
from producer.cli.options.choices import read_case_choice, read_live_run, read_query_choice, read_query_run
from producer.cli.options.shared_options import SubmitChoice
from producer.cli.session import Session
from producer.forecasts import Forecast
from producer.load.detect import detect_kind
from producer.load.source import Source
from producer.options import SubmitOptions, SubmittedRun
from producer.service_documents import SubmitDocument
from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.errors import UsageError
from shared.kinds import CASES, QUERIES, TURNS, Kind, kind_named
from shared.redaction import redactor_of
from shared.settings import variable_of

MOST_NAME_CHARS: Final = 120
"""Of a run's name."""
SWITCH_S: Final = 0.0005
"""How long reading may keep the sending thread from the interpreter; 5 ms cost a seventh of a load."""


def unread(session: Session, file: str, choice: SubmitChoice, *, origin: str = "") -> Plan:
    """Returns the plan that a command line asks for, before its file is read.

    Args:
        session: the settings, and access to Redis for `--last-failed`.
        file: path, or `-` for stdin.
        choice: options of the command line.
        origin: what runs are listed as the input, where the file is one of our own making.

    Raises:
        InputError: the file cannot be read, or its kind is not recognised.
        UsageError: an option cannot be used, or is not for this kind of file.
        ConfigError: a variable of the environment cannot be used.
    """
    source, settings, named = Source(file), session.settings, choice.input.kind
    kind = kind_named(named) if named else detect_kind(source)
    choice.refuse_other_kinds(kind)
    common = SubmitOptions(
        idempotency_key=choice.input.idempotency_key,
        name=read_name(choice.input.name),
        origin=origin,
        namespace=choice.input.namespace,
        summary_policy=SummaryPolicy(choice.input.summary_policy),
        signals_once=choice.input.signals_once,
        redactor=redactor_of(settings),
        results_ttl_s=settings.results_ttl_s,
        max_backlog_items=settings.max_backlog_items,
        patience_s=settings.patience_s,
        on_warning=session.output.warn,
        on_note=session.output.note,
        last_failed=choice.selection.last_failed,
    )
    add = _OWN_OPTIONS.get(kind)
    options = add(common, choice) if add else common
    options = replace(options, cases=replace(options.cases, allow_code=settings.allow_code))
    if options.last_failed:
        options = api.limited(session.access, source, kind, options)
    if choice.selection.only is not None:
        with click.open_file(choice.selection.only, encoding="utf-8") as names:
            options = api.only(source, kind, options, names.read().splitlines())
    return Plan(source, kind, options)


def announced(
    session: Session,
    asked: Plan,
    gates: Sequence[Gate] = (),
    *,
    starts_workers: Callable[[], bool] = lambda: False,
) -> "Submission":
    """Reads a file, and prints what is going to be sent and what will probably fail; asks if it is much.

    Args:
        session: the options, and the number of calls from which to ask.
        asked: what the command line asks for.
        gates: conditions that fail the run.
        starts_workers: whether this command starts the workers, which then lack what it lacks.

    Raises:
        InputError: the file breaks its contract.
        UsageError: the answer was no, a key is missing, or a gate names what the run does not have.
    """
    plan = api.plan(asked.source, asked.options, kind=asked.kind, gates=gates)
    if forecast := plan.forecast:
        if forecast.missing is not None and starts_workers():
            raise forecast.missing.as_error()
        for warning in forecast.warnings:
            session.output.warn(warning)
        if forecast.total:
            _ask_or_tell(session, plan.source.name, forecast)
    return Submission(session, plan)


def _ask_or_tell(session: Session, name: str, forecast: Forecast) -> None:
    """On a terminal asks whether to send that much, else says how much it is."""
    bound, options = session.settings.confirm_calls, session.options
    is_silent = options.yes or options.json or options.jsonl
    if is_silent or not bound or forecast.total < bound or not (sys.stdin.isatty() and sys.stderr.isatty()):
        session.output.note(f"{name}: {forecast}")
        return
    if not click.confirm(f"{name}: {forecast}. Send them?", err=True):
        hint = f"--yes sends without a question; {variable_of('confirm_calls')} is the bound, now {bound:,}"
        raise UsageError("nothing was sent", hint=hint)


class Submission:
    """A plan until it is submitted; afterwards no memory of the file is kept.

    Args:
        session: access to Redis.
        plan: the file.
    """

    def __init__(self, session: Session, plan: Plan) -> None:
        self._session = session
        self.plan: Plan | None = plan
        self.kind = plan.kind
        self.items = plan.forecast.items if plan.forecast else None
        """How many items the run has, where that was counted."""

    def send(self, view: View, *, is_attended: bool = False) -> SubmittedRun:
        """Submits the whole file, or nothing of it.

        Args:
            view: shows the progress of loading.
            is_attended: the caller follows the run and would notice a crash of Redis before the run is on
                disk, in which case the file can be submitted again. Otherwise the submit waits for the disk.

        Raises:
            InputError: the file breaks its contract.
            ProctorError: see `producer.submit.submit`.
        """
        if self.plan is None:
            raise AssertionError("a plan is submitted once")
        plan, self.plan = self.plan, None
        session, source = self._session, plan.source
        if session.access.connection.risk:
            session.output.warn(f"{session.access.connection.risk}; `proctor doctor` shows how to fix it")
        options = replace(
            plan.options,
            await_disk=not (is_attended and source.repeatable),
            on_progress=lambda items: view.loading(source.name, items),
            on_wait=view.note,
            on_warning=(lambda warning: view.note(f"warning: {warning}"))
            if session.output.live
            else session.output.warn,
        )
        with _quick_switches():
            submitted = api.submit(session.access, replace(plan, options=options))
        if submitted.duplicate:
            view.note(f"this key was submitted before: {submitted.run}")
        return submitted


@contextmanager
def _quick_switches() -> Iterator[None]:
    """Shortens the switch interval of this process, so that the sending thread runs soon after a reply."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def print_contents(session: Session, plan: Plan, *, is_list: bool = False) -> int:
    """Checks a whole file and prints what it contains.

    Args:
        session: the output.
        plan: the file, with the options of a run.
        is_list: whether to print the names of the items instead.

    Raises:
        InputError: the file breaks its contract; the error lists every problem.
    """
    if is_list:
        from producer.cli.listing import print_items  # noqa: PLC0415 - start-up: see `Submission.send`

        return print_items(session, plan)
    found = api.check(plan.source, plan.options, kind=plan.kind)
    for warning in found.warnings:
        session.output.warn(warning)
    if session.options.json:
        session.output.document(found.document)
    else:
        session.output.data(found.text)
    return 0


def read_name(text: str) -> str:
    """Reads the name of a run.

    Raises:
        UsageError: it is too long, or more than a line.

    >>> read_name("  shorter prompt ")
    'shorter prompt'
    """
    name = text.strip()
    if len(name) > MOST_NAME_CHARS or not name.isprintable():
        raise UsageError(
            f"--name has {len(name):,} characters, or some that cannot be printed",
            hint=f"write one line of at most {MOST_NAME_CHARS} characters",
        )
    return name


def add_turn_options(common: SubmitOptions, choice: SubmitChoice) -> SubmitOptions:
    """Adds the settings of a run of turns; see `read_live_run`."""
    return replace(common, live=read_live_run(choice.models, in_flight=choice.in_flight))


def add_case_options(common: SubmitOptions, choice: SubmitChoice) -> SubmitOptions:
    """Adds the settings of a run of cases; see `read_case_choice`."""
    cases = read_case_choice(choice.cases, choice.selection, choice.models, in_flight=choice.in_flight)
    return replace(common, cases=cases)


def add_query_options(common: SubmitOptions, choice: SubmitChoice) -> SubmitOptions:
    """Adds the settings of a run of queries; see `read_query_run`."""
    if choice.queries is None:
        return common
    return replace(
        common,
        queries=read_query_run(choice.queries, choice.selection, in_flight=choice.in_flight),
        query_choice=read_query_choice(choice.queries, choice.selection),
    )


_OWN_OPTIONS: Final[Mapping[Kind, Callable[[SubmitOptions, SubmitChoice], SubmitOptions]]] = {
    TURNS: add_turn_options,
    CASES: add_case_options,
    QUERIES: add_query_options,
}
"""What adds the options that a kind has in `SubmitChoice`."""


def lacking_workers(session: Session, submitted: SubmittedRun) -> str:
    """Returns why a run waits for workers; empty if some can work on it."""
    from shared.runs.waiting import outdated_text  # noqa: PLC0415 - start-up: see `Submission.send`

    kind = submitted.kind
    if session.access.count_workers(kind, submitted.layout):
        return ""
    if outdated := session.access.count_workers(kind):
        return f"{outdated_text(outdated)} cannot work on this run; it waits for one of this version"
    return f"no worker for {kind} is alive: the run waits until one is started (`proctor worker -Q {kind}`)"


def print_run_id(session: Session, submitted: SubmittedRun) -> None:
    """Prints the id of a submitted run: alone on its line, or as a document."""
    if not session.options.json:
        session.output.data(submitted.run)
        return
    session.output.document(SubmitDocument.of(submitted))
