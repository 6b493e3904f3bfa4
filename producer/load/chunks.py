"""Cuts a stream of turns into chunks: consecutive lines, grouped by thread, whole threads where possible.

A chunk is what one Celery message stands for; a batch is the turns of one thread in one chunk, and travels as
one ledger field. Pure: numbers and bytes in, numbers and bytes out.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from producer.load.turns import TurnLine
from shared.codecs.turn_batches import pack_batch
from shared.ledger import ChunkPlan

CHUNK_TURNS: Final = 1_000
"""A chunk closes at this many turns, when the thread changes: about 10 ms of work."""
LIVE_CHUNK_TURNS: Final = 500
"""The same of turns that a model answers: two chunks, with fifty threads each, fill a process."""
CHUNK_GROWTH: Final = 2
"""Chunks of a long input grow to so many times the turns: a message costs as much as a hundred turns."""
CHUNK_SHARE: Final = 20
"""A chunk grows to no more than one in so many of the turns before it, so that all workers have some."""
CHUNK_SLACK: Final = 1.5
"""A chunk closes at so many times its turns even inside a thread, which then goes on in the next one."""
CHUNK_BATCHES_MOST: Final = 1_500
"""A chunk closes here, whatever else it holds: scripts read a batch each in one command."""
CHUNK_BYTES_MOST: Final = 2 << 20
"""A chunk closes here whatever it holds: a worker has several chunks in memory at once."""
LOAD_ITEMS: Final = 1_000
"""Batches in one call of the ledger, at most."""
LOAD_BYTES: Final = 1 << 20
"""A call of the ledger is sent when it holds this much."""
FIRST_CHARS: Final = 80
"""Longest thread name shown in a task's arguments."""


class Chunk(NamedTuple):
    """Consecutive turns, ready for the ledger."""

    id: str
    """Position among the chunks, from 0, as text."""
    plan: ChunkPlan
    """What the ledger must know of its batches."""
    items: dict[str, bytes]
    """Batch id to batch."""
    content: bytes
    """The lines in input order, for the digest."""
    turns: int
    """How many."""


def chunked(pages: Iterable[Sequence[TurnLine]], *, turns: int = CHUNK_TURNS) -> Iterator[Chunk]:
    r"""Groups lines into chunks as they come.

    Args:
        pages: lines in order, some at a time.
        turns: how many a chunk holds at least, but for the last one and those of very long lines.

    >>> lines = [TurnLine(0, 1, "a", b"A"), TurnLine(1, 2, "b", b"B"), TurnLine(2, 3, "a", b"C")]
    >>> [chunk] = chunked([lines])
    >>> chunk.items
    {'0.0': b'0,2\nA\nC', '0.1': b'1\nB'}
    """
    number, taken, size, before = 0, list[TurnLine](), 0, 0
    for page in pages:
        taken += page
        size += _size(page)
        while len(taken) >= CHUNK_SLACK * _aim(turns, before) or size >= CHUNK_BYTES_MOST:
            end = _cut(taken, _aim(turns, before))
            yield _chunk(number, taken[:end])
            taken = taken[end:]
            number, size, before = number + 1, _size(taken), before + end
    while taken:
        end = _cut(taken, _aim(turns, before))
        yield _chunk(number, taken[:end])
        number, taken, before = number + 1, taken[end:], before + end


def _aim(turns: int, before: int) -> int:
    """How many turns the next chunk is to hold, when so many are in those before it.

    >>> [_aim(1_000, before) for before in (0, 30_000, 1_000_000)]
    [1000, 1500, 2000]
    """
    return min(max(turns, before // CHUNK_SHARE), CHUNK_GROWTH * turns)


def _size(lines: Sequence[TurnLine]) -> int:
    """Bytes of some lines."""
    return sum([len(line[3]) for line in lines])


def _cut(lines: Sequence[TurnLine], turns: int) -> int:
    """Finds where a chunk ends: where the thread changes, where it is full, or where it is too heavy."""
    some = lines[: int(CHUNK_SLACK * turns)]
    sizes = list(accumulate([len(line[3]) for line in some]))
    end = min(len(some), bisect_left(sizes, CHUNK_BYTES_MOST) + 1)
    changes = _changes(some[:end])
    if len(changes) >= CHUNK_BATCHES_MOST:
        end = changes[CHUNK_BATCHES_MOST - 1]
    at = bisect_left(changes, turns)
    return min(end, changes[at]) if at < len(changes) else end


def _changes(lines: Sequence[TurnLine]) -> list[int]:
    """Finds the lines whose thread is not that of the line before."""
    threads = [line[2] for line in lines]
    return [at for at, (before, thread) in enumerate(pairwise(threads), 1) if before != thread]


def _chunk(number: int, lines: list[TurnLine]) -> Chunk:
    """Packs lines into one batch a thread, in the order in which the threads appear."""
    numbers, raws = [line[0] for line in lines], [line[3] for line in lines]
    by_thread = dict[str, tuple[list[int], list[bytes]]]()
    for start, end in pairwise([0, *_changes(lines), len(lines)]):
        indexes, some = by_thread.setdefault(lines[start].thread, ([], []))
        indexes += numbers[start:end]
        some += raws[start:end]
    items, parts = dict[str, bytes](), list[tuple[str, str, int]]()
    for position, (thread, (indexes, some)) in enumerate(by_thread.items()):
        batch = f"{number}.{position}"
        items[batch] = pack_batch(indexes, some)
        parts.append((batch, thread, len(indexes)))
    return Chunk(str(number), ChunkPlan(name_of(lines[0].thread), parts), items, b"\n".join(raws), len(lines))


def name_of(thread: str) -> str:
    r"""Names a chunk after its first thread, for people who look at the queue.

    >>> name_of("1_00042"), name_of("a\nb")
    ('1_00042', "'a\\nb'")
    """
    return (thread if thread.isprintable() else ascii(thread))[:FIRST_CHARS]


def grouped(
    chunks: Iterator[Chunk], saw: Callable[[bytes], None]
) -> Iterator[tuple[dict[str, bytes], dict[str, ChunkPlan], int]]:
    """Puts chunks together until they are worth a call of the ledger.

    Args:
        chunks: in order.
        saw: is given the lines of the input again, each with its line end.

    Yields:
        Batches, plan and number of turns.
    """
    items, plan, turns, size = dict[str, bytes](), dict[str, ChunkPlan](), 0, 0
    for chunk in chunks:
        saw(chunk.content)
        saw(b"\n")
        if plan and (len(items) + len(chunk.items) > LOAD_ITEMS or size + len(chunk.content) > LOAD_BYTES):
            yield items, plan, turns
            items, plan, turns, size = {}, {}, 0, 0
        items |= chunk.items
        plan[chunk.id] = chunk.plan
        turns += chunk.turns
        size += len(chunk.content)
    if plan:
        yield items, plan, turns
