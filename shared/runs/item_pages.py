"""Reads the results of a cases or queries run in input order, a page at a time.

Each item has one field, named by its position, and a retry replaces its value. Therefore a page is a range of
positions, and nothing is sorted or merged.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from shared import keys
from shared.codecs.item_rows import POISON_CODE, ItemRow, unpack_item
from shared.ledger import Try
from shared.ledger.wire import try_from

PAGE_ITEMS: Final = 200
"""Results fetched in one round trip; an answer may be large."""

Fetch = Callable[[Sequence[str]], Sequence[bytes | None]]
"""Reads the values of some fields, in order."""


class ItemReader:
    """Turns positions into pages of rows.

    Args:
        results: reads result fields.
        items: reads inputs; called only for items without a result and for poisoned ones.
        with_open: whether items without a result get a row, as in a run that has ended.
        with_payload: whether rows contain the item's input.
    """

    def __init__(self, results: Fetch, items: Fetch, *, with_open: bool, with_payload: bool = False) -> None:
        self._results = results
        self._items = items
        self._with_open = with_open
        self._with_payload = with_payload

    def pages(self, total: int, *, first: int = 0) -> Iterator[list[ItemRow]]:
        """Yields the rows of a run in input order.

        Args:
            total: its items.
            first: the position to begin with.
        """
        for start in range(first, total, PAGE_ITEMS):
            rows = self.rows(range(start, min(start + PAGE_ITEMS, total)))
            if rows:
                yield rows

    def rows(self, indexes: Sequence[int]) -> list[ItemRow]:
        """Returns the rows of some positions."""
        names = [str(index) for index in indexes]
        rows = list[ItemRow]()
        for index, value in zip(indexes, self._results(names) if names else (), strict=True):
            if value is not None:
                rows.append(unpack_item(index, value.partition(b"|")[2]))
            elif self._with_open:
                rows.append(ItemRow(index, "", b""))
        if self._with_payload and rows:
            inputs = self._items([str(row.index) for row in rows])
            rows = [row._replace(payload=value or b"{}") for row, value in zip(rows, inputs, strict=True)]
        return self._with_inputs(rows)

    def _with_inputs(self, rows: list[ItemRow]) -> list[ItemRow]:
        """Puts the input into rows that have no line of their own."""
        bare = [str(row.index) for row in rows if row.code in ("", POISON_CODE)]
        if not bare:
            return rows
        inputs = dict(zip(bare, self._items(bare), strict=True))
        return [row._replace(line=inputs.get(str(row.index)) or row.line) for row in rows]


def read_tries(client: Any, run: str) -> dict[int, Try]:
    """Reads which items of a run are to be tried again, and when, by the time of day.

    Args:
        client: a Redis client that answers bytes.
        run: its id.
    """
    pipeline = client.pipeline(transaction=False)
    pipeline.hgetall(keys.tries_key(run))
    pipeline.hget(keys.CLOCK_KEY, "back")
    found, back_ms = pipeline.execute()
    noted = [try_from(index.decode(), value.decode()) for index, value in found.items()]
    # Due times are on a clock that is never set back, see `steady` in `shared/ledger/lua/lib/server.lua`.
    return {int(n.index): n._replace(not_before_ms=n.not_before_ms - int(back_ms or 0)) for n in noted}
