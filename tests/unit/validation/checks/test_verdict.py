"""The check `verdict`: what a function is called with, and what its results mean."""

import json

import pytest

from shared.contracts.checks import Check
from worker.validation.checks import Subject
from worker.validation.checks.verdict import VERDICT
from worker.validation.panel import Vote

CHECK = Check("verdict", "short", options={"model": "own", "config": {"most": 3}})


def judged(
    returned: object, at_least: float | None = None, language: str = "javascript"
) -> tuple[object, ...]:
    check = Check("verdict", "short", at_least=at_least, options={"model": "own"})
    reply = json.dumps({"language": language, "value": returned})
    score = VERDICT.score(check, [Vote("own", VERDICT.read(check, reply), reply)])
    return score.value, score.passed, score.error


def test_a_function_is_given_what_one_of_javascript_is() -> None:
    """Its name, the output as a value where it is one, and a context with the options of the check."""
    question = json.loads(VERDICT.prompt(CHECK, Subject("Paris", vars={"n": 1})).user)

    assert (question["function"], question["output"]) == ("short", "Paris")
    assert (question["context"]["vars"], question["context"]["config"]) == ({"n": 1}, {"most": 3})


@pytest.mark.parametrize(
    ("returned", "score"),
    [
        (True, (1.0, True, "")),
        ("False", (0.0, False, "")),
        (0.4, (0.4, True, "")),
        ({"pass": True, "score": 0.2, "reason": "brief"}, (0.2, True, "")),
        ({"pass": False}, (0.0, False, "")),
        (None, (0.0, None, "unreadable")),
        ("perhaps", (0.0, None, "unreadable")),
    ],
)
def test_results_mean_what_they_mean_to_promptfoo(returned: object, score: tuple[object, ...]) -> None:
    assert judged(returned) == score


def test_a_threshold_holds_for_numbers_and_for_objects_of_python_alone() -> None:
    graded = {"pass": True, "score": 0.2, "reason": ""}

    assert [judged(each, 0.5)[1] for each in (0.4, 0.6, graded)] == [False, True, True]
    assert judged(graded, 0.5, "python")[1] is False


def test_a_function_that_cannot_be_asked_decides_nothing() -> None:
    assert VERDICT.score(CHECK, [Vote("own", unreachable="no node")]).unavailable == "no node"
