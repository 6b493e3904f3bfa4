"""Which item a name on the command line stands for."""

import pytest

from producer.cli.item_names import ItemName, name_of, resolve
from shared.contracts.case_run import CasePayload, encode_case
from shared.errors import UnknownItemError
from shared.kinds import CASES, QUERIES, TURNS, Kind


def case(position: int, name: str | None, model: str, repeat: int = 0) -> ItemName:
    """A case as it was loaded."""
    payload = CasePayload(position // 2, model, "Hi", id=name, repeat=repeat)
    return name_of(CASES, position, encode_case(payload))


CASE_NAMES = [
    case(0, "greet", "a/b"),
    case(1, "greet", "c/d"),
    case(2, "sum", "a/b"),
    case(3, None, "a/b", 1),
]
TURN_NAMES = [
    name_of(TURNS, 0, b'{"threadId":"t","messageId":"m","message":"Hi"}'),
    name_of(TURNS, 1, b'{"threadId":"u","messageId":"m"}'),
    name_of(TURNS, 2, b'{"threadId":"u"}'),
    name_of(TURNS, 3, b'{"threadId":"u","messageId":"turn-1"}'),
]
QUERY_NAMES = [ItemName(0, "Q-05", "Q-05"), ItemName(1, "2", "2"), ItemName(2, "Q-06", "Q-06")]


@pytest.mark.parametrize(
    ("kind", "names", "text", "position"),
    [
        (QUERIES, QUERY_NAMES, "Q-06", 2),
        (QUERIES, QUERY_NAMES, "query-2", 2),
        (QUERIES, QUERY_NAMES, "2", 1),
        (QUERIES, QUERY_NAMES, "0", 0),
        (CASES, CASE_NAMES, "sum", 2),
        (CASES, CASE_NAMES, "greet · c/d", 1),
        (CASES, CASE_NAMES, "case 2 · a/b #2", 3),
        (CASES, CASE_NAMES, "case-3", 3),
        (TURNS, TURN_NAMES, "u/m", 1),
        (TURNS, TURN_NAMES, "u#2", 2),
    ],
)
def test_name_stands_for_one_item(kind: Kind, names: list[ItemName], text: str, position: int) -> None:
    """An id of the file, its form with model or thread, or a position; a bare number is an id first."""
    assert resolve([text], names, kind=kind, where="run-1") == [position]


@pytest.mark.parametrize(
    ("kind", "names", "text", "message", "hint"),
    [
        (QUERIES, QUERY_NAMES, "Q-6", "run-1 has no item 'Q-6'", "did you mean Q-06?"),
        (QUERIES, QUERY_NAMES, "q-6", "run-1 has no item 'q-6'", "did you mean Q-06?"),
        (QUERIES, QUERY_NAMES, "query-9", "run-1 has no item 'query-9'", "write an id, such as Q-05"),
        (QUERIES, QUERY_NAMES, "turn-1", "run-1 has no item 'turn-1'", "or a position"),
        (CASES, CASE_NAMES, "greet", "2 items of run-1: greet · a/b, greet", "such as 'greet · a/b'"),
        (TURNS, TURN_NAMES, "m", "2 items of run-1: t/m, u/m", "such as t/m"),
        (TURNS, TURN_NAMES, "turn-1", "2 items of run-1: u/turn-1, ", "such as u/turn-1"),
    ],
)
def test_unclear_names_are_reported(
    kind: Kind, names: list[ItemName], text: str, message: str, hint: str
) -> None:
    """An unknown name comes with those that are near, one of several items with the items."""
    with pytest.raises(UnknownItemError) as caught:
        resolve([text], names, kind=kind, where="run-1")
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_an_item_that_cannot_be_read_has_its_position() -> None:
    """What another version has stored is no reason to list nothing."""
    assert name_of(CASES, 5, b"{}").label == "case-5"
