"""The Python API of runs: plan, submit, follow and report. It prints nothing; the command line uses it, too.

    plan(source, options) -> Plan        the file is read, checked, rendered and priced; nothing is sent
    submit(access, plan)  -> SubmittedRun
    follow(access, run)   -> events      until the run has ended; `run` is its id
    report(access, run, files)           writes reports, and returns the document of the run

A whole program, on the Redis of `PROCTOR_REDIS_URL`, else on the embedded one:

    from pathlib import Path

    from producer import api
    from producer.access import Access
    from producer.following.events import as_line
    from producer.load.source import Source
    from producer.report_files import ReportFile
    from shared.settings import Settings

    with Access(Settings.from_environment()) as access:
        run = api.submit(access, api.plan(Source("turns.jsonl"))).run
        for event in api.follow(access, run):
            print(as_line(event))
        api.report(access, run, [ReportFile("html", Path("report.html"))])

Workers are other processes (`proctor worker`), which these calls do not start: without one `follow` yields
`WaitingEvent` and waits. All errors derive from `shared.errors.ProctorError`. `producer.api_async` has the
four calls as coroutines. Modules that only some calls need are imported inside them: checking a file does
not load the Redis client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from producer import kinds
from producer.aggregate.gates import Gate, check_gate_names, check_gates, choice_for
from producer.forecasts import FileContents, Forecast
from producer.load.detect import detect_kind
from producer.load.problems import all_of
from producer.options import SubmitOptions
from producer.service_documents import FileCounts, ValidateDocument
from producer.text import count, plural
from shared.errors import RunStateError, UsageError
from shared.kinds import Kind, Storage
from shared.names import FINAL_STATES, RunState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from producer.access import Access
    from producer.documents import AnyRun
    from producer.following.events import Event
    from producer.load.source import Source
    from producer.options import SubmittedRun
    from producer.report_files import ReportTarget
    from producer.turns.retry import Retried


_REACHED: Final[Mapping[str, frozenset[str]]] = {
    "pause": frozenset({RunState.PAUSED}),
    "resume": frozenset({RunState.RUNNING}),
    "cancelled": frozenset({RunState.CANCELLING, RunState.CANCELLED}),
}
"""The states that each action is meant to lead to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A file that can be submitted, and what a run of it is going to send."""

    source: Source
    kind: Kind
    options: SubmitOptions
    """The caller's options, with what was read from the file, so that it is read only once."""
    forecast: Forecast | None = None
    """None where nothing is sent to an upstream, and for a stream, which can be read only once."""


def plan(
    source: Source,
    options: SubmitOptions | None = None,
    *,
    kind: Kind | None = None,
    gates: Sequence[Gate] = (),
    access: Access | None = None,
) -> Plan:
    """Reads and checks a file as far as its kind can before a submit, and estimates what will be sent.

    Args:
        source: the input.
        options: options of the run; the defaults if None.
        kind: kind of the input; by default recognised from its content.
        gates: conditions that the run will have to meet; `producer.aggregate.gates.parse_gate`
            reads one.
        access: access to Redis, which only `last_failed` needs: what failed is read there.

    Raises:
        InputError: the file breaks its contract; the message names file and line.
        UsageError: an option or a gate does not fit the file.
    """
    kind, options = kind or detect_kind(source), options or SubmitOptions()
    if options.last_failed:
        if access is None:
            raise UsageError(
                "last_failed needs the way to Redis", hint="plan(source, options, access=access)"
            )
        options = limited(access, source, kind, options)
    check_gates(gates, kind)
    options = replace(options, cases=choice_for(gates, options.cases))
    forecast = kinds.of(kind).forecast(source, options)
    if forecast is None:
        return Plan(source, kind, options)
    if forecast.plan is not None:
        check_gate_names(gates, forecast.plan.names)
    read = replace(options, plan=forecast.plan, baselines=forecast.baselines)
    return Plan(source, kind, read, replace(forecast, plan=None, baselines=None))


def limited(access: Access, source: Source, kind: Kind, options: SubmitOptions) -> SubmitOptions:
    """Limits a run to what failed in the newest run of the file; if nothing failed, all of it is run.

    Raises:
        UsageError: the kind has no such option, or the input is a stream.
    """
    from producer.last_failed import earlier_run  # noqa: PLC0415 - start-up: only this option needs it

    limit, options = kinds.of(kind).limit(), replace(options, last_failed=False)
    if limit is None:
        raise UsageError(f"--last-failed is not for {kind}", hint="leave it out")
    if source.path is None:
        raise UsageError("--last-failed needs a file", hint="a stream has no earlier run")
    earlier = earlier_run(access.store, kind, source)
    if earlier is None:
        options.on_note(f"--last-failed: there is no earlier run of {source.name}; all of it is run")
        return options
    run, total = earlier.info.run, plural(earlier.info.total, kind.noun)
    if not earlier.failed:
        options.on_note(f"--last-failed: none of the {total} of {run} failed; all of the file is run")
        return options
    options.on_note(f"--last-failed: {count(len(earlier.failed))} of the {total} of {run}")
    return limit(options, earlier.failed, "--last-failed")


def only(source: Source, kind: Kind, options: SubmitOptions, names: Sequence[str]) -> SubmitOptions:
    """Limits a run to items by their names, as lists have them; a name stands for all its repetitions.

    Raises:
        InputError: the file cannot be read, or breaks its contract.
        UnknownItemError: a name stands for no item.
        UsageError: the kind has no such option, or no item is named.
    """
    from producer.item_names import numbered, resolve  # noqa: PLC0415 - they load the ledger

    limit = kinds.of(kind).limit()
    if limit is None:
        raise UsageError(f"--only is not for {kind}", hint="leave it out")
    if not names:
        raise UsageError("--only: the file names no item", hint="write one name a line")
    named = numbered(kind, inputs_of(source, kind, options))
    found = set(resolve(names, named, kind=kind, where=source.name, is_each=True))
    chosen = [payload for at, payload in inputs_of(source, kind, options) if at in found]
    return limit(options, chosen, "--only")


def inputs_of(source: Source, kind: Kind, options: SubmitOptions) -> Iterator[tuple[int, bytes]]:
    """Yields position and input of each item that a run has with these options.

    Raises:
        InputError: the file cannot be read, or breaks its contract.
    """
    for chunk in kinds.of(kind).load(source, options).chunks:
        for index, payload in chunk.payloads.items():
            yield int(index), payload


def check(source: Source, options: SubmitOptions, *, kind: Kind | None = None) -> FileContents:
    """Checks all of a file and returns what it contains; nothing is sent.

    Raises:
        InputError: the file breaks its contract; the error lists every problem.
    """
    kind = kind or detect_kind(source)
    try:
        return _contents_of(source, kind, options)
    except UsageError as error:
        raise (all_of(error.problems) if error.problems else error) from None


def _contents_of(source: Source, kind: Kind, options: SubmitOptions) -> FileContents:
    handled = kinds.of(kind)
    if source.repeatable and (problems := handled.problems(source)):  # a stream is read once
        raise all_of(problems)
    if own := handled.contents(source, options):
        return own
    items, chunks, threads, calls = 0, 0, set[str](), 0
    has_threads = kind.storage is Storage.MAILBOXES
    for chunk in handled.load(source, options).chunks:
        chunks += 1
        items += chunk.item_count
        if options.live is not None:
            from producer.forecasts.turns import calls_of  # noqa: PLC0415 - only live turns need the engine

            calls += calls_of(chunk.content, options.live.live)
        if has_threads:
            threads.update(part[1] for part in chunk.plan.parts)
    counts = FileCounts(
        total=items,
        chunks=chunks,
        threads=len(threads) if has_threads else UNSET,
        calls=UNSET if options.live is None else calls,
    )
    text = f"{source.name}: {plural(items, kind.noun)}"
    if has_threads:
        text += f" in {plural(len(threads), 'thread')}"
    text += f", {plural(chunks, 'chunk')} of work"
    if options.live is not None:
        text += f", about {plural(calls, 'call')} of the model"
    document = ValidateDocument(file=source.name, kind=kind.name, counts=counts)
    return FileContents(document, f"{text}; nothing was sent")


def submit(access: Access, plan: Plan) -> SubmittedRun:
    """Submits a plan, completely or not at all.

    Raises:
        InputError: the file breaks its contract.
        ProctorError: see `producer.submit.submit`.
    """
    from producer import submit as loading  # noqa: PLC0415 - it loads the ledger

    access.require_broker()
    return loading.submit(access.ledger, access.publisher, plan.source, kind=plan.kind, options=plan.options)


def retry(
    access: Access,
    run: str,
    *,
    indexes: Collection[int] | None = None,
    errors: bool = True,
    is_anew: bool = False,
) -> Retried:
    """Queues items of a run again; see `producer.items.retry.retry_items`.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: the run is in a state that does not allow it.
        UsageError: there is nothing to retry.
    """
    put_back = kinds.of(access.store.info(run).kind).retry()
    access.require_broker()
    return put_back(
        access.ledger, access.publisher, access.store, run, indexes=indexes, errors=errors, is_anew=is_anew
    )


def control(access: Access, run: str, action: str) -> str:
    """Pauses, resumes or cancels a run, publishes the wake-ups that follow from it, and returns its state.

    Args:
        access: access to Redis.
        run: the run's id.
        action: `pause`, `resume` or `cancelled`.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: the run is in a state that does not allow it.
    """
    state, wakes = access.ledger.control(run, action)
    if wakes:
        access.publisher.publish(wakes)
    if state in _REACHED[action]:
        return state
    if state in FINAL_STATES:
        raise RunStateError(f"run {run} is {state} already", hint=f"`proctor retry {run}` works on it again")
    raise RunStateError(f"run {run} is {state}", hint=f"`proctor watch {run}` shows it")


def follow(
    access: Access, run: str, *, timeout_s: float | None = None, gates: Sequence[Gate] = ()
) -> Iterator[Event]:
    """Yields the events of a run; the last one contains its document, even if the run had already ended.

    A caller that wants no more events closes the iterator; the run goes on. Following it again starts
    from its current state.

    Args:
        access: access to Redis.
        run: the run's id.
        timeout_s: after this time the run is ended as incomplete; None: no limit.
        gates: conditions that fail the run.

    Raises:
        UnknownRunError: there is no such run (any more).
        RedisUnreachableError: Redis was unavailable for longer than the patience of the settings.
    """
    from producer.following import events, follower  # noqa: PLC0415 - they load the ledger

    narrator = events.Narrator()
    for progress in follower.Follower(access, run, timeout_s=timeout_s):
        yield from narrator.told(progress)
    yield events.FinishedEvent(document=report(access, run, gates=gates))


def report(
    access: Access,
    run: str,
    files: Sequence[ReportTarget] = (),
    *,
    gates: Sequence[Gate] = (),
    with_text: bool = True,
) -> AnyRun:
    """Writes reports of a run, whether it has ended or not, and returns its document.

    Args:
        access: access to Redis.
        run: the run's id.
        files: format and destination of each report: a `ReportFile`, which appears at its path when it is
            complete, or a `ReportStream`, an open file.
        gates: conditions that fail the run.
        with_text: whether reports contain the texts of turns.

    Raises:
        UnknownRunError: there is no such run.
        UsageError: runs of this kind have no such report, or a file cannot be written.
        InfrastructureError: a disk is full.
    """
    from producer.reporting import write_reports  # noqa: PLC0415 - it loads the ledger

    return write_reports(access, access.store.info(run), files, gates=gates, with_text=with_text)
