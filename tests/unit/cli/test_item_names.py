"""Which item a name on the command line stands for."""

import pytest

from producer.item_names import ItemName, name_of, resolve
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
    name_of(TURNS, 2, b'{"threadId":"u","clientRequestId":"r-1"}'),
    name_of(TURNS, 3, b'{"threadId":"u","messageId":"turn-1"}'),
]
OWN_NUMBERS = [
    name_of(CASES, at, encode_case(CasePayload(at, "m", "Hi", id=name)))
    for at, name in enumerate(["case-1", None, "1"])
]
"""Ids that look like numbers of other cases, beside a case without an id."""
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
        (CASES, OWN_NUMBERS, "case-1", 0),
        (CASES, OWN_NUMBERS, "2", 1),
        (CASES, OWN_NUMBERS, "case 2", 1),
        (CASES, OWN_NUMBERS, "case-2", 2),
        (CASES, OWN_NUMBERS, "1", 2),
        (TURNS, TURN_NAMES, "turn-1", 3),
        (TURNS, TURN_NAMES, "u/m", 1),
        (TURNS, TURN_NAMES, "u#2", 2),
        (TURNS, TURN_NAMES, "r-1", 2),
        (TURNS, TURN_NAMES, "t", 0),
    ],
)
def test_name_stands_for_one_item(kind: Kind, names: list[ItemName], text: str, position: int) -> None:
    """An id of the file, its form with model or thread, or a number; what the file gives comes first."""
    assert resolve([text], names, kind=kind, where="run-1") == [position]


@pytest.mark.parametrize("name", ["greet", None])
@pytest.mark.parametrize("text", ["2", "case 2"])
def test_number_of_a_case_stands_for_all_its_answers(text: str, name: str | None) -> None:
    """It counts cases from 1, as lists do, not their answers from 0."""
    names = [case(0, None, "a/b"), case(1, None, "c/d"), case(2, name, "a/b"), case(3, name, "c/d")]
    assert resolve([text], names, kind=CASES, where="run-1", is_each=True) == [2, 3]


def test_every_name_that_a_list_prints_opens_its_item() -> None:
    """The label is on the screen, the position in `item_id`: both lead back to the item."""
    for name in CASE_NAMES:
        for text in (name.label, f"case-{name.position}"):
            assert resolve([text], CASE_NAMES, kind=CASES, where="run-1") == [name.position], text


@pytest.mark.parametrize(
    ("kind", "names", "text", "message", "hint"),
    [
        (QUERIES, QUERY_NAMES, "Q-6", "run-1 has no item 'Q-6'", "did you mean Q-06?"),
        (QUERIES, QUERY_NAMES, "q-6", "run-1 has no item 'q-6'", "did you mean Q-06?"),
        (QUERIES, QUERY_NAMES, "query-9", "run-1 has no item 'query-9'", "write an id, such as Q-05"),
        (QUERIES, QUERY_NAMES, "turn-1", "run-1 has no item 'turn-1'", "or a position"),
        (CASES, CASE_NAMES, "greet", "2 items of run-1: greet · a/b, greet", "such as 'greet · a/b'"),
        (TURNS, TURN_NAMES, "m", "2 items of run-1: t/m, u/m", "such as t/m"),
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
