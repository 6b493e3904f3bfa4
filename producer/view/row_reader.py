"""Rows of a run by their position, some at a time, whatever its size: turns are found by bisection."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from producer import kinds
from producer.report.shown_item import ShownItem
from shared.codecs.turn_batches import DECISION_OF_CODE, unpack_batch
from shared.kinds import Storage
from shared.names import Outcome
from shared.runs import RunInfo, RunStore
from shared.runs.pages import ChunkFields, TurnRow

PAGE: Final = 50
"""Rows of a page."""
SCANNED: Final = 2_000
"""Rows that are read together while some of one outcome are looked for."""
LONGEST_SCAN: Final = 40_000
"""Rows that one page is searched for; the next page goes on from there."""


class RowsPage(NamedTuple):
    """Some rows of a run."""

    items: Sequence[ShownItem]
    first: int
    """Position that the page begins with."""
    after: int | None
    """Position that the next page begins with; None after the last row."""


class RowReader:
    """Reads rows of one run.

    Args:
        store: reads the run.
        info: the run.
    """

    def __init__(self, store: RunStore, info: RunInfo) -> None:
        self._store, self._info = store, info
        self._shown = kinds.of(info.kind).shown(info)

    def page(self, first: int, outcome: str = "") -> RowsPage:
        """Returns a page.

        Args:
            first: the position that it begins with.
            outcome: only rows that ended so; empty: all.
        """
        first = max(0, min(first, self._info.total))
        last = min(self._info.total, first + (LONGEST_SCAN if outcome else PAGE))
        found = list[Any]()
        for start in range(first, last, SCANNED if outcome else PAGE):
            end = min(last, start + (SCANNED if outcome else PAGE))
            for row in self._rows(start, end):
                if not outcome or word_of(row) == outcome:
                    found.append(row)
                if len(found) == PAGE and outcome:
                    return RowsPage(self._items(found), first, row.index + 1)
        return RowsPage(self._items(found), first, last if last < self._info.total else None)

    def item(self, position: int) -> ShownItem | None:
        """Returns one item; None where the run has none at this position."""
        row = self.row(position)
        return None if row is None else self._shown(row)

    def row(self, position: int) -> Any | None:
        """Returns the row of one item with its input."""
        if not 0 <= position < self._info.total:
            return None
        return next((row for row in self._rows(position, position + 1) if row.index == position), None)

    def _items(self, rows: Sequence[Any]) -> list[ShownItem]:
        return [self._shown(row) for row in rows]

    def _rows(self, first: int, last: int) -> Sequence[Any]:
        """Reads the rows of some positions with their inputs; those without a result have no code."""
        if self._info.kind.storage is Storage.LIST:
            items = self._store.item_reader(self._info.run, with_open=True, with_payload=True)
            return items.rows(range(first, last))
        chunks = list(self._chunks(first, last))
        reader = self._store.reader(self._info.run, with_open=True, with_payload=True)
        return [row for page in reader.pages(chunks) for row in page if first <= row.index < last]

    def _chunks(self, first: int, last: int) -> Iterator[ChunkFields]:
        """Yields the chunks of turns in which some positions may be, of each generation."""
        for _, found in groupby(self._store.chunks(self._info.run), key=lambda chunk: chunk.generation):
            generation = list(found)
            low, high = 0, len(generation)
            while low < high:  # the last chunk that begins at `first` or before it
                middle = (low + high) // 2
                low, high = (middle + 1, high) if self._begins(generation[middle]) <= first else (low, middle)
            for chunk in generation[max(0, low - 1) :]:
                if self._begins(chunk) >= last:
                    break
                yield chunk

    def _begins(self, chunk: ChunkFields) -> int:
        """Returns the position of the first turn of a chunk."""
        inputs = self._store.inputs(self._info.run, chunk.batches)
        return min((unpack_batch(batch)[0][0] for batch in inputs if batch), default=0)


def word_of(row: Any) -> str:
    """Returns how a row ended, as filters name it: of turns what was decided."""
    if not row.code:
        return Outcome.SKIPPED.value
    if isinstance(row, TurnRow):
        return DECISION_OF_CODE[row.code[0]] or Outcome.ERROR.value
    return str(row.outcome.value)
