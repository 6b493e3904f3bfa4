"""Reads the results of a turns run in input order, a page at a time, with memory that does not grow.

A chunk holds consecutive lines, so the rows of one chunk, sorted, are one page; nothing is sorted across
chunks. Turns that were retried stand in chunks of their own, in input order too: they are merged in, and the
highest generation wins.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import groupby, islice, repeat
from operator import attrgetter
from typing import Final, NamedTuple

from shared.codecs.turn_batches import Block, unpack_batch, unpack_block
from shared.codecs.turn_lines import expand

POISONED: Final = "x0p"
"""Code of a turn that no worker survived."""
BATCHES_AT_ONCE: Final = 64
"""Result fields fetched in one round trip: 1 MB or so, which still fits a processor's cache."""
PAGE: Final = 200
"""Rows of a page where the input allows it: 300 kB when written out, which fits that cache too."""


class TurnRow(NamedTuple):
    """The result of one turn, or the lack of one."""

    index: int  # type: ignore[assignment] # hides tuple.index, which is not used
    """Position in the input, from 0."""
    code: str
    """How it ended, see `shared.codecs.turn_batches`; empty for a turn that the run ended without."""
    line: bytes
    """The result as JSON; for a poisoned turn its input line, a newline and the thread's state."""
    started_ms: int
    """Time when the worker began with the turn's block, epoch milliseconds; 0 without a result."""
    finished_ms: int
    """Time when the block was decided; 0 without a result."""
    attempts: int
    """Results it has had so far, this one included: above 1 after `retry`."""
    payload: bytes = b""
    """Its line of the input, if requested."""


Page = list[TurnRow]
"""Rows in input order."""


_row: Final[Callable[[tuple[int, str, bytes, int, int, int, bytes]], TurnRow]] = partial(
    tuple.__new__, TurnRow
)
"""`TurnRow` from a tuple, in half the time of its constructor: a million rows are made of a run."""


class ChunkFields(NamedTuple):
    """Which fields hold the results of a chunk."""

    generation: int
    """0 for the load, then one for each retry."""
    number: int
    """Position of the chunk in its generation."""
    batches: Sequence[str]
    """Ids of its batches: fields of the results and of the items."""


def chunk_fields(chunk: str, batches: int) -> ChunkFields:
    """Reads a chunk's place from its id: `17` of the load, `2.5` of the second retry.

    >>> chunk_fields("2.5", 2)
    ChunkFields(generation=2, number=5, batches=['2.5.0', '2.5.1'])
    """
    generation, _, number = chunk.rpartition(".")
    return ChunkFields(int(generation or 0), int(number), [f"{chunk}.{at}" for at in range(batches)])


Fetch = Callable[[Sequence[str]], Sequence[bytes | None]]
"""Reads the values of some fields, in order."""


class PageReader:
    """Turns chunks into pages of rows.

    Args:
        results: reads result fields.
        items: reads input batches; without payloads, only for turns without a result and for poisoned ones.
        with_open: whether turns without a result get a row, as in a run that ended early.
        with_payload: whether rows contain the turn's line of the input.
    """

    def __init__(self, results: Fetch, items: Fetch, *, with_open: bool, with_payload: bool = False) -> None:
        self._results = results
        self._items = items
        self._with_open = with_open
        self._with_payload = with_payload

    def pages(self, chunks: Sequence[ChunkFields]) -> Iterator[Page]:
        """Yields the rows of all chunks in input order, each index once."""
        generations = [list(found) for _, found in groupby(sorted(chunks), key=attrgetter("generation"))]
        if len(generations) == 1:
            yield from (page for _, pages in self._by_chunk(generations[0]) for page in pages)
            return
        streams = [
            (row for _, pages in self._by_chunk(found) for page in pages for row in page)
            for found in generations
        ]
        rows = (_latest(list(same)) for _, same in groupby(merge(*streams, key=_by_index), key=_by_index))
        while page := list(islice(rows, PAGE)):
            yield page

    def by_chunk(self, chunks: Iterable[ChunkFields]) -> Iterator[tuple[ChunkFields, Page]]:
        """Yields each chunk with its own rows in input order, fetching several chunks at a time."""
        for chunk, pages in self._by_chunk(chunks):
            yield chunk, [row for page in pages for row in page]

    def complete(self, chunk: ChunkFields) -> Iterator[Page] | None:
        """Returns the pages of one chunk; None unless all of its turns have a result."""
        values = self._results(chunk.batches)
        return None if None in values else self._composed([chunk], values)[0]

    def _by_chunk(self, chunks: Iterable[ChunkFields]) -> Iterator[tuple[ChunkFields, Iterator[Page]]]:
        """Yields each chunk with its pages; the results of several chunks are fetched in one call."""
        for group in _fetch_groups(chunks):
            values = self._results([batch for chunk in group for batch in chunk.batches])
            yield from zip(group, self._composed(group, values), strict=True)

    def _composed(
        self, chunks: Sequence[ChunkFields], values: Sequence[bytes | None]
    ) -> list[Iterator[Page]]:
        """Opens the results of some chunks."""
        fields = [batch for chunk in chunks for batch in chunk.batches]
        blocks = dict(zip(fields, map(_block, values), strict=True))
        special = self._special({batch: block for batch, block in blocks.items() if _is_special(block)})
        payloads = dict(zip(fields, self._items(fields), strict=True)) if self._with_payload else {}

        def rows(batch: str) -> list[TurnRow]:
            block, payload = blocks[batch], payloads.get(batch)
            if block is not None and batch not in special:
                return _rows(block, payload)
            return special[batch] if payload is None else _with_inputs(special[batch], payload)

        return [_in_order(map(rows, chunk.batches)) for chunk in chunks]

    def _special(self, blocks: dict[str, Block | None]) -> dict[str, list[TurnRow]]:
        """Rows of batches that were decided in parts, not wholly, or with a poisoned turn in them."""
        if not blocks:
            return {}
        firsts = map(_block, self._results([f"{batch}:0" for batch in blocks]))
        found = {
            batch: [row for block in self._parts(batch, first, last) for row in _rows(block)]
            for (batch, last), first in zip(blocks.items(), firsts, strict=True)
        }
        needed = [
            batch
            for batch, rows in found.items()
            if (self._with_open and blocks[batch] is None) or any(row.code == POISONED for row in rows)
        ]
        for batch, payload in zip(needed, self._items(needed) if needed else (), strict=True):
            if payload is not None:
                with_open = self._with_open and blocks[batch] is None
                found[batch] = _completed(found[batch], payload, with_open=with_open)
        return found

    def _parts(self, batch: str, first: Block | None, last: Block | None) -> Iterator[Block]:
        """Yields the committed parts of a batch; the last one stands under the batch's own name."""
        part, done = first, 0
        while part is not None and (last is None or done < last.offset):
            yield part
            done += len(part.indexes)
            part = _block(self._results([f"{batch}:{done}"])[0])
        if last is not None:
            yield last


def _fetch_groups(chunks: Iterable[ChunkFields]) -> Iterator[list[ChunkFields]]:
    """Groups chunks whose results are fetched in one round trip."""
    group, size = list[ChunkFields](), 0
    for chunk in chunks:
        group.append(chunk)
        size += len(chunk.batches)
        if size >= BATCHES_AT_ONCE:
            yield group
            group, size = [], 0
    if size:
        yield group


def _block(value: bytes | None) -> Block | None:
    """Reads a stored value: `generation|block`."""
    return None if value is None else unpack_block(value.partition(b"|")[2])


def _is_special(block: Block | None) -> bool:
    """Whether a batch needs more than its one block."""
    return block is None or block.offset > 0 or POISONED in block.codes


def _completed(rows: list[TurnRow], payload: bytes, *, with_open: bool) -> list[TurnRow]:
    """Adds the input to poisoned turns, and rows for turns without a result if requested."""
    indexes, body = unpack_batch(payload)
    inputs = dict(zip(indexes, body.split(b"\n"), strict=True))
    rows = [
        row._replace(line=inputs.get(row.index, b"{}") + b"\n" + row.line) if row.code == POISONED else row
        for row in rows
    ]
    if with_open:
        rows += [TurnRow(index, "", b"", 0, 0, 0) for index in indexes[len(rows) :]]
    return rows


def _rows(block: Block, payload: bytes | None = None) -> list[TurnRow]:
    """Opens a block; with the payload, of which it must contain all results, rows contain their input."""
    started, finished = repeat(block.started_ms), repeat(block.finished_ms)
    lines = expand(block.codes, block.lines)
    inputs = repeat(b"") if payload is None else payload.split(b"\n")[1:]
    return list(map(_row, zip(block.indexes, block.codes, lines, started, finished, repeat(1), inputs)))


def _with_inputs(rows: Sequence[TurnRow], payload: bytes) -> list[TurnRow]:
    """Adds the input to the rows of a batch."""
    indexes, body = unpack_batch(payload)
    inputs = dict(zip(indexes, body.split(b"\n"), strict=True))
    return [_row((*row[:6], inputs.get(row.index, b""))) for row in rows]


def _in_order(batches: Iterable[Sequence[TurnRow]]) -> Iterator[Page]:
    """Sorts the rows of a chunk into pages; no batch begins before the one in front of it."""
    page, last, is_sorted = list[TurnRow](), -1, True
    for rows in batches:
        if not rows:
            continue
        is_behind = rows[0].index > last
        if is_behind and len(page) >= PAGE:
            yield page if is_sorted else sorted(page)
            page, is_sorted = [], True
        is_sorted = is_sorted and is_behind
        page += rows
        last = max(last, rows[-1].index)
    if page:
        yield page if is_sorted else sorted(page)


def _by_index(row: TurnRow) -> int:
    """The position in the input."""
    return row.index


def _latest(rows: list[TurnRow]) -> TurnRow:
    """Chooses among the results of one turn, oldest first: the newest one there is."""
    decided = [row for row in rows if row.code]
    return decided[-1]._replace(attempts=len(decided)) if decided else rows[-1]
