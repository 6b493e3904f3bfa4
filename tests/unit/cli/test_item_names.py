"""Which item a name on the command line stands for."""

import pytest

from producer.cli.item_names import ItemName, name_of, resolve
from shared.contracts.case_run import CasePayload, encode_case
from shared.errors import UnknownItemError
from shared.names import Kind


def case(position: int, name: str | None, model: str, repeat: int = 0) -> ItemName:
    """A case as it was loaded."""
    payload = CasePayload(position // 2, model, "Hi", id=name, repeat=repeat)
    return name_of(Kind.CASES, position, encode_case(payload))


CASES = [case(0, "greet", "a/b"), case(1, "greet", "c/d"), case(2, "sum", "a/b"), case(3, None, "a/b", 1)]
TURNS = [
    name_of(Kind.TURNS, 0, b'{"threadId":"t","messageId":"m","message":"Hi"}'),
    name_of(Kind.TURNS, 1, b'{"threadId":"u","messageId":"m"}'),
    name_of(Kind.TURNS, 2, b'{"threadId":"u"}'),
    name_of(Kind.TURNS, 3, b'{"threadId":"u","messageId":"turn-1"}'),
]
QUERIES = [ItemName(0, "Q-05", "Q-05"), ItemName(1, "2", "2"), ItemName(2, "Q-06", "Q-06")]


@pytest.mark.parametrize(
    ("kind", "names", "text", "position"),
    [
        (Kind.QUERIES, QUERIES, "Q-06", 2),
        (Kind.QUERIES, QUERIES, "query-2", 2),
        (Kind.QUERIES, QUERIES, "2", 1),
        (Kind.QUERIES, QUERIES, "0", 0),
        (Kind.CASES, CASES, "sum", 2),
        (Kind.CASES, CASES, "greet · c/d", 1),
        (Kind.CASES, CASES, "case 2 · a/b #2", 3),
        (Kind.CASES, CASES, "case-3", 3),
        (Kind.TURNS, TURNS, "u/m", 1),
        (Kind.TURNS, TURNS, "u#2", 2),
    ],
)
def test_name_stands_for_one_item(kind: Kind, names: list[ItemName], text: str, position: int) -> None:
    """An id of the file, its form with model or thread, or a position; a bare number is an id first."""
    assert resolve([text], names, kind=kind, where="run-1") == [position]


@pytest.mark.parametrize(
    ("kind", "names", "text", "message", "hint"),
    [
        (Kind.QUERIES, QUERIES, "Q-6", "run-1 has no item 'Q-6'", "did you mean Q-06?"),
        (Kind.QUERIES, QUERIES, "q-6", "run-1 has no item 'q-6'", "did you mean Q-06?"),
        (Kind.QUERIES, QUERIES, "query-9", "run-1 has no item 'query-9'", "write an id, such as Q-05"),
        (Kind.QUERIES, QUERIES, "turn-1", "run-1 has no item 'turn-1'", "or a position"),
        (Kind.CASES, CASES, "greet", "2 items of run-1: case-0 (greet · a/b), case-1", "such as case-0"),
        (Kind.TURNS, TURNS, "m", "2 items of run-1: turn-0 (t/m), turn-1 (u/m)", "such as turn-0"),
        (Kind.TURNS, TURNS, "turn-1", "turn-3 (u/turn-1), turn-1 (its position)", "such as turn-3"),
    ],
)
def test_unclear_names_are_told(
    kind: Kind, names: list[ItemName], text: str, message: str, hint: str
) -> None:
    """An unknown name comes with those that are near, one of several items with the items."""
    with pytest.raises(UnknownItemError) as caught:
        resolve([text], names, kind=kind, where="run-1")
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_an_item_that_cannot_be_read_has_its_position() -> None:
    """What another version has stored is no reason to list nothing."""
    assert name_of(Kind.CASES, 5, b"{}").label == "case-5"
