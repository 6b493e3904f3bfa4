"""Writes results as JSON Lines or as one JSON document, around the stored lines, which are not parsed."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Final

import msgspec

from producer.item_ids import item_id
from producer.items.documents import ItemsRun
from producer.items.report.opened_rows import poisoned as poisoned_item
from producer.report.json_document import JsonDocument
from shared.clock import iso_utc
from shared.codecs.item_rows import CACHED, POISON_CODE, ItemRow
from shared.names import Outcome
from shared.runs import RunInfo

Line = Callable[[ItemRow], bytes]
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class ItemsJsonlReport:
    """Writes rows as they go by.

    Args:
        out: where to.
        line: composes the line of a row, see `line_writer`.
    """

    def __init__(self, out: BinaryIO, line: Line) -> None:
        self._out, self._line = out, line

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Writes some rows, one a line."""
        self._out.write(b"".join(map(self._line, rows)))

    def end(self, document: ItemsRun) -> None:
        """Has nothing to add."""


def json_report(out: BinaryIO, line: Line) -> JsonDocument:
    """Begins one JSON document of a run."""
    return JsonDocument(out, lambda rows: b"".join(map(line, rows)))


def line_writer(
    info: RunInfo,
    *,
    further: Callable[[ItemRow], Mapping[str, Any]] | None = None,
    poisoned: Callable[[ItemRow], tuple[str, str, Any]] = poisoned_item,
) -> Line:
    """Returns what composes the line of a row, with its line end.

    Args:
        info: the run.
        further: makes the further keys of a row, from its input.
        poisoned: returns error code, message and result of an item that no worker survived.
    """

    def line(row: ItemRow) -> bytes:
        is_there = bool(row.started_ms)
        envelope = {
            "run_id": info.run,
            "item_id": item_id(info.kind, row.index),
            "kind": info.kind.name,
            "index": row.index,
            "outcome": row.outcome.value,
            "attempts": row.attempts,
            "cached": CACHED in row.code,
            "started_at": iso_utc(row.started_ms) if is_there else None,
            "finished_at": iso_utc(row.finished_ms) if is_there else None,
            "latency_ms": row.latency_ms,
            "cost_usd": row.cost_usd,
            **(further(row) if further else {}),
        }
        return _encode(envelope).encode()[:-1] + b"," + _end(row, poisoned) + b"}\n"

    return line


def _end(row: ItemRow, poisoned: Callable[[ItemRow], tuple[str, str, Any]]) -> bytes:
    """Writes error and result, without the braces around them."""
    if row.code == POISON_CODE:
        code, message, result = poisoned(row)
        return msgspec.json.encode({"error": {"code": code, "message": message}, "result": result})[1:-1]
    if row.outcome is Outcome.ERROR:
        return row.line[1:-1]
    if row.outcome is Outcome.SKIPPED:
        return (row.line[1:-1] + b"," if row.code else b"") + b'"error":null,"result":null'
    return b'"error":null,"result":' + row.line
