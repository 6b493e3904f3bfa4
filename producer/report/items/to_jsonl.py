"""Writes results as JSON Lines or as one JSON document, around the stored lines, which are not parsed."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec

from producer import kinds
from producer.item_ids import item_id
from producer.report.json_document import JsonDocument
from shared.clock import iso_utc
from shared.codecs.item_rows import CACHED, POISON_CODE, ItemRow
from shared.kinds import Kind
from shared.names import Outcome
from shared.runs import RunInfo


class ItemsJsonlReport:
    """Writes rows as they go by.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._line = out, line_writer(info)

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Writes some rows, one a line."""
        self._out.write(b"".join(map(self._line, rows)))

    def end(self, document: Mapping[str, Any]) -> None:
        """Has nothing to add."""


def json_report(out: BinaryIO, info: RunInfo) -> JsonDocument:
    """Begins one JSON document of a run."""
    line = line_writer(info)
    return JsonDocument(out, lambda rows: b"".join(map(line, rows)))


def line_writer(info: RunInfo) -> Callable[[ItemRow], bytes]:
    """Returns what composes the line of a row, with its line end."""
    declared = kinds.of(info.kind).row_keys
    further = declared.get()(info) if declared else None

    def line(row: ItemRow) -> bytes:
        is_there = bool(row.code)
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
        return (
            json.dumps(envelope, separators=(",", ":")).encode()[:-1] + b"," + _end(info.kind, row) + b"}\n"
        )

    return line


def _end(kind: Kind, row: ItemRow) -> bytes:
    """Writes error and result, without the braces around them."""
    if row.code == POISON_CODE:
        code, message, result = kinds.of(kind).poisoned.get()(row)
        return msgspec.json.encode({"error": {"code": code, "message": message}, "result": result})[1:-1]
    if row.outcome is Outcome.ERROR:
        return row.line[1:-1]
    return b'"error":null,"result":' + (row.line if row.code else b"null")
