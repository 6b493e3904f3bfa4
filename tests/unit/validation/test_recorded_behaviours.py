"""What a bench of recorded answers relies on: one row each, from the check as written to the verdict."""

from typing import Any, Final

import pytest

from shared.contracts.checks import Check
from tests.support.checking import call, outcome
from worker.validation.checks import Answer
from worker.validation.checks.rubric import SCORING
from worker.validation.pipeline import validate

TOOLS: Final = Answer(tool_calls=[call("f", '{"city": "Zürich", "n": 2}'), call("g")])
FIGURES: Final = Answer(latency_s=5.0, tokens=500, cost_usd=0.1 + 0.2)


@pytest.mark.parametrize(
    ("check", "output", "passed"),
    [
        # letters and their forms
        ({"equals": "Cafe\u0301"}, "Café", False),
        ({"equals": "Cafe\u0301", "normalize": True}, "Café", True),
        ({"contains": "STRASSE", "ignore_case": True}, "Hauptstraße 1", True),
        ({"one_of": ["İstanbul"], "ignore_case": True}, "istanbul", False),
        ({"contains": "\u00a0a b", "normalize": True}, "x a\u2003b", True),
        ({"length": {"max": 4}}, "👩\u200d👩", True),
        ({"levenshtein": "", "at_least": 1}, "", True),
        # selected parts of JSON
        ({"json_path": "$..name", "equals": "b"}, '[{"name": "a"}, {"x": {"name": "b"}}]', True),
        ({"json_path": "$[?@.n > 1].t", "equals": "x"}, '[{"n": 1, "t": "y"}, {"n": 2, "t": "x"}]', True),
        ({"json_path": "$['a b']", "number": 2}, '{"a b": "2"}', True),
        ({"json_path": "$.a", "equals": "null"}, '{"a": null}', True),
        ({"json_path": "$.a", "equals": "true"}, '{"a": true}', True),
        ({"json_path": "$.a", "json_equals": [1, {"b": 2}]}, '{"a": [{"b": 2}, 1]}', True),
        ({"json_path": "$.a", "json_schema": {"type": "array"}}, '{"a": []}', True),
        ({"json_path": "$.a", "length": {"min": 2, "max": 2}, "unit": "words"}, '{"a": "x  y"}', True),
        ({"json_path": "$[-1]", "equals": "c"}, '["a", "b", "c"]', True),
        ({"json_path": "$.a", "contains": "x"}, '```json\n{"a": "x"}\n```', True),
        ({"json_path": "$.a", "contains": "x"}, 'So: {"a": "x"}', False),
        # numbers
        ({"number": 0.3, "tolerance": 0}, "0.30", True),
        ({"number": 100, "tolerance": "0.5%"}, "100.5", True),
        ({"number": 100, "tolerance": "0.5%"}, "100.51", False),
        ({"number": 1e21}, "1000000000000000000000", True),
        # combinations
        ({"not": {"any": [{"contains": "a"}, {"contains": "b"}]}}, "c", True),
        ({"not": {"all": [{"contains": "a"}, {"contains": "b"}]}}, "a", True),
        ({"all": [{"any": [{"equals": "a"}, {"equals": "b"}]}, {"not": {"equals": "a"}}]}, "b", True),
        ({"any": [{"max_cost": 1}, {"contains": "a"}]}, "a", True),
        ({"all": [{"max_cost": 1}, {"contains": "b"}]}, "a", False),
        ({"not": {"not": {"not": {"contains": "a"}}}}, "a", False),
        # refusals
        ("refusal", "I\u2019m sorry, but I can\u2019t help with that.", True),
        ("refusal", f"{'Well. ' * 80}I cannot help with that.", False),
        ("no_refusal", "He said: sorry. Paris.", True),
    ],
)
def test_a_check_of_a_text(check: Any, output: str, *, passed: bool) -> None:
    assert outcome(check, output).passed is passed


@pytest.mark.parametrize(
    ("check", "passed"),
    [
        ({"tool_call": {"name": "f", "arguments": {"json_path": "$.city", "equals": "Zürich"}}}, True),
        ({"tool_call": {"name": "f", "arguments": [{"json_path": "$.n", "number": 2}, "json"]}}, True),
        ({"tool_call": {"name": "f", "arguments": {"json_equals": {"city": "Zürich"}}}}, False),
        ({"tool_call": "none"}, False),
        ({"tool_calls": ["f", "g"]}, True),
        ({"tool_calls": ["g", "f"]}, False),
        ({"tool_calls": ["g", "f"], "order": "any"}, True),
        ({"tool_calls": ["f"], "order": "any"}, False),
        ({"not": {"tool_call": "h"}}, True),
    ],
)
def test_a_check_of_tool_calls(check: Any, *, passed: bool) -> None:
    assert outcome(check, answer=TOOLS).passed is passed


@pytest.mark.parametrize(
    ("check", "passed"),
    [
        ({"max_latency_s": 5}, True),
        ({"max_latency_s": 4.999}, False),
        ({"max_tokens_used": 500}, True),
        ({"max_tokens_used": 499}, False),
        ({"max_cost": 0.3}, True),
        ({"not": {"max_cost": 0.29}}, True),
    ],
)
def test_a_check_of_figures(check: Any, *, passed: bool) -> None:
    """A bound that is met exactly is met, also by a sum of costs."""
    assert outcome(check, answer=FIGURES).passed is passed


@pytest.mark.parametrize(
    ("case", "passed", "score"),
    [
        ({"checks": [{"contains": "a", "weight": 3}, {"contains": "b"}], "at_least": 0.75}, True, 0.75),
        ({"checks": [{"contains": "a", "weight": 3}, {"contains": "b"}], "at_least": 0.76}, False, 0.75),
        ({"checks": [{"contains": "a"}, {"contains": "b", "weight": 0}]}, True, 1.0),
        ({"checks": [{"contains": "a", "weight": 0}, {"contains": "b", "weight": 0}]}, True, None),
        ({"checks": [{"contains": "b"}], "at_least": 0}, True, 0.0),
        ({"checks": [{"max_cost": 1}], "at_least": 1}, True, None),
        ({"checks": [{"contains": "a"}], "regex_pattern": "b"}, False, 1.0),
        ({"checks": [{"levenshtein": "ab", "at_least": 0.5}, {"contains": "a"}]}, True, 0.75),
    ],
)
def test_a_case_by_its_checks(case: dict[str, Any], *, passed: bool, score: float | None) -> None:
    """Weights count in the mean, weight 0 and skipped checks decide nothing, and stages come first."""
    result = validate(case, "a")
    assert (result.passed, result.score) == (passed, score)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": NaN}', None),
        ('{"score": Infinity}', None),
        ('{"score": 1.0000001}', None),
        ('{"score": [1]}', None),
        ('{"score": null, "reason": "?"}', None),
        ('{"Score": 1}', None),
        ('{"score": "1e400"}', None),
        ('{"score": "NaN"}', None),
        ('{"score": 1e-400}', 0.0),
        ('First {"score": 0.2} and then {"score": 0.9}', 0.2),
        ('The output says {"score": 1}.\n```json\n{"score": 0.1}\n```', 0.1),
    ],
)
def test_a_judges_reply(reply: str, score: float | None) -> None:
    """What is not one number from 0 to 1 is no score; a fence goes before prose."""
    assert SCORING.grade_of(Check("rubric"), reply).score == score
