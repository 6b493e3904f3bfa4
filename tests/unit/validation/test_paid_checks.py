"""The order of paid checks, and that nothing is asked that cannot change the outcome."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.checks import Check
from worker.validation.case_verdict import CheckResult
from worker.validation.check_verdict import Rules, close, next_check, verdict
from worker.validation.checks.kind import Subject
from worker.validation.scoring import open_row, run_deterministic


def paid(name: str, weight: float = 1.0, kind: str = "rubric") -> Check:
    return Check(kind, "polite", name, at_least=0.5, weight=weight)


def scored(score: float, weight: float = 1.0) -> CheckResult:
    return CheckResult("free", "contains", score, score >= 0.5, "because", weight=weight)


def asked(
    rules: Rules,
    free: list[CheckResult],
    checks: list[Check],
    scores: list[float],
    prices: list[float | None],
) -> list[str]:
    """Plays a case: the names of the checks in the order in which they are asked."""
    all_checks = [*(Check("contains", "a") for _ in free), *checks]
    rows = [*free, *map(open_row, checks)]
    order = []
    while (at := next_check(all_checks, rows, [*[None] * len(free), *prices], rules)) is not None:
        score = scores[at - len(free)]
        rows[at] = rows[at]._replace(score=score, passed=score >= 0.5, reason="asked", is_open=False)
        order.append(all_checks[at].name)
    return order


def test_cheap_checks_come_first_and_unknown_prices_last() -> None:
    checks = [paid("unknown"), paid("dear"), paid("cheap"), paid("similar", kind="similar")]
    order = asked(Rules(), [], checks, [1, 1, 1, 1], [None, 0.2, 0.1, None])
    assert order == ["cheap", "dear", "similar", "unknown"]


def test_nothing_is_asked_after_a_failure() -> None:
    assert asked(Rules(), [scored(0.0)], [paid("a")], [1], [0.1]) == []
    assert asked(Rules(), [scored(1.0)], [paid("a"), paid("b"), paid("c")], [1, 0, 1], [1, 2, 3]) == [
        "a",
        "b",
    ]


def test_all_are_asked_when_the_case_says_so() -> None:
    rules = Rules(is_always=True)
    assert asked(rules, [scored(0.0)], [paid("a"), paid("b")], [0, 0], [2, 1]) == ["b", "a"]


def test_a_free_check_without_weight_stops_nothing() -> None:
    assert asked(Rules(), [scored(0.0, weight=0)], [paid("a")], [1], [0.1]) == ["a"]


def test_a_check_without_weight_is_asked_last_and_only_when_the_case_passes() -> None:
    checks = [paid("shown", weight=0), paid("counts")]
    assert asked(Rules(), [], checks, [0, 1], [0.1, 0.2]) == ["counts", "shown"]
    assert asked(Rules(), [], checks, [0, 0], [0.1, 0.2]) == ["counts"]
    assert asked(Rules(0.5), [scored(1.0)], checks, [0, 1], [0.1, 0.2]) == ["shown"]


@pytest.mark.parametrize(
    ("free", "at_least", "expected"),
    [(1.0, 0.5, []), (1.0, 0.6, ["a"]), (0.0, 0.6, []), (0.0, 0.5, ["a"]), (0.2, 0.61, [])],
)
def test_with_a_threshold_a_check_is_asked_while_it_can_change_the_mean(
    free: float, at_least: float, expected: list[str]
) -> None:
    assert asked(Rules(at_least), [scored(free)], [paid("a")], [1], [0.1]) == expected


ROWS = st.lists(st.builds(scored, st.floats(0, 1), st.sampled_from([0.0, 1.0, 2.0])), max_size=3)
CHECKS = st.lists(st.builds(paid, st.just("x"), st.sampled_from([0.0, 1.0, 3.0])), min_size=1, max_size=4)


@given(ROWS, CHECKS, st.none() | st.floats(0, 1), st.randoms(use_true_random=False))
def test_the_outcome_is_that_of_asking_all(
    free: list[CheckResult], checks: list[Check], at_least: float | None, chance: random.Random
) -> None:
    """Whatever was left out would not have changed whether the case passes."""
    scores = [round(chance.random(), 2) for _ in checks]
    all_checks = [*(Check("contains", "a") for _ in free), *checks]

    def play(rules: Rules) -> list[CheckResult]:
        rows = [*free, *map(open_row, checks)]
        while (at := next_check(all_checks, rows, [0.1] * len(rows), rules)) is not None:
            score = scores[at - len(free)]
            rows[at] = rows[at]._replace(score=score, passed=score >= 0.5, reason="asked", is_open=False)
        return close(rows, rules)

    some, every = play(Rules(at_least)), play(Rules(at_least, is_always=True))
    assert not any(row.is_open for row in [*some, *every])
    mean = verdict(every, at_least)[1]
    if at_least is None or mean is None or abs(mean - at_least) > 1e-9:
        assert verdict(some, at_least)[0] is verdict(every, at_least)[0]


@pytest.mark.parametrize("kind", ["rubric", "similar"])
def test_a_check_with_a_template_is_asked(kind: str) -> None:
    """What a template was rendered to does not hide that a paid check was not asked yet."""
    check = Check(kind, "Names Paris", at_least=0.5, written=f"{kind}: Names {{{{ capital }}}}")
    negated = Check("not", checks=(check,), written=f"not {check.written}")
    for each in (check, negated):
        rows = run_deterministic([each], Subject("Rome"))
        assert next_check([each], rows, [0.01], Rules()) == 0


def test_a_check_is_open_whatever_its_reason_says() -> None:
    """A row is open until its check is asked or left out, and says so where it is stored."""
    row = open_row(Check("rubric", "Polite?"))
    asked = CheckResult("c", "rubric", None, None, row.reason)
    assert [each.reason == row.reason for each in close([row, asked], Rules())] == [False, True]
    assert row.as_document()["is_open"] is True
    assert "is_open" not in close([row], Rules())[0].as_document()
