"""Tests the verdict on two JSON values, and how their differences are listed."""

import json
from copy import deepcopy
from time import process_time
from typing import Any

import pytest

from worker.validation import differences
from worker.validation.equality import explain, unordered_equal

EQUAL: list[tuple[Any, Any]] = [
    ({}, {}),
    ([], []),
    ({"a": 1, "b": [1, 2, 3]}, {"b": [3, 1, 2], "a": 1}),
    ([[1, 2], [3, 4]], [[4, 3], [2, 1]]),
    ([{"a": [{"b": 1}, {"c": 2}]}, 5], [5, {"a": [{"c": 2}, {"b": 1}]}]),
    ([1, 1, 2], [1, 2, 1]),
    (0.0, -0.0),
    (2**100, 2**100),
    ({"__private": 1}, {"__private": 1}),
    ([[[]], []], [[], [[]]]),
]

DIFFERENT: list[tuple[Any, Any]] = [
    (4, 4.0),
    (1, True),
    (0, False),
    (1, "1"),
    (None, 0),
    ({}, []),
    ({"a": None}, {}),
    ([1, 1, 2], [1, 2, 2]),
    ([1, 1], [1]),
    ([{"a": 1}, {"a": 1}], [{"a": 1}]),
    ([None], ["NONE"]),
    ([1], ["int:1"]),
    ([True], ["bool:true"]),
    ([1.5], ["float:1.5"]),
    ([1, 2.0], [1.0, 2]),
    ({"__private": 1}, {"__private": 2}),
    ({"a": {"b": 1}}, {"b": {"a": 1}}),
    ([[1, 2], [3]], [[1], [2, 3]]),
    ([{}], [[]]),
    ([[]], [[[]]]),
    (["a", {"b": ["c"]}], ["a", {"b": "c"}]),
    (2**100, 2**100 + 1),
    (float("nan"), float("nan")),
    ([float("nan")], [float("nan")]),
]


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_order_makes_no_difference(first: Any, second: Any) -> None:
    """Keys and items may stand in any order, at any depth; then there is nothing to explain."""
    assert unordered_equal(first, second) is True
    assert unordered_equal([first, 0], [0, second]) is True
    assert not explain(first, second)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_types_and_numbers_of_items_make_one(first: Any, second: Any) -> None:
    """Nothing that DeepDiff or Python take for equal passes; whatever is different is explained."""
    for one, other in (
        (first, second),
        (second, first),
        ([first, 0], [0, second]),
        ({"x": first}, {"x": second}),
    ):
        assert unordered_equal(one, other) is False
        assert explain(one, other)


def test_depth_is_no_obstacle() -> None:
    """A hundred thousand lists in each other are compared without a stack."""
    first: list[Any] = []
    second: list[Any] = []
    for _ in range(100_000):
        first, second = [first], [second]
    assert unordered_equal(first, second)
    assert not unordered_equal(first, [second])
    for value in (first, second):
        while value:
            value = value.pop()  # noqa: PLW2901 - taken apart here, since the interpreter would recurse


def test_shared_parts_are_looked_at_once() -> None:
    """A document in which everything stands twice in itself, forty levels deep, takes no time."""
    first: Any = ["x"]
    second: Any = ["x"]
    for _ in range(40):
        first, second = {"a": first, "b": first}, {"a": second, "c": second}
    before = process_time()
    assert not unordered_equal(first, second)
    assert process_time() - before < 1


def test_integers_that_share_a_hash_cost_no_more_than_others() -> None:
    """Thirty thousand integers, equal modulo 2^61 - 1, are compared in well under a second or two."""
    numbers = [(2**61 - 1) * factor + 7 for factor in range(30_000)]
    before = process_time()
    assert unordered_equal(numbers, numbers[::-1])
    assert not unordered_equal(numbers, [*numbers[1:], 7.0])
    assert process_time() - before < 2


def test_a_changed_field_of_an_item_that_moved_is_reported_as_changed() -> None:
    """Items of short lists are paired, so that old and new value stand side by side."""
    expected = {"items": [{"id": 1, "name": "x", "qty": 2}, {"id": 2, "name": "y", "qty": 2}]}
    actual = {"items": [{"id": 2, "name": "y", "qty": 5}, {"id": 1, "name": "x", "qty": 3}]}
    explained = explain(expected, actual)
    assert [(entry.path, entry.expected, entry.actual) for entry in explained.changed] == [
        (("items", 0, "qty"), 2, 3),
        (("items", 1, "qty"), 2, 5),
    ]
    assert (explained.method, explained.note, len(explained.entries)) == ("paired", "", 2)


def test_each_kind_of_difference_is_reported_with_its_place() -> None:
    """Changed, missing, unexpected and repeated, with JSON pointers, in words and as a document."""
    expected = {"a/b": 1, "kept": 0, "gone": [True], "t": "4", "r": ["x", "x", "y"]}
    actual = {"a/b": 2, "kept": 0, "new": None, "t": 4, "r": ["y", "x"]}
    explained = explain(expected, actual)
    assert str(explained) == (
        '5 differences: /a~1b: expected 1, found 2; /t: expected "4", found 4 (another type); '
        '/gone: missing, expected [true]; /new: unexpected, found null; /r/0: "x" expected twice, found once'
    )
    document = explained.as_document()
    assert document["changed"][1] == {"path": "/t", "expected": "4", "actual": 4, "type_changed": True}
    assert document["missing"] == [{"path": "/gone", "expected": [True]}]
    assert document["unexpected"] == [{"path": "/new", "actual": None}]
    assert document["repetitions"] == [{"path": "/r/0", "value": "x", "expected_times": 2, "actual_times": 1}]
    json.dumps(document)


@pytest.mark.parametrize("size", [30, 3_000])
def test_long_lists_are_compared_item_by_item_and_it_says_so(size: int) -> None:
    """Missing and unexpected items are listed as wholes, with a note on how they were found."""
    expected = [{"id": index, "qty": 1} for index in range(size)]
    actual = deepcopy(expected)[::-1]
    actual[0]["qty"] = actual[1]["qty"] = 2
    actual.append({"id": 5, "qty": 1})
    explained = explain(expected, actual)
    assert {entry.path for entry in explained.missing} == {(size - 1,), (size - 2,)}
    assert {entry.path for entry in explained.unexpected} == {(0,), (1,)}
    assert [(entry.path, entry.times) for entry in explained.repetitions] == [((5,), (1, 2))]
    assert explained.method == ("unpaired" if size == 30 else "walk")
    assert explained.note in str(explained)
    assert explained.note


def test_the_one_different_item_of_a_long_list_is_opened() -> None:
    """Where exactly one item has no counterpart on either side, the two are compared."""
    expected = [{"id": index, "tags": ["a"]} for index in range(3_000)]
    actual = deepcopy(expected)
    actual[7]["tags"] = ["b"]
    [entry] = explain(expected, actual[::-1]).entries
    assert (entry.kind, entry.path, entry.expected, entry.actual) == ("changed", (7, "tags", 0), "a", "b")


def test_what_deepdiff_takes_for_equal_our_own_walk_explains() -> None:
    """A collision of its hashes leaves no gap in the explanation."""
    explained = explain({"x": [None, 1]}, {"x": ["NONE", 1]})
    assert (explained.method, [entry.kind for entry in explained.entries]) == ("walk", ["changed"])


def test_deepdiff_gets_a_number_of_steps() -> None:
    """Short lists whose pairing takes too many steps together are compared without it, and it says so."""
    items = [{"id": index, "name": f"n{index}", "tags": ["a", str(index)], "qty": 1} for index in range(20)]
    other = [{**item, "qty": 2, "tags": ["b"]} for item in reversed(items)]
    explained = explain(dict.fromkeys("abcd", items), dict.fromkeys("abcd", other))
    assert explained.method == "unpaired"
    assert len(explained.entries) + explained.omitted == 4 * 2 * 20


def test_many_and_long_differences_are_bounded() -> None:
    """Fifty are kept and the others counted; a message names five; long values are cut."""
    explained = explain({}, {f"k{index}": "x" * 10_000 for index in range(200)})
    assert (len(explained.entries), explained.omitted) == (differences.MAX_ENTRIES, 150)
    assert len(str(explained)) < 1_500
    assert "and 195 more" in str(explained)
    assert len(json.dumps(explained.as_document())) < 150_000
    assert explained.as_document()["unexpected"][0]["actual"].endswith("(10,002 characters)")


def test_deep_documents_are_explained() -> None:
    """Five hundred levels down, one value is different, and its place is named."""
    expected: dict[str, Any] = {"v": 1}
    actual: dict[str, Any] = {"v": 2}
    for _ in range(499):
        expected, actual = {"a": expected}, {"a": actual}
    [entry] = explain(expected, actual).entries
    assert (len(entry.path), entry.expected, entry.actual) == (500, 1, 2)
