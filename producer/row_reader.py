"""Rows of a run by their position, some at a time, whatever its size: turns are found by bisection."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from producer import kinds
from producer.report.shown_item import ShownItem
from shared.codecs.item_rows import ItemRow
from shared.codecs.turn_batches import unpack_batch
from shared.kinds import Storage
from shared.runs import RunInfo, RunStore
from shared.runs.pages import ChunkFields
from shared.runs.served import window_named

PAGE: Final = 50
"""Rows of a page."""
WAITS: Final = "waits"
"""What is said of an item that may still get a result."""


def state_of(info: RunInfo) -> str:
    """Returns a key of what a run has to show; it changes with each result."""
    return f"{info.run}:{info.state}:{info.generation}:{info.done}"


def shown_of(info: RunInfo) -> Callable[[Any], ShownItem]:
    """Returns what makes an item of a row with its input; one without a result waits until its run ends."""
    shown = kinds.of(info.kind).shown(info)
    if info.is_final:
        return shown
    return lambda row: shown(row) if row.code else shown(row)._replace(word=WAITS, reason="")


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
        self._store, self.info = store, info
        self.shown = shown_of(info)
        """Makes an item of a row with its input."""

    def page(self, first: int) -> RowsPage:
        """Returns the page that begins with a position."""
        first = max(0, min(first, self.info.total))
        last = min(self.info.total, first + PAGE)
        items = [self.shown(row) for row in self.rows(first, last)]
        return RowsPage(items, first, last if last < self.info.total else None)

    def chosen(self, positions: Sequence[int], first: int) -> RowsPage:
        """Returns the page that begins with a position, of some positions in their order."""
        left = [position for position in positions if position >= first]
        rows = self.at(left[:PAGE])
        return RowsPage([self.shown(row) for row in rows], first, left[PAGE] if len(left) > PAGE else None)

    def row(self, position: int) -> Any | None:
        """Returns the row of one item with its input."""
        return next(iter(self.at([position])), None) if 0 <= position < self.info.total else None

    def rows(self, first: int, last: int, *, with_payload: bool = True) -> Sequence[Any]:
        """Reads the rows of some positions; those without a result have no code."""
        if self.info.kind.storage is Storage.LIST:
            items = self._store.item_reader(self.info.run, with_open=True, with_payload=with_payload)
            return items.rows(range(first, last))
        chunks = list(self._chunks(first, last))
        reader = self._store.reader(self.info.run, with_open=True, with_payload=with_payload)
        return [row for page in reader.pages(chunks) for row in page if first <= row.index < last]

    def heads(self, first: int, last: int) -> Sequence[ItemRow]:
        """Reads the rows of some positions of a list of items without their lines, in a third of the time."""
        return self._store.item_reader(self.info.run, with_open=True).heads(range(first, last))

    def at(self, positions: Sequence[int]) -> Sequence[Any]:
        """Reads rows with their inputs; they need not be neighbours."""
        if self.info.kind.storage is Storage.LIST:
            items = self._store.item_reader(self.info.run, with_open=True, with_payload=True)
            return items.rows(positions)
        if window_named(self.info.run):
            pages = self._store.pages(self.info.run, with_payload=True)
            return [row for page in pages for row in page if row.index in positions]
        return [row for position in positions for row in self.rows(position, position + 1)]

    def _chunks(self, first: int, last: int) -> Iterator[ChunkFields]:
        """Yields the chunks of turns in which some positions may be, of each generation."""
        for _, found in groupby(self._store.chunks(self.info.run), key=lambda chunk: chunk.generation):
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
        inputs = self._store.inputs(self.info.run, chunk.batches)
        return min((unpack_batch(batch)[0][0] for batch in inputs if batch), default=0)
