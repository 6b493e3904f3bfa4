"""Tests stages 0 and 0.5: what a sandbox may answer, and what may go wrong in it."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from shared.contracts.cases import Case
from tests.support.sandbox_box import Box, StoppedError
from worker.validation.pipeline import validate


@pytest.mark.parametrize("found", ["", "x", True, re.search("x", "x")])
def test_anything_but_none_and_false_is_a_match(found: Any) -> None:
    """A sandbox may answer with the matched text, an empty one included, with a match or with true."""
    assert validate({"regex_pattern": "x"}, "x", sandbox=Box(found)).passed


@pytest.mark.parametrize("found", [None, False])
def test_none_and_false_are_no_match(found: Any) -> None:
    """Both fail the case, and the message names the pattern and what the output begins with."""
    result = validate({"regex_pattern": "def"}, "class A", sandbox=Box(found))
    assert result.status == "failed_regex"
    assert '"def"' in result.message
    assert "class A" in result.message


def test_the_place_of_a_match_is_given_only_where_it_is_sure() -> None:
    """A sandbox tells the matched text; a text that occurs twice has no sure place."""
    once = validate({"regex_pattern": "b"}, "abc", sandbox=Box("b"))
    twice = validate({"regex_pattern": "b"}, "bb", sandbox=Box("b"))
    assert (once.stages[0].detail["span"], twice.stages[0].detail["span"]) == ([1, 2], None)


def test_an_invalid_pattern_is_an_input_error_at_the_door_and_a_failure_behind_it() -> None:
    """A `Case` refuses it; a run that has it fails the case and loses nothing."""
    with pytest.raises(ValidationError, match="not a regular expression: missing"):
        Case(input="x", regex_pattern="(")
    result = validate({"regex_pattern": "("}, "(")
    assert (result.status, result.stages[0].detail["error"]) == ("failed_regex", "bad_pattern")


@pytest.mark.parametrize("reason", ["timeout", "memory", "crash", "exception", "forged", "too_large"])
def test_a_stopped_pattern_or_validator_costs_one_case(reason: str) -> None:
    """What the sandbox had to stop fails the case with its reason."""
    stopped = StoppedError(reason)
    searched = validate({"regex_pattern": "x"}, "x", sandbox=Box(stopped))
    called = validate({"validator": "v"}, "x", sandbox=Box(returned=stopped))
    assert (searched.status, called.status) == ("failed_regex", "failed_custom")
    for result in (searched, called):
        assert f"stopped: {reason}" in result.message
        assert ("timed out" in result.message) is (reason == "timeout")
        assert result.stages[0 if result is searched else 1].detail["error"] == reason


@pytest.mark.parametrize(
    ("returned", "passed", "message"),
    [
        (True, True, ""),
        ((True, "fine"), True, ""),
        (False, False, "validator v does not accept it"),
        ((False, "too short"), False, "too short"),
        (None, False, "validator v returned null, which is neither a bool nor (bool, str)"),
        (1, False, "validator v returned 1, which is neither a bool nor (bool, str)"),
        ((True,), False, "validator v returned a tuple, which is neither a bool nor (bool, str)"),
        ((1, "yes"), False, "validator v returned a tuple, which is neither a bool nor (bool, str)"),
        ((True, None), False, "validator v returned a tuple, which is neither a bool nor (bool, str)"),
        ([True, "x"], False, "validator v returned a list, which is neither a bool nor (bool, str)"),
        (ValueError("boom"), False, "validator v raised ValueError: boom"),
    ],
)
def test_a_validator_returns_a_bool_or_a_bool_with_a_text(
    returned: Any, *, passed: bool, message: str
) -> None:
    """Anything else fails the case and says what came back."""
    box = Box(returned=returned)
    result = validate({"validator": "v"}, "raw ```text```", sandbox=box)
    assert (result.passed, result.message) == (passed, message)
    assert result.status == ("passed" if passed else "failed_custom")
    assert box.asked == [("call", "v", "raw ```text```")]


def test_a_passing_validators_text_is_kept() -> None:
    """It is the stage's reason."""
    result = validate({"validator": "v"}, "x", sandbox=Box(returned=(True, "Length: 1")))
    assert result.stages[1].reason == "Length: 1"


def test_without_a_sandbox_no_validator_runs() -> None:
    """Code that somebody sent is not run in this process: the case fails and says why."""
    result = validate({"validator": "is_valid"}, "x")
    assert result.status == "failed_custom"
    assert "no sandbox" in result.message
