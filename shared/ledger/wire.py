"""Encodes script arguments and decodes script replies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from shared.ledger.types import (
    ChunkPlan,
    ClaimedBatch,
    ClaimedItem,
    ClaimedThread,
    DeadItem,
    ThreadCommit,
    Try,
    Wake,
)

LOAD_ITEMS: Final = 1_000
"""Most items (or batches) in one `load`: `unpack` of a script takes about 8,000 values."""
LOAD_BYTES: Final = 4 << 20
"""Most payload bytes in one `load`, so that no call holds the server for long."""
MOST_PARTS: Final = 2_000
"""Most parts of one chunk; scripts read their fields in one command."""

Argument = str | bytes | int


def wakes_from(flat: Sequence[Any]) -> list[Wake]:
    """Reads the wakes that a script returned, five values each.

    >>> wakes_from([b"turns", b"r1", b"0", 14, b"t1"])
    [Wake(kind='turns', run='r1', chunk='0', items=14, first='t1')]
    """
    return [
        Wake(
            flat[at].decode(),
            flat[at + 1].decode(),
            flat[at + 2].decode(),
            int(flat[at + 3]),
            flat[at + 4].decode(),
        )
        for at in range(0, len(flat), 5)
    ]


def items_from(flat: Sequence[Any]) -> list[ClaimedItem]:
    """Reads the items that `claim` returned, five values each."""
    return [
        ClaimedItem(
            flat[at].decode(), int(flat[at + 1]), flat[at + 2], int(flat[at + 3]), flat[at + 4].decode()
        )
        for at in range(0, len(flat), 5)
    ]


def try_from(name: str, value: str) -> Try:
    """Reads the stored state of a parked item.

    >>> try_from("3", "2|1760000000000|Rate limited (429)").attempts
    2
    """
    attempts, due_ms, parked_state = value.split("|", 2)
    return Try(name, int(attempts), int(due_ms), parked_state)


def threads_from(rows: Sequence[Sequence[bytes]]) -> list[ClaimedThread]:
    """Reads the threads that `claim` returned: name, position and offset, state, then five values a batch."""
    threads = []
    for row in rows:
        pos, offset = row[1].split(b" ")
        batches = [
            ClaimedBatch(
                row[at].decode(), row[at + 1].decode(), int(row[at + 2]), row[at + 3], bool(row[at + 4])
            )
            for at in range(3, len(row), 5)
        ]
        threads.append(ClaimedThread(row[0].decode(), int(pos), int(offset), row[2], batches))
    return threads


_encode = msgspec.msgpack.Encoder().encode
_ARRAY_OF_FOUR: Final = b"\x94"


def plan_entry(kind_is_turns: bool, plan: ChunkPlan) -> bytes:  # noqa: FBT001 - one call, right below
    r"""Packs a chunk of generation 0 as four MessagePack values one after the other.

    >>> plan_entry(False, ChunkPlan("Q-1", ["0", "1"]))
    b'\x00\xa3Q-1\x02\x92\xa10\xa11'
    """
    if not 0 < len(plan.parts) <= MOST_PARTS:
        raise ValueError(f"a chunk has 1 to {MOST_PARTS} parts, not {len(plan.parts)}")
    if kind_is_turns:
        parts: list[Any] = [(batch, thread, count, "") for batch, thread, count in plan.parts]
        total = sum(part[2] for part in parts)
    else:
        parts, total = list(plan.parts), len(plan.parts)
    # An array of four is one byte and its four values: without that byte Lua can read the first values alone.
    return _encode((0, plan.first, total, parts))[1:]


def wake_of(kind: str, run: str, chunk: str, entry: bytes) -> Wake:
    """Makes the wake-up of a chunk from its plan entry, as `add_wake` in `lua/lib/window.lua` does.

    >>> wake_of("cases", "r1", "0", plan_entry(False, ChunkPlan("Q-1", ["0", "1"])))
    Wake(kind='cases', run='r1', chunk='0', items=2, first='Q-1')
    """
    _, first, count, _ = msgspec.msgpack.decode(_ARRAY_OF_FOUR + entry, type=tuple[int, str, int, Any])
    return Wake(kind, run, chunk, count, first)


def load_arguments(items: Mapping[str, bytes], plan: Mapping[str, ChunkPlan]) -> list[Argument]:
    """Builds the arguments of `load.lua` after run and token."""
    chunks: list[Argument] = []
    batches: list[Argument] = []
    threads: set[str] = set()
    for chunk, entry in plan.items():
        is_turns = not isinstance(next(iter(entry.parts), ""), str)
        chunks += (chunk, plan_entry(is_turns, entry))
        if is_turns:
            batches += (chunk, len(entry.parts))
            threads.update([part[1] for part in entry.parts])
    flat: list[Argument] = [len(items), len(plan), len(batches) // 2, len(threads)]
    for pair in items.items():
        flat += pair
    return [*flat, *chunks, *batches, *threads]


def file_arguments(name: str, content: bytes) -> list[Argument]:
    """Builds what `load.lua` takes after run and token for a file of the run: no items, chunks or threads.

    >>> file_arguments("a", b"b")
    [0, 0, 1, 0, 'a', b'b']
    """
    return [0, 0, 1, 0, name, content]


def split_load(
    items: Mapping[str, bytes], plan: Mapping[str, ChunkPlan]
) -> Iterator[tuple[dict[str, bytes], dict[str, ChunkPlan]]]:
    """Splits a load into calls of bounded size; the plan goes last, so that no chunk is without its items.

    >>> [(len(items), len(plan)) for items, plan in split_load({str(i): b"" for i in range(1500)}, {})]
    [(1000, 0), (500, 0)]
    """
    some: dict[str, bytes] = {}
    size = 0
    for index, payload in items.items():
        if some and (len(some) == LOAD_ITEMS or size + len(payload) > LOAD_BYTES):
            yield some, {}
            some, size = {}, 0
        some[index] = payload
        size += len(payload)
    chunks = iter(plan.items())
    yield some, dict(islice(chunks, LOAD_ITEMS))
    while entries := dict(islice(chunks, LOAD_ITEMS)):
        yield {}, entries


def thread_arguments(threads: Sequence[ThreadCommit]) -> list[Argument]:
    """Builds the threads argument of `commit_threads.lua`: five columns, then parts and requests."""
    flat: list[Argument] = [row.thread for row in threads]
    flat += [row.pos for row in threads]
    flat += [row.memento for row in threads]
    flat += [len(row.parts) for row in threads]
    flat += [len(row.requests) for row in threads]
    for row in threads:
        for offset, count, value, dead in row.parts:
            flat += (offset, count, b"0|" + value, ",".join(map(str, dead)) if dead else "")
        for request in row.requests:
            flat += request
    return flat


def count_marks(marks: str) -> int:
    """Counts the turns of a part that already have a result.

    >>> count_marks("0m00x")
    2
    """
    return len(marks) - marks.count("0")


def again_marks(parts: Iterable[Sequence[Any]], extra: int) -> list[str]:
    """Returns the marks of each part of a retry; by default the first `extra` turns are marked.

    >>> again_marks([("a", "t1", 2), ("b", "t2", 3)], 3)
    ['11', '100']
    >>> again_marks([("a", "t1", 3, "101")], 2)
    ['101']
    """
    marks = []
    for part in parts:
        count = part[2]
        given = part[3] if len(part) > 3 else "1" * min(extra, count)  # noqa: PLR2004 - the optional fourth value
        extra -= count_marks(given)
        marks.append(given.ljust(count, "0"))
    return marks


def unpack_dead(value: bytes) -> DeadItem:
    r"""Reads one value of the hash `dead:items`.

    >>> unpack_dead(b"cases|0|17|3|poison|2\n{}")
    DeadItem(kind='cases', generation=0, at_ms=17, attempts=3, code='poison', payload=b'{}', result=b'')
    """
    head, _, body = value.partition(b"\n")
    kind, generation, at_ms, attempts, code, size = head.decode().split("|")
    cut = int(size)
    return DeadItem(kind, int(generation), int(at_ms), int(attempts), code, body[:cut], body[cut:])
