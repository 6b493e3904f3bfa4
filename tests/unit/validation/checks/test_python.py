"""The check `python`: what functions may return, and what stops them; the sandbox has tests of its own."""

import json

import pytest

from shared.errors import CheckUnusableError
from tests.support.checking import outcome, passes
from tests.support.sandbox_box import Box, CheckBox, StoppedError
from worker.sandbox import SandboxReason, UnusableError


@pytest.mark.parametrize(
    ("returned", "score", "reason"),
    [
        (True, 1.0, "function f returned true"),
        (False, 0.0, "function f returned false"),
        (0.25, 0.25, "function f returned 0.25"),
        (1, 1.0, "function f returned 1"),
        ((True, "good"), 1.0, "good"),
        ((0.5, "half"), 0.5, "half"),
        ((False, ""), 0.0, "function f returned false"),
    ],
)
def test_a_function_decides_or_scores(returned: object, score: float, reason: str) -> None:
    row = outcome({"python": "f"}, sandbox=CheckBox(returned=returned))
    assert (row.score, row.reason) == (score, reason)


@pytest.mark.parametrize(
    "returned", [None, "yes", 1.5, -0.1, float("nan"), float("inf"), (1, 2), (2.0, "x"), [True]]
)
def test_everything_else_fails(returned: object) -> None:
    row = outcome({"python": "f"}, sandbox=CheckBox(returned=returned))
    assert (row.score, row.detail["error"]) == (0.0, "bad_return")


def test_a_score_passes_from_at_least_on() -> None:
    assert passes({"python": "f"}, sandbox=CheckBox(returned=0.9)) is False
    assert passes({"python": "f", "at_least": 0.9}, sandbox=CheckBox(returned=0.9)) is True


def test_a_function_receives_the_output_and_a_context() -> None:
    box = CheckBox(returned=True)
    passes({"python": "f"}, "Paris", sandbox=box, vars={"country": "France"}, input="Where?")
    [(_, name, text)] = box.asked
    context = json.loads(box.contexts[0])
    assert (name, text) == ("f", "Paris")
    assert (context["vars"], context["input"]) == ({"country": "France"}, "Where?")


def test_a_sandbox_without_contexts_is_called_with_the_output_alone() -> None:
    assert passes({"python": "f"}, "Paris", sandbox=Box(returned=True)) is True


def test_what_is_stopped_fails_and_says_why() -> None:
    row = outcome({"python": "f"}, sandbox=CheckBox(returned=StoppedError("timeout")))
    assert (row.passed, row.reason) == (False, "function f timed out: stopped: timeout")
    assert outcome({"python": "f"}).detail["error"] == "unavailable"


def test_a_function_that_does_not_exist_decides_nothing() -> None:
    box = CheckBox(returned=UnusableError(SandboxReason.UNKNOWN_VALIDATOR, "no f"))
    with pytest.raises(CheckUnusableError):
        passes({"python": "f"}, sandbox=box)
