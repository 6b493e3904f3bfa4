"""HTML reports of turns and queries runs, made of real rows by the real reports, without a queue."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from producer.aggregate.gates import Gate
from producer.document import document_of, totals_of
from producer.report.formats import format_of
from shared.codecs.item_rows import ItemRow
from shared.codecs.turn_lines import expand
from shared.contracts.query_run import QueryRun
from shared.kinds import QUERIES
from shared.names import RunState
from shared.runs import RunInfo, TurnRow
from tests.support.conversations import POLICY, batch, felt, shape, signals
from tests.support.query_results import baseline
from tests.support.run_infos import info as turns_info
from worker.breakpoint.thread_decider import decide_thread
from worker.queries.checks import outcome

PAGE: Final = 500
STORM: Final = 3
"""The turn of `conversation` whose proposal a freeze discards."""


def write_page(path: Path, info: RunInfo, rows: Sequence[Any], *, gates: Sequence[Gate] = ()) -> Path:
    """Writes a report as the command does, page by page."""
    totals = totals_of(info.kind)
    with path.open("wb") as out:
        report = format_of(info.kind, "html")(out, info)
        for first in range(0, len(rows), PAGE):
            some = rows[first : first + PAGE]
            totals.add(some)
            report.page(some)
        report.end(document_of(info, totals, gates=gates))
    return path


def turns_run(total: int, **changes: Any) -> RunInfo:
    """A turns run as the store reads it."""
    return replace(turns_info(RunState.FINISHED, total), **changes)


def queries_run(total: int, *, source: str = "baselines.json", **changes: Any) -> RunInfo:
    """A queries run as the store reads it."""
    snapshot: dict[str, Any] = {
        "v": 1,
        "source": source,
        "queries": msgspec.to_builtins(QueryRun(delay_s=2.0)),
    }
    kept = {"run": "eval-2026-02-10T14-30-00", "kind": QUERIES, "snapshot": snapshot}
    return replace(turns_info(RunState.FINISHED, total), **{**kept, **changes})


def thread_rows(thread: str, turns: Sequence[dict[str, Any]], first: int = 0) -> list[TurnRow]:
    """Rows of one thread, decided by the worker's own code."""
    lines_in = [{"threadId": thread, "message": "Let us begin.", **each} for each in turns]
    waiting = [batch(lines_in, POLICY, first)]
    [block] = decide_thread(thread=thread, state=b"", batches=waiting, known={}).blocks
    lines = expand(block.codes, block.lines)
    return [
        TurnRow(first + at, code, line, 1_000, 1_004, 1)
        for at, (code, line) in enumerate(zip(block.codes, lines, strict=True))
    ]


def conversation(thread: str, first: int = 0) -> list[TurnRow]:
    """Eight turns: each decision, a freeze, an error, and one that was never decided at the end."""
    calm, upset = felt(0.1), felt(0.95)
    turns: list[dict[str, Any]] = [
        {"signals": signals("pivot"), "modelShape": shape("boats"), "affectSignal": calm},
        {"message": "ok"},
        {"signals": signals("open_loop_created"), "affectSignal": upset},
        {"signals": signals("risk_or_conflict"), "affectSignal": upset, "modelShape": shape("storm")},
        {"thread_memento_etag": "99"},
        {"message": "thanks"},
        {},
    ]
    rows = thread_rows(thread, turns, first)
    return [*rows, TurnRow(first + len(rows), "", b"", 0, 0, 0)]


def with_messages(rows: Sequence[TurnRow], thread: str) -> list[TurnRow]:
    """The same rows with their input, as reports get them; what was proposed is that of `conversation`."""
    return [
        row._replace(
            payload=json.dumps(
                {
                    "threadId": thread,
                    "message": f"What about {row.index}?",
                    "role": ("user", "assistant")[at % 2],
                    "ts": f"2026-03-02T09:{at % 60:02d}:00Z",
                    **({"modelShape": shape("storm")} if at == STORM else {}),
                }
            ).encode()
        )
        for at, row in enumerate(rows)
    ]


def query_rows(results: Sequence[dict[str, Any]], *, never_sent: int = 0) -> list[ItemRow]:
    """Rows of results, then of queries that the run ended without."""
    rows = [_query_row(at, result) for at, result in enumerate(results)]
    for at in range(never_sent):
        line = json.dumps(baseline(f"Q-{90 + at}")).encode()
        rows.append(ItemRow(len(rows), "", line))
    return rows


def _query_row(at: int, result: dict[str, Any]) -> ItemRow:
    """A result as the store reads it."""
    code = {"passed": "p", "failed": "f", "error": "x"}[outcome(result).value]
    stored: dict[str, Any] = result
    if code == "x":
        stored = {"error": {"code": "api_timeout", "message": result["error"]}, "result": result}
    return ItemRow(at, code, json.dumps(stored).encode(), 1_000, 2_000, 1, 1_234)
