"""What every loader returns: a `RunInput`, the input cut into chunks; also the number of items in a chunk.

A chunk contains the items of one Celery message. Pure: no files, no Redis.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from producer.run_ids import new_run_id
from shared.ledger import ChunkPlan
from shared.ledger.bounds import FIRST_LAYOUT

CHUNK_TURNS: Final = 1_000
"""A chunk closes at this many turns, when the thread changes: about 10 ms of work."""
LOAD_ITEMS: Final = 1_000
"""Payloads in one call of the ledger, at most."""
LOAD_BYTES: Final = 1 << 20
"""A call of the ledger is sent when it holds this much."""
MOST_CHUNKS: Final = 200
"""Chunks that a run of cases or queries is cut into, as long as they stay below `CHUNK_ITEMS_MOST`."""
CHUNK_ITEMS_MOST: Final = 100
"""Cases or queries of one chunk."""
SENT_CHUNKS: Final = 50
"""Chunks that a run whose items wait for an upstream is cut into, as long as the bounds below allow it."""
SENT_ITEMS_MOST: Final = 50
"""Items of one such chunk."""
CHUNKS_IN_FLIGHT: Final = 5
"""Such chunks that share the concurrency of their run: more when some items take longer than others."""
FIRST_CHARS: Final = 80
"""Longest name of a thread, case or query shown in a task's arguments."""


class Chunk(NamedTuple):
    """Turns, cases or queries that one message is about, ready for the ledger."""

    id: str
    """Position among the chunks, from 0, as text."""
    plan: ChunkPlan
    """What the ledger schedules: the batches of threads, or the indexes of cases or queries."""
    payloads: dict[str, bytes]
    """What is stored, by the id of a batch or the index of an item."""
    content: bytes
    """The input in its order, for the digest."""
    item_count: int
    """How many turns, cases or queries it contains."""


class RunInput(NamedTuple):
    """One input, cut into chunks, with the settings of its run."""

    chunks: Iterator[Chunk]
    """In order; reading them may find that the input breaks its contract."""
    snapshot: Mapping[str, Any]
    """Settings of this kind for the run's snapshot."""
    settings: Sequence[str] = ()
    """Settings that affect results: another value is another content for an idempotency key."""
    files: Mapping[str, bytes] = MappingProxyType({})
    """Texts that items share, by name, stored once with the run."""
    max_open_chunks: int = 0
    """Maximum concurrent chunks, across all workers; 0 for no limit."""
    layout: int = FIRST_LAYOUT
    """Workers that do not know this layout leave the run alone."""
    run_id: Callable[[int, int], str] = lambda now_ms, _copy: new_run_id(now_ms)
    """Makes the run's id from the time and, counted from 1, how often ids of this time were taken."""


def name_of(first: str) -> str:
    r"""Names a chunk after its first thread, case or query, for Flower.

    >>> name_of("1_00042"), name_of("a\nb")
    ('1_00042', "'a\\nb'")
    """
    return (first if first.isprintable() else ascii(first))[:FIRST_CHARS]


def chunk_size(items: int) -> int:
    """Returns how many cases or queries a chunk contains: one in small runs, so that each is a row in Flower.

    >>> [chunk_size(items) for items in (1, 200, 999, 5_000, 1_000_000)]
    [1, 1, 4, 25, 100]
    """
    return min(max(items // MOST_CHUNKS, 1), CHUNK_ITEMS_MOST)


def shape_of(items: int, concurrency: int) -> tuple[int, int]:
    """Returns the items per chunk, and the number of open chunks, for so many concurrent items.

    The largest chunk size is chosen that uses most of the slots with whole chunks. Half as many more chunks
    may be open; their items wait at the gate for a slot, which would otherwise be empty between two chunks.
    Of chunks with several items twice as many are open, because one stays so until its slowest item is done.

    >>> [shape_of(1_500, together) for together in (1, 7, 10, 97, 100, 500)]
    [(30, 1), (1, 10), (2, 10), (16, 12), (20, 10), (25, 40)]
    """
    most = min(max(items // SENT_CHUNKS, 1), SENT_ITEMS_MOST)
    if concurrency == 1:
        return most, 1
    most = min(most, max(concurrency // CHUNKS_IN_FLIGHT, 1))
    size = max(range(most, most // 2, -1), key=lambda size: (concurrency // size * size, size))
    filled = concurrency // size
    return size, filled + (filled if size > 1 else filled // 2)


def item_chunks(items: Iterable[tuple[str, bytes]], size: int) -> Iterator[Chunk]:
    """Cuts cases or queries into chunks.

    Args:
        items: name and payload, in order.
        size: items of one chunk.

    >>> [chunk.plan for chunk in item_chunks([("Q-1", b"{}"), ("Q-2", b"{}"), ("Q-3", b"{}")], 2)]
    [ChunkPlan(first='Q-1', parts=['0', '1']), ChunkPlan(first='Q-3', parts=['2'])]
    """
    numbered = enumerate(items)
    number = 0
    while some := list(islice(numbered, size)):
        payloads = {str(index): payload for index, (_, payload) in some}
        plan = ChunkPlan(name_of(some[0][1][0]), list(payloads))
        yield Chunk(str(number), plan, payloads, b"\n".join(payloads.values()), len(some))
        number += 1


def grouped(
    chunks: Iterator[Chunk], update: Callable[[bytes], None]
) -> Iterator[tuple[dict[str, bytes], dict[str, ChunkPlan], int]]:
    """Groups chunks for one call of the ledger.

    Args:
        chunks: in order.
        update: receives the lines of the input, each with its line end, for the digest.

    Yields:
        Payloads, plan and number of items.
    """
    payloads, plan, items, size = dict[str, bytes](), dict[str, ChunkPlan](), 0, 0
    for chunk in chunks:
        update(chunk.content)
        update(b"\n")
        is_full = len(payloads) + len(chunk.payloads) > LOAD_ITEMS or size + len(chunk.content) > LOAD_BYTES
        if plan and is_full:
            yield payloads, plan, items
            payloads, plan, items, size = {}, {}, 0, 0
        payloads |= chunk.payloads
        plan[chunk.id] = chunk.plan
        items += chunk.item_count
        size += len(chunk.content)
    if plan:
        yield payloads, plan, items
