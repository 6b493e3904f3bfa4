"""How items are named: by their position, as `item_id` has it, and by the id that their file gives them."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.json import Decoder

from shared.codecs.turn_batches import unpack_batch
from shared.contracts.case_run import decode_case
from shared.kinds import Kind
from shared.runs import RunInfo, RunStore
from shared.runs.served import window_named

PAGE: Final = 500
"""Inputs fetched in one round trip."""


class IdParts(NamedTuple):
    """The id that the file gives an item, and what stands around it in the item's label."""

    own: str
    """Several items may share it."""
    before: str = ""
    after: str = ""
    others: frozenset[str] = frozenset()
    """What it is also called: by the number of its case, from 1, or the thread and request of a turn."""
    again: str = ""
    """The end of the label that numbers a repetition, such as ` #2`."""


class _Turn(Struct):
    threadId: str  # noqa: N815 - the contract's own name
    messageId: str | None = None  # noqa: N815 - same
    clientRequestId: str | None = None  # noqa: N815 - same


class _Item(Struct):
    id: str = ""


_turn, _item = Decoder(_Turn), Decoder(_Item)


def item_id(kind: Kind, index: int) -> str:
    """Names an item by its position, uniquely in its run.

    >>> from shared.kinds import QUERIES
    >>> item_id(QUERIES, 7)
    'query-7'
    """
    return f"{kind.noun}-{index}"


class ItemNames(NamedTuple):
    """How the items of a kind are named."""

    parts: Callable[[int, bytes], IdParts]
    """Reads an item's own id from its position and its input."""
    inputs: Callable[[RunStore, RunInfo], Iterator[tuple[int, bytes]]]
    """Yields position and input of every item of a run."""
    has_repeated: bool = False
    """Whether items with the same id are distinguished by a number."""


def item_id_parts(_position: int, payload: bytes) -> IdParts:
    """Reads the id of an item that has one under `id`, such as a query."""
    return IdParts(_item.decode(payload).id)


def turn_id_parts(position: int, payload: bytes) -> IdParts:
    """Reads the id of a turn's message; a turn without one is named by its thread and position."""
    turn = _turn.decode(payload)
    others = frozenset({turn.threadId, turn.clientRequestId or turn.threadId})
    if turn.messageId is None:
        return IdParts(f"{turn.threadId}#{position}", others=others)
    return IdParts(turn.messageId, f"{turn.threadId}/", others=others)


def case_id_parts(_position: int, payload: bytes) -> IdParts:
    """Reads the id of a case, with its model and repeat."""
    case = decode_case(payload)
    number, again = case.case + 1, f" #{case.repeat + 1}" if case.repeat else ""
    after = f" · {case.asked}".removesuffix(again)
    return IdParts(case.name, "", after, frozenset({f"{number}", f"case {number}"}), again)


def case_chunk_name(payload: bytes) -> str:
    """Names a chunk after its first case."""
    return decode_case(payload).first


def item_chunk_name(payload: bytes) -> str:
    """Names a chunk after its first item."""
    return _item.decode(payload).id


def item_inputs(store: RunStore, info: RunInfo) -> Iterator[tuple[int, bytes]]:
    """Yields the position and the input of every item of a run.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    for start in range(0, info.total, PAGE):
        page = range(start, min(start + PAGE, info.total))
        for position, payload in zip(page, store.inputs(info.run, [*map(str, page)]), strict=True):
            if payload is not None:
                yield position, payload


def turn_inputs(store: RunStore, info: RunInfo) -> Iterator[tuple[int, bytes]]:
    """Yields the position and the line of every turn; they lie in batches, retried ones a second time."""
    if window_named(info.run):
        for page in store.pages(info.run, with_payload=True):
            yield from ((row.index, row.payload) for row in page)
        return
    for chunk in store.chunks(info.run):
        payloads = () if chunk.generation else store.inputs(info.run, chunk.batches)
        for payload in filter(None, payloads):
            positions, body = unpack_batch(payload)
            yield from zip(positions, body.split(b"\n"), strict=True)
