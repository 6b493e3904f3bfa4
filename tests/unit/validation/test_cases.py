"""Tests the contract of a test case."""

from typing import Any

import pytest
from pydantic import ValidationError

from shared.contracts.case_vocabulary import MAX_DEPTH, pattern_error, why_not_json
from shared.contracts.cases import Case


def nested(depth: int) -> dict[str, Any]:
    """An object with so many objects inside of it."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({}, "input"),
        ({"input": " "}, "input"),
        ({"input": 3}, "input"),
        ({"input": "x" * 1_000_001}, "input"),
        ({"input": "\ud800"}, "input"),
        ({"input": "x", "expected": [1]}, "expected"),
        ({"input": "x", "expected": "y"}, "expected"),
        ({"input": "x", "expected": {"a": float("nan")}}, "expected"),
        ({"input": "x", "expected": {"a": {1: 2}}}, "expected"),
        ({"input": "x", "expected": {"a": "\udc00"}}, "expected"),
        ({"input": "x", "expected": nested(MAX_DEPTH + 1)}, "expected"),
        ({"input": "x", "regex_pattern": ""}, "regex_pattern"),
        ({"input": "x", "regex_pattern": "a(b"}, "regex_pattern"),
        ({"input": "x", "validator": ""}, "validator"),
        ({"input": "x", "schema": "a.json"}, "schema"),
        ({"input": "x", "json_extraction": "loose"}, "json_extraction"),
        ({"input": "x", "regexp": "a"}, "regexp"),
        ({"input": "x", "id": ""}, "id"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(wrong: dict[str, Any], place: str) -> None:
    """Blank texts, other types, unknown keys and values that JSON does not have are input errors."""
    with pytest.raises(ValidationError) as caught:
        Case.model_validate(wrong)
    assert caught.value.errors()[0]["loc"][0] == place


@pytest.mark.parametrize(
    ("keys", "is_freeform", "can_fail"),
    [
        ({}, True, False),
        ({"expected": None, "regex_pattern": None}, True, False),
        ({"expected": {}}, False, True),
        ({"schema": True}, False, True),
        ({"regex_pattern": "a"}, False, True),
        ({"validator": "v"}, False, True),
        ({"reference": "a"}, False, False),
    ],
)
def test_a_case_is_freeform_when_nothing_is_said_about_the_answer(
    keys: dict[str, Any], *, is_freeform: bool, can_fail: bool
) -> None:
    """Null is absent, an empty object is not, and a reference is stored but decides nothing."""
    case = Case.model_validate({"input": "x", **keys})
    assert (case.is_freeform, case.can_fail) == (is_freeform, can_fail)


def test_a_case_is_written_as_it_is_read() -> None:
    """The schema keeps its name in the file."""
    case = Case(input="x", json_schema={"type": "object"}, expected={"a": nested(40)})
    assert case.json_schema == {"type": "object"}
    assert Case.model_validate_json(case.model_dump_json(exclude_none=True)) == case
    assert "schema" in case.model_dump()


def test_patterns_that_would_break_the_compiler_are_named() -> None:
    """Depth and huge repeats are errors like any other, and what will mean something else later is none."""
    assert pattern_error("(" * 5_000 + ")" * 5_000) is not None
    assert pattern_error("a{99999999999}") is not None
    assert pattern_error("[[a]") is None


def test_the_first_wrong_value_is_named_with_its_place() -> None:
    """The place is a JSON pointer."""
    assert why_not_json({"a": [{"b/c": {1, 2}}]}) == "/a/0/b~1c: set is no JSON type"
    assert why_not_json(["\ud800"]) == "/0: text with half of a surrogate pair"
