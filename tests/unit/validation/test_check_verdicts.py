"""Checks decide after the stages: a failed stage keeps its status, and every failed check is shown."""

from typing import Any

import pytest

from worker.validation.pipeline import validate

PARIS = {"contains": "Paris"}
ROME = {"contains": "Rome"}


@pytest.mark.parametrize(
    ("case", "status", "decided_by", "score"),
    [
        ({"checks": [PARIS]}, "passed", "checks", 1.0),
        ({"checks": [PARIS, ROME]}, "failed_checks", "checks", 0.5),
        ({"checks": [PARIS, ROME], "at_least": 0.5}, "passed", "checks", 0.5),
        ({"checks": [PARIS, ROME], "at_least": 0.6}, "failed_checks", "checks", 0.5),
        ({"checks": [{**PARIS, "weight": 3}, ROME], "at_least": 0.75}, "passed", "checks", 0.75),
        ({"checks": [PARIS, {**ROME, "weight": 0}]}, "passed", "checks", 1.0),
        ({"checks": [ROME], "regex_pattern": "Oslo"}, "failed_regex", "regex", 0.0),
        ({"checks": [PARIS], "regex_pattern": "Paris"}, "passed", "checks", 1.0),
        ({"checks": [], "at_least": 0.5}, "passed", "freeform", None),
        ({"checks": [{**ROME, "weight": 0}]}, "passed", "no_check", None),
        ({"checks": [{"max_latency_s": 1}], "regex_pattern": "Paris"}, "passed", "regex", None),
        ({"checks": [PARIS], "expected": {"a": 1}}, "failed_json_parse", "json_parse", 1.0),
    ],
)
def test_checks_decide_after_the_stages(
    case: dict[str, Any], status: str, decided_by: str, score: float | None
) -> None:
    """A stage's failure stands; else every check must pass, or the mean must reach the case's threshold."""
    result = validate(case, "It is Paris.")
    assert (result.status, result.decided_by, result.score) == (status, decided_by, score)
    assert result.passed == (status == "passed")
    assert len(result.checks) == len(case["checks"])


def test_a_message_names_what_failed() -> None:
    """Up to five checks with their reasons, and the mean where it decides."""
    found = validate({"checks": [ROME, PARIS]}, "It is Paris.")
    assert found.message.startswith("1 of 2 checks failed: contains: Rome: ")
    found = validate({"checks": [ROME] * 7, "at_least": 0.5}, "It is Paris.")
    assert found.message.startswith("mean score 0.00 < 0.5; 7 of 7 checks failed: contains: Rome: ")
    assert found.message.endswith("; and 2 more")


def test_a_case_with_only_checks_is_not_freeform() -> None:
    """Something is required of the answer; only a case without stage and check is freeform."""
    assert not validate({"checks": [PARIS]}, "").freeform
    assert validate({"checks": []}, "").freeform


def test_a_judge_is_asked_before_the_checks_decide() -> None:
    """A judge may forgive the equality, and a check may still fail the case."""
    case = {"expected": {"n": 1}, "checks": [ROME]}
    found = validate(case, '{"n": 2}', judge=lambda *_: "PASS")
    assert (found.status, found.decided_by, found.used_fuzzy_match) == ("failed_checks", "checks", False)
    assert validate(case, '{"n": 2}', judge=lambda *_: "FAIL").status == "failed_fuzzy"
