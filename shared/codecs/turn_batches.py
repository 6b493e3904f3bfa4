r"""Encoding of a thread's turns: a batch of input lines for the worker, a block of result lines back.

One ledger field holds all turns of one thread in one chunk, because a field per turn costs five times as
much. Both forms are text with a header line, so that Lua can cut one poisoned turn out of a batch and the
reader can count decisions without parsing a single result.

    batch   3,4,9\n{turn}\n{turn}\n{turn}
    block   0|1760000000000|1760000000004|3,4,9|m2u s6 k5f\n{result}\n{result}\n{result}
            offset | started ms | finished ms | input indexes | codes

Consecutive indexes, as they are in most files, are written `3-5`.

A **code** is one turn's outcome: decision `m`ust, `s`hould, s`k`ip or `x` for an error, the rule's
number (errors: `0`), then flags: `f` the peak guardrail was active, `u` a summary shape was applied,
`d` a repeated `clientRequestId` (the first result again, without a second trace), `p` poisoned: the lines
hold the thread's stored state instead of a result, because no worker survived to write one. In runs with a
model: `l` the model answered, `c` its answer came from the cache, `a` the decision avoided the call.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

DECISION_OF_CODE: Final = {"m": "must", "s": "should", "k": "skip", "x": None}
ASKED: Final = "l"
"""Flag of a turn that the model answered."""
CACHED: Final = "c"
"""Flag of a turn whose answer came from the cache."""
AVOIDED: Final = "a"
"""Flag of a turn whose decision avoided the call."""
DUPLICATE: Final = "d"
"""Flag of a repeated request."""
CODE_OF_DECISION: Final = {"must": "m", "should": "s", "skip": "k"}


@dataclass(frozen=True, slots=True)
class Block:
    """Result lines of consecutive turns of one batch."""

    offset: int
    """Position in the batch of the first turn; above 0 only when a batch was committed in parts."""
    started_ms: int
    """Time when the worker began, epoch milliseconds."""
    finished_ms: int
    """Time when the worker had decided, epoch milliseconds."""
    indexes: Sequence[int]
    """Position of each turn in the input, from 0."""
    codes: Sequence[str]
    """One code per turn, as above."""
    lines: Sequence[bytes]
    """One per turn; see `shared.codecs.turn_lines`."""


def pack_batch(indexes: Sequence[int], lines: Iterable[bytes]) -> bytes:
    r"""Joins input lines and their positions in the input.

    >>> pack_batch([3, 9], [b'{"a":1}', b'{"a":2}'])
    b'3,9\n{"a":1}\n{"a":2}'
    """
    return pack_indexes(indexes).encode() + b"\n" + b"\n".join(lines)


def unpack_batch(payload: bytes) -> tuple[list[int], bytes]:
    r"""Splits a batch into input positions and the lines, still joined by newlines.

    >>> unpack_batch(b'3,9\n{"a":1}\n{"a":2}')
    ([3, 9], b'{"a":1}\n{"a":2}')
    """
    head, _, body = payload.partition(b"\n")
    return unpack_indexes(head.decode()), body


def pack_indexes(indexes: Sequence[int]) -> str:
    """Writes positions in the input, which ascend.

    >>> pack_indexes([3, 4, 5]), pack_indexes([3, 5]), pack_indexes([3])
    ('3-5', '3,5', '3')
    """
    if len(indexes) > 1 and indexes[-1] - indexes[0] == len(indexes) - 1:
        return f"{indexes[0]}-{indexes[-1]}"
    return ",".join(map(str, indexes))


def unpack_indexes(text: str) -> list[int]:
    """Reads positions in the input.

    >>> unpack_indexes("3-5"), unpack_indexes("3,5")
    ([3, 4, 5], [3, 5])
    """
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else list(map(int, text.split(",")))


def pack_block(block: Block) -> bytes:
    r"""Writes a block of results.

    >>> pack_block(Block(0, 5, 7, [3], ["m2u"], [b"{}"]))
    b'0|5|7|3|m2u\n{}'
    """
    indexes = pack_indexes(block.indexes)
    head = f"{block.offset}|{block.started_ms}|{block.finished_ms}|{indexes}|{' '.join(block.codes)}\n"
    return head.encode() + b"\n".join(block.lines)


def unpack_block(value: bytes) -> Block:
    r"""Reads a block of results.

    >>> unpack_block(b'0|5|7|3|m2u\n{}')
    Block(offset=0, started_ms=5, finished_ms=7, indexes=[3], codes=['m2u'], lines=[b'{}'])
    """
    head, *lines = value.split(b"\n")
    offset, started, finished, indexes, codes = head.decode().split("|")
    return Block(int(offset), int(started), int(finished), unpack_indexes(indexes), codes.split(" "), lines)
