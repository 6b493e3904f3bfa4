"""Scores of checks, what a case makes of them, and the questions of paid checks."""

from fractions import Fraction
from itertools import chain, combinations, product
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.checks import Check
from tests.support.sandbox_box import Box, CheckBox, StoppedError
from worker.validation.case_verdict import CheckResult
from worker.validation.check_verdict import mean_score, verdict
from worker.validation.checks import Subject, parse_checks
from worker.validation.checks.walks import calls_functions, needs_sandbox
from worker.validation.scoring import Evaluation, run_deterministic

SCORES = st.none() | st.floats(0, 1)


def row(score: float | None, weight: float = 1.0, *, at_least: float = 0.5) -> CheckResult:
    passed = None if score is None else score >= at_least
    return CheckResult("a check", "contains", score, passed, "because", weight=weight)


ROWS = st.lists(st.builds(row, SCORES, st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=6)


@given(ROWS)
def test_the_mean_is_between_the_least_and_the_greatest(rows: list[CheckResult]) -> None:
    scores = [each.score for each in rows if each.score is not None and each.weight]
    mean = mean_score(rows)
    assert (mean is None) is (not scores)
    if mean is not None:
        assert min(scores) - 1e-9 <= mean <= max(scores) + 1e-9


@given(ROWS, st.none() | st.floats(0, 1))
def test_what_has_no_score_or_no_weight_changes_nothing(
    rows: list[CheckResult], at_least: float | None
) -> None:
    counted = [each for each in rows if each.score is not None and each.weight]
    assert verdict(rows, at_least) == verdict(counted, at_least)


@given(ROWS)
def test_without_a_threshold_every_check_must_pass(rows: list[CheckResult]) -> None:
    assert verdict(rows)[0] is all(each.passed for each in rows if each.score is not None and each.weight)


@given(ROWS, st.floats(0, 1))
def test_with_a_threshold_the_mean_decides(rows: list[CheckResult], at_least: float) -> None:
    passed, mean = verdict(rows, at_least)
    assert passed is (mean is None or mean >= at_least - 1e-9)


@given(st.lists(st.booleans(), min_size=1, max_size=5))
def test_combinations_are_those_of_logic(passed: list[bool]) -> None:
    """With yes and no, `all` is and, `any` is or, and `not` turns both around."""
    inner = [{"contains": "a" if each else "b"} for each in passed]
    raw = [
        {"all": inner},
        {"any": inner},
        {"not": {"all": inner}},
        {"any": [{"not": each} for each in inner]},
    ]
    every, some, not_every, some_not = run_deterministic(parse_checks(raw), Subject("a"))
    assert (every.passed, some.passed) == (all(passed), any(passed))
    assert not_every[2:4] == some_not[2:4]


@pytest.mark.parametrize(
    ("weights", "scores", "at_least"),
    [
        ((0.1, 0.3), (0.0, 1.0), 0.75),
        ((0.6, 0.9), (1.0, 0.0), 0.4),
        ((0.1, 0.2, 0.3), (1.0, 1.0, 0.0), 0.5),
        ((1.0, 1.0), (0.1, 0.7), 0.4),
    ],
)
def test_a_mean_that_equals_the_threshold_reaches_it(
    weights: tuple[float, ...], scores: tuple[float, ...], at_least: float
) -> None:
    """Sums of decimal fractions are off by their last digit, which decides nothing."""
    rows = [row(score, weight) for score, weight in zip(scores, weights, strict=True)]
    assert verdict(rows, at_least)[0] is True
    assert verdict(rows, at_least + 1e-6)[0] is False


def test_every_usual_mean_is_compared_exactly() -> None:
    """Of up to four weights and scores of 0 or 1, those that reach a threshold of two digits pass."""
    weights = [Fraction(each, 10) for each in (1, 2, 3, 5, 6, 7, 9, 10)]
    for chosen in chain.from_iterable(combinations(weights, count) for count in (2, 3, 4)):
        for scores in product((0, 1), repeat=len(chosen)):
            mean = sum(map(mul, chosen, scores)) / sum(chosen)
            at_least = Fraction(round(100 * mean), 100)
            rows = [row(float(score), float(weight)) for score, weight in zip(scores, chosen, strict=True)]
            assert verdict(rows, float(at_least))[0] is (mean >= at_least)


def test_a_negated_score_that_equals_the_threshold_reaches_it() -> None:
    [check] = parse_checks([{"not": {"levenshtein": "abcdefghiX"}, "at_least": 0.1}])
    [found] = run_deterministic([check], Subject("abcdefghij"))
    assert found.passed is True


def test_each_check_has_its_row_in_order() -> None:
    checks = parse_checks(
        [{"contains": "b", "weight": 3}, {"max_cost": 1}, {"contains": "a", "name": "mine"}]
    )
    rows = run_deterministic(checks, Subject("a"))
    assert [(each.name, each.score, each.passed, each.weight) for each in rows] == [
        ("contains: b", 0.0, False, 3.0),
        ("max_cost: 1", None, None, 1.0),
        ("mine", 1.0, True, 1.0),
    ]
    assert rows[0].as_document() == {
        "name": "contains: b",
        "check": "contains",
        "score": 0.0,
        "passed": False,
        "reason": '"b" is nowhere in the output, which begins: a',
        "cost_usd": None,
        "detail": {},
        "at_least": None,
    }


def test_of_several_selected_nodes_the_best_counts() -> None:
    checks = parse_checks([{"levenshtein": "abcd", "json_path": "$[*]", "at_least": 0.7}])
    [found] = run_deterministic(checks, Subject('["x", "abce", "b"]'))
    assert (found.score, found.passed) == (0.75, True)
    assert found.reason == "$[*] (the best of 3 nodes): edit distance 1 of 4 characters: similarity 0.750"


def test_a_negated_check_of_several_nodes_asks_each_of_them() -> None:
    """`not` with a path looks at each node; a path inside of `not` is turned as a whole."""
    outside, inside = parse_checks(
        [{"not": {"equals": "a"}, "json_path": "$[*]"}, {"not": {"equals": "a", "json_path": "$[*]"}}]
    )
    assert [each.passed for each in run_deterministic([outside, inside], Subject('["a", "b"]'))] == [
        True,
        False,
    ]


def test_a_path_that_takes_too_long_fails_the_check() -> None:
    checks = parse_checks([{"contains": "x", "json_path": "$..*..*..*..*"}])
    [found] = run_deterministic(checks, Subject("[" + ",".join(["[0,0,0,0,0,0,0,0]"] * 10_000) + "]"))
    assert (found.passed, found.reason) == (False, "the JSONPath visits more than 500,000 values")


def test_what_needs_the_sandbox_is_found_inside_of_others() -> None:
    assert needs_sandbox(parse_checks([{"any": [{"not": {"regex": "a"}}]}]))
    assert not needs_sandbox(parse_checks([{"any": [{"not": {"contains": "a"}}]}]))
    raw = [{"python": "f"}, {"tool_call": {"name": "a", "arguments": {"python": "g"}}}]
    assert [calls_functions([check]) for check in parse_checks([*raw, {"contains": "f"}])] == [
        True,
        True,
        False,
    ]


def test_json_is_parsed_once_for_all_checks() -> None:
    subject = Subject('{"a": 1}')
    first = subject.parsed
    run_deterministic(parse_checks(["json", {"json_equals": {"a": 1}}]), subject)
    assert subject.parsed is first


def test_nothing_of_an_evaluation_is_left_for_the_next() -> None:
    assert Evaluation().questions == Evaluation().questions == {}
    assert Evaluation().score(Check("contains", "a"), Subject("a")).passed


def test_a_search_that_is_stopped_is_not_tried_at_every_node() -> None:
    """Each could take a second; functions, which may take five, are called for the first twenty nodes."""
    stopped = Box(found=StoppedError("timeout"))
    raw = [{"regex": "a", "json_path": "$[*]"}]
    [found] = run_deterministic(parse_checks(raw), Subject(str([1] * 50), sandbox=stopped))
    assert (found.passed, len(stopped.asked)) == (False, 1)
    box = CheckBox(returned=False)
    [found] = run_deterministic(
        parse_checks([{"python": "f", "json_path": "$[*]"}]), Subject(str([1] * 50), sandbox=box)
    )
    assert (found.passed, len(box.asked)) == (False, 20)
