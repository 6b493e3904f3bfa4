"""Opens the stored rows of a queries run: the result with the document's nine keys, and why there is none."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from shared.item_rows import POISON_CODE, ItemRow
from shared.names import Outcome
from worker.queries.reply import Reply
from worker.queries.verdict import query_result

POISONED: Final = "no worker survived it"
"""The error of a query that every worker died of."""

_decode = msgspec.json.decode


class OpenedQuery(NamedTuple):
    """A row with its result."""

    row: ItemRow
    """As it is stored."""
    result: dict[str, Any] | None
    """The nine keys of the document; None when the run ended before it was sent."""
    code: str
    """Error code; empty when it has an answer."""


def opened(rows: Iterable[ItemRow]) -> Iterator[OpenedQuery]:
    """Opens rows one by one."""
    for row in rows:
        if row.code == POISON_CODE:
            yield OpenedQuery(row, query_result(_decode(row.line), Reply(None, 0, 0, POISONED)), "poison")
        elif row.outcome is Outcome.ERROR:
            line = _decode(row.line)
            yield OpenedQuery(row, line["result"], str(line["error"]["code"]))
        else:
            yield OpenedQuery(row, _decode(row.line) if row.code else None, "")
