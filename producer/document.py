"""The one JSON document of a run, and the exit code it stands for: what `--json` prints, at any time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.aggregate.calls import NO_CALLS
from producer.aggregate.cases import CaseTotals
from producer.aggregate.gates import Gate, judge_gates
from producer.aggregate.query_totals import QueryTotals
from producer.aggregate.statistics import rates
from producer.aggregate.turns import TurnTotals
from producer.report.protocol import Report, Totals
from shared.contracts.case_run import GIT_KEY, CaseRun
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.errors import UsageError
from shared.kinds import CASES, QUERIES, TURNS, Kind
from shared.names import RunState
from shared.runs import RunInfo, RunStore

SCHEMA_VERSION: Final = 1

EXIT_DONE: Final = 0
EXIT_NOT_GOOD: Final = 1
EXIT_INFRASTRUCTURE: Final = 3
EXIT_INCOMPLETE: Final = 4


def run_document(
    store: RunStore,
    run: str,
    *,
    reports: Sequence[Report] = (),
    files: Sequence[Mapping[str, str]] = (),
    gates: Sequence[Gate] = (),
    with_text: bool = False,
) -> dict[str, Any]:
    """Reads a run once, from the first row to the last, and says what became of it.

    Args:
        store: reads the run.
        run: its id.
        reports: are written in the same pass.
        files: `format` and `path` of each file that is being written.
        gates: what must not be true of it.
        with_text: whether the reports show what was said in turns.

    Raises:
        UnknownRunError: there is no such run.
        RedisUnreachableError: Redis stays away.
    """
    info = store.info(run)
    totals = totals_of(info.kind)
    for rows in pages_of(store, info, with_text=with_text):
        totals.add(rows)
        for report in reports:
            report.page(rows)
    document = document_of(info, totals, files=files, gates=gates)
    for report in reports:
        report.end(document)
    return document


def totals_of(kind: Kind) -> Totals:
    """Begins to count the rows of a run.

    Raises:
        UsageError: this version does not know the kind.
    """
    return _known(kind).totals()


def pages_of(store: RunStore, info: RunInfo, *, with_text: bool = False) -> Iterator[Sequence[Any]]:
    """Yields the rows of a run in input order, page by page.

    Args:
        store: reads the run.
        info: the run.
        with_text: whether rows of turns bring what was said; other rows always bring what reports show.

    Raises:
        UsageError: this version does not know the kind.
        RedisUnreachableError: Redis stays away.
    """
    yield from _known(info.kind).pages(store, info.run, with_text)


def document_of(
    info: RunInfo,
    totals: Totals,
    *,
    files: Sequence[Mapping[str, str]] = (),
    gates: Sequence[Gate] = (),
) -> dict[str, Any]:
    """Puts together what is known of a run; `gates` stand in it only when there are any."""
    counts = totals.counts(info.total)
    summary = {**_expected(info), **totals.summary(), **_circumstances(info)}
    document = {
        "schema_version": SCHEMA_VERSION,
        "run_id": info.run,
        "kind": info.kind.name,
        "state": info.state.value,
        "counts": counts,
        "summary": {**summary, "rates": {**_outcome_rates(counts), **summary.get("rates", {})}},
        "files": [dict(file) for file in files],
        "exit": exit_code(info.state, counts, misses=totals.misses(), is_cut=is_cut_by_failure(info, counts)),
    }
    if gates:
        document["gates"] = judged = judge_gates(gates, document)
        if document["exit"] == EXIT_DONE and not all(gate["met"] for gate in judged):
            document["exit"] = EXIT_NOT_GOOD
    return document


def is_cut_by_failure(info: RunInfo, counts: Mapping[str, int]) -> bool:
    """Tells whether the first failure was to end the run, and did."""
    fails_fast = info.kind == CASES and CaseRun.from_snapshot(info.snapshot).fail_fast
    return fails_fast and info.state == RunState.INCOMPLETE and bool(counts["failed"] or counts["error"])


def exit_code(
    state: RunState, counts: Mapping[str, int], *, misses: bool = False, is_cut: bool = False
) -> int:
    """Says how a command that waited for the run exits; a run that goes on has nothing wrong so far.

    >>> exit_code(RunState.FINISHED, {"error": 0}), exit_code(RunState.FINISHED, {"error": 2})
    (0, 1)
    >>> exit_code(RunState.CANCELLED, {"error": 2}), exit_code(RunState.ABORTED, {"error": 2})
    (4, 3)
    """
    if is_cut:
        return EXIT_NOT_GOOD
    match state:
        case RunState.FINISHED:
            return EXIT_NOT_GOOD if counts["error"] or misses else EXIT_DONE
        case RunState.ABORTED:
            return EXIT_INFRASTRUCTURE
        case RunState.CANCELLED | RunState.INCOMPLETE:
            return EXIT_INCOMPLETE
        case RunState.LOADING | RunState.RUNNING | RunState.PAUSED | RunState.CANCELLING:
            return EXIT_DONE


def _outcome_rates(counts: Mapping[str, int]) -> dict[str, Any]:
    """Shares of outcomes in all items; a turn that was decided has passed."""
    passed = counts["passed"] + counts["decided"]
    return rates({"pass_rate": (passed, counts["total"]), "error_rate": (counts["error"], counts["total"])})


def _expected(info: RunInfo) -> dict[str, Any]:
    """What is told of a run before it has results."""
    return {"calls": dict(NO_CALLS)} if LiveRun.from_snapshot(info.snapshot) else {}


def _circumstances(info: RunInfo) -> dict[str, Any]:
    """What is told beside the numbers: time, where it came from, and the settings that matter."""
    duration_ms = info.duration_ms
    told: dict[str, Any] = {
        "source": info.source,
        "duration_s": None if duration_ms is None else round(duration_ms / 1000, 3),
    }
    per_s = round(1000 * info.total / duration_ms, 1) if duration_ms else None
    if info.kind == TURNS:
        live = LiveRun.from_snapshot(info.snapshot)
        return {
            **told,
            **({"model": live.model, "live": live.live.value} if live else {}),
            "threads": info.threads,
            "summary_policy": info.snapshot.get("summary_policy", ""),
            "namespace": info.namespace,
            "turns_per_s": per_s,
        }
    if info.kind == CASES:
        bench = CaseRun.from_snapshot(info.snapshot)
        return {
            **told,
            "name": bench.name,
            "git": info.snapshot.get(GIT_KEY),
            "mode": bench.mode,
            "cases": bench.cases,
            "repeat": bench.repeat,
            "models_asked": list(bench.models),
            "judge_model": bench.judge_model,
            "judge_models": list(bench.judges),
            "concurrency": bench.concurrency,
            "cases_per_s": per_s,
        }
    run = QueryRun.from_snapshot(info.snapshot)
    settings = {"api_url": run.api_url, "delay_s": run.delay_s, "concurrency": run.concurrency}
    return {**told, **settings, "queries_per_s": per_s}


class _Read(NamedTuple):
    """How the rows of a kind are read and counted."""

    pages: Callable[[RunStore, str, bool], Iterator[Sequence[Any]]]
    totals: Callable[[], Totals]


_KINDS: Final[Mapping[Kind, _Read]] = {
    TURNS: _Read(lambda store, run, with_text: store.pages(run, with_payload=with_text), TurnTotals),
    CASES: _Read(lambda store, run, _: store.item_pages(run), CaseTotals),
    QUERIES: _Read(lambda store, run, _: store.item_pages(run), QueryTotals),
}


def _known(kind: Kind) -> _Read:
    """Finds how a kind is read."""
    if kind not in _KINDS:
        raise UsageError(f"this version of Proctor does not know runs of kind {kind}")
    return _KINDS[kind]
