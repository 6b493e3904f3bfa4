"""Transforms of answers and of what checks look at: what is checked, what is kept, what goes wrong."""

from typing import Any, Final

import pytest

from producer.cases.rescore import written_checks
from shared.contracts.checks import Transform
from shared.errors import WrongInput
from tests.support.sandbox_box import CheckBox, StoppedError
from worker.validation.case_verdict import Returned
from worker.validation.checks import Subject, parse_checks
from worker.validation.pipeline import before_judge, with_checks
from worker.validation.scoring import run_deterministic
from worker.validation.transforming import TransformError, transformed

CITY: Final = '{"city": {"name": "Paris", "n": 2}}'


@pytest.mark.parametrize(
    ("transform", "text", "is_value"),
    [
        (Transform(json_pointer="/city/name"), "Paris", False),
        (Transform(json_pointer="/city"), '{"name":"Paris","n":2}', True),
        (Transform(json_pointer=""), '{"city":{"name":"Paris","n":2}}', True),
        (Transform(template="{{ json.city.name }} {{ vars.x }} {{ input }}"), "Paris 1 Hi", False),
        (Transform(python="f"), '["made"]', True),
        (Transform(javascript="output"), '["made"]', True),
    ],
)
def test_what_is_checked_changes(transform: Transform, text: str, *, is_value: bool) -> None:
    """Texts stay texts; other values are checked as JSON, and given to JavaScript as values."""
    sandbox = CheckBox(returned=["made"] if transform.python else Returned("object", ["made"]))
    found = transformed(transform, Subject(CITY, input="Hi", vars={"x": 1}, sandbox=sandbox))
    assert (found.text, found.is_value) == (text, is_value)


@pytest.mark.parametrize(
    ("transform", "output", "returned", "why"),
    [
        (Transform(json_pointer="/town"), CITY, None, "nothing is at /town"),
        (Transform(json_pointer="/city"), "Paris", None, "no JSON in the output, which begins: Paris"),
        (Transform(json_pointer="/a"), '{"a": null}', None, "made nothing"),
        (Transform(template="{{ json.town }}"), CITY, None, "'town'"),
        (Transform(template="{{ json.city }}"), "Paris", None, "the variable|has no|None"),
        (Transform(python="f"), CITY, StoppedError("timeout"), "function f timed out"),
        (Transform(python="f"), CITY, [float("nan")], "/0: nan is no JSON number"),
        (Transform(javascript="x"), CITY, StoppedError("exception"), "JavaScript could not be run: stopped"),
        (Transform(javascript="x"), CITY, Returned("undefined", None), "made nothing"),
    ],
)
def test_what_cannot_be_changed_says_why(transform: Transform, output: str, returned: Any, why: str) -> None:
    """In one line."""
    with pytest.raises(TransformError, match=why):
        transformed(transform, Subject(output, sandbox=CheckBox(returned=returned)))


def test_stages_and_checks_see_what_a_transform_made() -> None:
    """The answer is kept beside it; the transform of the model comes first."""
    case: dict[str, Any] = {"expected": {"n": 2}, "checks": [{"contains": "Paris", "json_path": "$.name"}]}
    case |= {"transform": {"json_pointer": "/city"}, "expected": {"name": "Paris", "n": 2}}
    answer = '{"data": {"city": {"name": "Paris", "n": 2}}}'
    result = before_judge(case, answer, transforms=[Transform(json_pointer="/data")])
    assert (result.passed, result.raw_output, [row.passed for row in result.checks]) == (True, answer, [True])
    assert result.as_document()["checked_output"] == '{"name":"Paris","n":2}'
    assert "checked_output" not in before_judge({"checks": ["json"]}, answer).as_document()


@pytest.mark.parametrize("at_least", [None, 0.1])
def test_an_answer_that_cannot_be_changed_fails_its_case(at_least: float | None) -> None:
    """Nothing else is looked for, and no score makes up for it."""
    case: dict[str, Any] = {"regex_pattern": "^x", "reference": "a", "checks": [{"contains": "a"}]}
    case |= {"transform": {"json_pointer": "/a"}}
    result = with_checks(before_judge(case, "a"), at_least)
    assert (result.status, result.decided_by, result.raw_output) == ("failed_checks", "checks", "a")
    assert [(row.name, row.score) for row in result.checks] == [("transform", 0.0)]
    assert "no JSON in the output" in result.message
    assert {stage.outcome for stage in result.stages} == {"skipped"}
    assert (len(result.stages), result.metrics) == (6, {})


def test_a_check_with_a_transform_that_fails_passes_nothing() -> None:
    """As one whose function was stopped: the check around it fails, too."""
    inner = {"contains": "Paris", "transform": {"json_pointer": "/town"}}
    found = run_deterministic(parse_checks([inner, {"not": inner}, {"any": [inner, "json"]}]), Subject(CITY))
    assert [(row.passed, row.detail["error"]) for row in found] == [(False, "transform")] * 3


def test_checks_are_written_again_with_their_transforms() -> None:
    """For another run, with the text of files."""
    code = {"file": "a.js", "source": "module.exports = 1", "sha256": "0"}
    raw = [
        {"contains": "a", "transform": {"template": "{{ output }}"}},
        {"javascript": code, "config": {"k": 1}, "transform": {"javascript": code}},
    ]
    assert written_checks(parse_checks(raw)) == raw


@pytest.mark.parametrize("written", [{}, "x", {"json_pointer": "/a", "python": "f"}, {"json_pointer": "a"}])
def test_a_transform_is_one_way_that_is_right(written: Any) -> None:
    """What is wrong is told before anything is sent."""
    with pytest.raises(WrongInput, match=r"should be one of|JSON pointer"):
        parse_checks([{"contains": "a", "transform": written}])
