"""Finds the items of a run by the ids that the author of the file gave them, or by their positions.

    Q-06                         the id of a query; of a repeated one also `Q-06 #2`
    greeting · openai/gpt-4o     the id of a case and its model; the id alone where only one item has it
    m-17, thread-1/m-17          the id of a turn's message, with its thread where several have it
    thread-1, request-17         the thread of turns; their `clientRequestId`
    served-3f…-7.0               of a stream: what `POST /v1/turns?wait=0` answered, while GET knows it
    6, case 6                    the number of a case, from 1, as lists print it; all its answers
    query-5                      the position, from 0, as `item_id` of JSON rows has it
    5                            of other kinds than cases: the position, as `index` has it

A name that the file gives comes first, then a position, then the number of a case, a thread or a request.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Final, NamedTuple

from msgspec import DecodeError

from producer import kinds
from producer.item_ids import item_id
from shared.errors import UnknownItemError
from shared.kinds import CASES, Kind
from shared.runs import RunInfo, RunStore
from shared.runs.served import window_named

NEAR_AMONG: Final = 20_000
"""Names among which those near an unknown one are searched: more would take seconds."""
SHOWN: Final = 3


class ItemName(NamedTuple):
    """The names of an item, in addition to its position."""

    position: int
    """In the input, from 0."""
    own: str
    """The id that it has in the file; several items may share it."""
    label: str
    """The id, extended to be unique among items with the same id."""
    asked: str = ""
    """The label without the number of a repetition."""
    others: frozenset[str] = frozenset()
    """What it may be called beside, see `producer.item_ids`."""


def name_of(kind: Kind, position: int, payload: bytes) -> ItemName:
    r"""Names an item after what was loaded for it.

    Args:
        kind: of its run.
        position: in the input, from 0.
        payload: what was loaded; of a turn its line.

    >>> from shared.kinds import QUERIES, TURNS
    >>> name_of(TURNS, 4, b'{"threadId":"t","messageId":"m"}').label
    't/m'
    >>> name_of(TURNS, 4, b'{"threadId":"t"}').own
    't#4'
    >>> name_of(QUERIES, 1, b'{"id":"Q-06"}')
    ItemName(position=1, own='Q-06', label='Q-06', asked='Q-06', others=frozenset())
    """
    try:
        own, before, after, others, again = kinds.of(kind).names().parts(position, payload)
    except DecodeError:  # of another version, or not what was loaded: it has its position
        return ItemName(position, "", item_id(kind, position))
    asked = f"{before}{own}{after}"
    return ItemName(position, own, f"{asked}{again}", asked, others)


def names_of(store: RunStore, info: RunInfo) -> Iterator[ItemName]:
    """Yields the names of all items of a run.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    return numbered(info.kind, kinds.of(info.kind).names().inputs(store, info))


def numbered(kind: Kind, inputs: Iterable[tuple[int, bytes]]) -> Iterator[ItemName]:
    """Yields the names of items by their positions and inputs, with numbers where repetitions share an id."""
    has_repeated, times = kinds.of(kind).names().has_repeated, Counter[str]()
    for position, payload in inputs:
        name = name_of(kind, position, payload)
        times[name.own] += has_repeated
        is_again = times[name.own] > 1
        yield name._replace(label=f"{name.own} #{times[name.own]}") if is_again else name


def find_items(store: RunStore, info: RunInfo, texts: Sequence[str], *, is_each: bool = False) -> list[int]:
    """Returns the positions of items that are named in any of these ways.

    Args:
        store: reads the run.
        info: the run.
        texts: the names.
        is_each: whether a name stands for each item that has it, such as a case's id for all its answers.

    Raises:
        UnknownItemError: the run has none of a name, or several.
        RedisUnreachableError: Redis stays away.
    """
    if window := window_named(info.run):
        stream = store.stream(window.namespace)
        texts = [stream.label_of(text) or text for text in texts]
    return resolve(texts, names_of(store, info), kind=info.kind, where=info.run, is_each=is_each)


def resolve(
    texts: Sequence[str], names: Iterable[ItemName], *, kind: Kind, where: str, is_each: bool = False
) -> list[int]:
    """Finds items among some by their names.

    Args:
        texts: names as a person wrote them, or positions.
        names: of the items there are.
        kind: what they are.
        where: what holds them, for messages.
        is_each: whether a name stands for each item that has it.

    Raises:
        UnknownItemError: no item has a name, or several have it.

    >>> from shared.kinds import CASES
    >>> names = [ItemName(0, "a", "a · m"), ItemName(1, "a", "a · n"), ItemName(2, "b", "b · m")]
    >>> resolve(["b", "a · n", "case-0"], names, kind=CASES, where="run-1")
    [2, 1, 0]
    """
    named = {text: position_of(text, kind) for text in texts}
    positions = set(named.values())
    found = {text: dict[int, str]() for text in texts}
    beside = {text: dict[int, str]() for text in texts}
    existing, known = dict[int, str](), list[str]()
    for name in names:
        if name.position in positions:
            existing[name.position] = name.label
        for text in {name.own, name.label} & found.keys():
            found[text][name.position] = name.label
        for text in name.others & beside.keys():
            beside[text][name.position] = name.label
        if len(known) < NEAR_AMONG:
            known.append(name.own)
    chosen = list[int]()
    for text in texts:
        position = named[text]
        placed = {position: existing[position]} if position in existing else {}
        items = found[text] or placed or beside[text]
        if not items:
            raise _unknown(text, known, where)
        if len(items) > 1 and not is_each:
            raise _ambiguous(text, items, where)
        chosen += items
    return chosen


def position_of(text: str, kind: Kind) -> int | None:
    """Reads a name as a position; None when it is none.

    >>> from shared.kinds import CASES, TURNS
    >>> position_of("turn-7", TURNS), position_of("7", TURNS), position_of("case-7", CASES)
    (7, 7, 7)
    >>> position_of("7", CASES), position_of("Q-7", TURNS)  # a case's number is no position
    (None, None)
    """
    if kind is CASES and text.isdecimal():
        return None
    digits = text.removeprefix(item_id(kind, 0)[:-1])
    return int(digits) if digits.isascii() and digits.isdecimal() else None


def _unknown(text: str, known: Collection[str], where: str) -> UnknownItemError:
    """Builds the error for a name that no item has, with similar names."""
    spelled = {name.lower(): name for name in known}
    near = [spelled[name] for name in get_close_matches(text.lower(), spelled, n=SHOWN)]
    some = ", ".join(islice(dict.fromkeys(known), SHOWN))
    hint = f"did you mean {' or '.join(near)}?" if near else f"write an id, such as {some}, or a position"
    return UnknownItemError(f"{where} has no item {text!r}", hint=hint if known else "")


def _ambiguous(text: str, found: Mapping[int, str], where: str) -> UnknownItemError:
    """Builds the error for a name that several items have."""
    some = ", ".join(islice(found.values(), SHOWN))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return UnknownItemError(
        f"{text!r} stands for {len(found)} items of {where}: {some}{more}",
        hint=f"name one of them, such as {shlex.quote(next(iter(found.values())))}",
    )
