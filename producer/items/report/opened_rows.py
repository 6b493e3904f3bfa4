"""Opens the stored rows of single items: the result, why there is none, and the cells that tables show."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from producer.item_ids import item_id
from shared.codecs.item_rows import POISON_CODE, POISON_ERROR, ItemRow
from shared.kinds import Kind
from shared.names import Outcome

COLUMNS: Final = ("item", "outcome", "attempts", "latency_ms", "cost_usd", "error_code", "error_message")
"""Of every table; the result keys that a kind declares as its columns follow."""

_decode = msgspec.json.decode


class StoredError(msgspec.Struct, frozen=True):
    """Why an item has no result."""

    code: str
    message: str


class StoredFailure(msgspec.Struct, frozen=True):
    """The stored line of an item that ended in an error."""

    error: StoredError
    result: dict[str, Any] | None = None
    """What there is all the same."""


failure_of = msgspec.json.Decoder(StoredFailure).decode


class OpenedItem(NamedTuple):
    """A row with its result."""

    row: ItemRow
    """As it is stored."""
    result: dict[str, Any] | None
    """None where there is none: an error, or the run ended before the item was worked on."""
    code: str
    """Error code; empty when there is a result."""
    message: str
    """What the error says."""


def opened(rows: Iterable[ItemRow]) -> Iterator[OpenedItem]:
    """Opens rows one by one."""
    for row in rows:
        if row.code == POISON_CODE:
            yield OpenedItem(row, None, *POISON_ERROR)
        elif row.outcome is Outcome.ERROR:
            line = failure_of(row.line)
            yield OpenedItem(row, line.result, line.error.code, line.error.message)
        else:
            is_answer = row.outcome is not Outcome.SKIPPED
            yield OpenedItem(row, _decode(row.line) if is_answer else None, "", "")


def poisoned(row: ItemRow) -> tuple[str, str, Any]:
    """Returns code, message and result of an item that no worker survived."""
    [item] = opened([row])
    return item.code, item.message, item.result


def cells_of(kind: Kind, item: OpenedItem, columns: Sequence[str]) -> list[Any]:
    """Returns the cells of an item under `COLUMNS` and those of its kind; a list or object becomes JSON."""
    row, result = item.row, item.result or {}
    cells = [
        item_id(kind, row.index),
        row.outcome.value,
        row.attempts,
        row.latency_ms,
        row.cost_usd,
        item.code,
        item.message,
        *(result.get(key) for key in columns),
    ]
    return [_cell(value) for value in cells]


def _cell(value: Any) -> Any:
    """Returns a value as a cell has it."""
    if value is None:
        return ""
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
