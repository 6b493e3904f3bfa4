"""A check that could not be evaluated is no verdict: whatever contains it fails, `not` above all."""

from typing import Any, Final

import pytest

from shared.contracts.checks import Check
from tests.support.checking import call, outcome
from tests.support.sandbox_box import CheckBox, StoppedError
from worker.validation.case_verdict import CheckResult
from worker.validation.check_verdict import verdict, with_checks
from worker.validation.checks import Answer, Subject, parse_checks
from worker.validation.checks.kind import Score, no, unavailable
from worker.validation.checks.rubric import RUBRIC
from worker.validation.pipeline import validate
from worker.validation.scoring import Evaluation, question_of

BROKEN: Final = {"python": "f"}
PASSES: Final = {"contains": "a"}
FAILS: Final = {"contains": "b"}
RAISES: Final = CheckBox(returned=ValueError("no"), found=StoppedError("timeout"))


@pytest.mark.parametrize(
    "sandbox",
    [
        CheckBox(returned=ValueError("no")),
        CheckBox(returned=StoppedError("timeout")),
        CheckBox(returned=StoppedError("memory")),
        CheckBox(returned="yes"),
        None,
    ],
    ids=["raises", "loops", "memory", "bad return", "no sandbox"],
)
def test_what_stops_a_function_does_not_pass_its_negation(sandbox: CheckBox | None) -> None:
    """A guard that crashes lets nothing through."""
    row = outcome({"not": BROKEN}, "a", sandbox=sandbox)
    assert (row.passed, row.score) == (False, 0.0)
    assert row.detail["error"]
    assert outcome({"not": {"not": BROKEN}}, "a", sandbox=sandbox).passed is False


def test_a_pattern_that_takes_too_long_does_not_pass_its_negation() -> None:
    """The text may contain what the pattern looks for."""
    row = outcome({"not": {"regex": "(a+)+$|SECRET"}}, "a", sandbox=RAISES)
    assert (row.passed, row.detail["error"]) == (False, "timeout")
    assert row.reason.endswith("timed out: stopped: timeout")


@pytest.mark.parametrize(
    "check",
    [
        {"all": [BROKEN, PASSES]},
        {"all": [BROKEN, FAILS]},
        {"any": [BROKEN, PASSES]},
        {"any": [FAILS, BROKEN]},
        {"any": [{"not": BROKEN}, FAILS]},
        {"not": {"any": [BROKEN, FAILS]}},
        {"not": {"all": [BROKEN, FAILS]}},
        {"not": {"all": [BROKEN, PASSES]}},
        {"not": BROKEN, "at_least": 0.1},
        {"not": {"python": "f", "at_least": 0}},
    ],
)
def test_every_parent_fails_on_it(check: Any) -> None:
    """It fails as an exception ends an expression, and its reason names what could not be run."""
    row = outcome(check, "a", sandbox=RAISES)
    assert (row.passed, row.score, row.detail["error"]) == (False, 0.0, "exception")
    assert "function f raised ValueError: no" in row.reason


def test_one_node_of_several_is_enough_to_fail() -> None:
    """The best node is not known when one could not be looked at."""
    check = {"not": {"regex": "SECRET", "json_path": "$[*]"}}
    assert outcome(check, '["x", "y"]', sandbox=RAISES).passed is False
    outside = {"not": {"regex": "SECRET"}, "json_path": "$[*]"}
    assert outcome(outside, '["x", "y"]', sandbox=RAISES).passed is False


def test_a_path_that_takes_too_long_does_not_pass_its_negation() -> None:
    text = "[" + ",".join(["[0,0,0,0,0,0,0,0]"] * 10_000) + "]"
    assert outcome({"not": {"contains": "x", "json_path": "$..*..*..*..*"}}, text).passed is False


@pytest.mark.parametrize(
    "check", [{"contains": "x", "json_path": "$.a"}, {"equals": "x", "json_path": "$[9]"}]
)
@pytest.mark.parametrize("output", ["no JSON", "[]", "{}"])
def test_a_path_that_selects_nothing_is_a_finding(check: Any, output: str) -> None:
    """The output has no such value: the check fails, and its negation passes."""
    assert outcome(check, output).passed is False
    assert outcome({"not": check}, output).passed is True


@pytest.mark.parametrize("order", ["strict", "any"])
def test_arguments_of_tool_calls_are_parents_too(order: str) -> None:
    answer = Answer(tool_calls=[call("f")])
    called = {"name": "f", "arguments": BROKEN}
    for check in ({"tool_call": called}, {"tool_calls": [called], "order": order}):
        assert outcome(check, "a", answer=answer, sandbox=RAISES).detail["error"] == "exception"
        assert outcome({"not": check}, "a", answer=answer, sandbox=RAISES).passed is False


def test_a_mean_fails_on_it_and_says_so() -> None:
    """The mean of the others would decide about an answer that was not checked."""
    case = {"checks": [{"not": BROKEN}, PASSES, PASSES], "at_least": 0.5}
    result = validate(case, "a", sandbox=RAISES)
    assert not result.passed
    assert result.score == pytest.approx(2 / 3)
    assert result.message.startswith("1 of 3 checks could not be evaluated: not python: f: ")


def test_without_weight_it_decides_nothing() -> None:
    broken = CheckResult(
        "b", "python", 0.0, passed=False, reason="", detail={"error": "exception"}, weight=0.0
    )
    passed = CheckResult("a", "contains", 1.0, passed=True, reason="")
    assert verdict([broken, passed], 0.5) == (True, 1.0)
    assert verdict([broken, passed]) == (True, 1.0)


def asked(check: Any, scores: dict[str, Score]) -> Score:
    """The score of a check over rubrics, each with an answer by its criterion."""
    [parsed] = parse_checks([check])
    subject = Subject("a")
    answers: dict[bytes, Score] = {}
    for _ in scores:
        evaluation = Evaluation(answers)
        found = evaluation.outcome(parsed, subject)
        for key, question in evaluation.questions.items():
            answers[key] = scores[question.check.argument]
    found = Evaluation(answers).outcome(parsed, subject)
    assert question_of(Check("rubric", "x"), RUBRIC, subject).key not in answers
    return found


AWAY: Final = unavailable("no route")
UNREADABLE: Final = no("the judge: no score", error="unreadable", votes=[])
GOOD: Final = Score(0.9, "good", {"votes": []})
BAD: Final = Score(0.2, "bad", {"votes": []})


def rubric(words: str) -> dict[str, Any]:
    """A rubric of a model."""
    return {"rubric": words, "model": "m"}


def test_a_judge_without_a_score_does_not_pass_a_negation() -> None:
    found = asked({"not": rubric("x")}, {"x": UNREADABLE})
    assert (found.value, found.passed, found.error) == (0.0, False, "unreadable")


@pytest.mark.parametrize(
    ("check", "passed"),
    [
        ({"any": [rubric("away"), rubric("good")]}, True),
        ({"any": [rubric("away"), rubric("bad")]}, None),
        ({"any": [rubric("away"), PASSES]}, True),
        ({"any": [rubric("away"), rubric("good")], "at_least": 0.95}, None),
        ({"all": [rubric("away"), rubric("bad")]}, False),
        ({"all": [rubric("away"), rubric("good")]}, None),
        ({"not": rubric("away")}, None),
        ({"not": {"any": [rubric("away"), rubric("good")]}}, False),
        ({"not": {"all": [rubric("away"), rubric("bad")]}}, True),
    ],
)
def test_a_judge_that_is_away_matters_only_where_the_others_do_not_decide(
    check: Any, *, passed: bool | None
) -> None:
    """Its check waits where its score could change the verdict, and is decided where it could not."""
    found = asked(check, {"away": AWAY, "good": GOOD, "bad": BAD})
    assert found.passed is passed
    assert bool(found.unavailable) is (passed is None)


def test_the_message_of_a_case_names_the_checks_that_failed() -> None:
    """Without a threshold of the case, those that could not be evaluated are among them."""
    result = validate({"checks": [BROKEN, FAILS]}, "a", sandbox=RAISES)
    assert with_checks(result).message.startswith("2 of 2 checks failed: python: f: function f raised")
