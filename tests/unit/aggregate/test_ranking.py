"""Rankings from comparisons of pairs: a published example, an independent maximum, and a biased judge."""

import math
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.aggregate.bradley_terry import fit, sigmoid
from producer.cases.ranking import PairVerdict, rank

TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
WON = (
    (0, 7, 9, 7, 7, 9, 11),
    (6, 0, 7, 5, 11, 9, 9),
    (4, 6, 0, 7, 7, 8, 12),
    (6, 8, 6, 0, 6, 7, 10),
    (6, 2, 6, 7, 0, 7, 12),
    (4, 4, 5, 6, 6, 0, 6),
    (2, 4, 1, 3, 1, 7, 0),
)
"""Games of the American League's east in 1987: A. Agresti, "Categorical Data Analysis", table 10.10."""
PUBLISHED = {
    "Milwaukee": (1.5814, 0.3433),
    "Detroit": (1.4364, 0.3396),
    "Toronto": (1.2945, 0.3367),
    "New York": (1.2476, 0.3359),
    "Boston": (1.1077, 0.3339),
    "Cleveland": (0.6839, 0.3319),
}
"""Log strengths against Baltimore with their standard errors: H. Turner and D. Firth, "Bradley-Terry Models
in R", Journal of Statistical Software 48 (2012)."""


def test_a_published_example() -> None:
    """Strengths and standard errors agree to the last printed digit."""
    wins = {(TEAMS[i], TEAMS[j]): WON[i][j] for i in range(7) for j in range(7) if i != j}
    found = fit(TEAMS, wins)
    last = TEAMS.index("Baltimore")
    for name, (strength, error) in PUBLISHED.items():
        at = found.names.index(name)
        variance = found.covariance[at][at] + found.covariance[last][last] - 2 * found.covariance[at][last]
        assert found.values[at] - found.values[last] == pytest.approx(strength, abs=6e-5)
        assert math.sqrt(variance) == pytest.approx(error, abs=6e-5)
    assert not found.is_smoothed
    assert sum(found.values) == pytest.approx(0)


COUNTS = st.lists(st.integers(0, 9), min_size=12, max_size=12)


@given(COUNTS)
def test_strengths_are_the_most_likely(counts: list[int]) -> None:
    """No strength can be moved without making the comparisons less likely; all of it is finite."""
    names = ("a", "b", "c", "d")
    pairs = [(one, other) for one in names for other in names if one != other]
    wins = dict(zip(pairs, counts, strict=True))
    found = fit(names, wins)
    extra = 0.5 if found.is_smoothed else 0.0

    def likelihood(values: dict[str, float]) -> float:
        """Its logarithm."""
        return sum(
            (wins[one, other] + extra) * math.log(sigmoid(values[one] - values[other]))
            for one, other in pairs
        )

    values = dict(zip(found.names, found.values, strict=True))
    best = likelihood(values)
    for name in names:
        for step in (-0.01, 0.01):
            assert likelihood(values | {name: values[name] + step}) <= best + 1e-9
        middle, low, high = found.beats_average(name)
        assert 0 <= low <= middle <= high <= 1


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of simulated tournaments, about 95% of the intervals hold the strength that was simulated."""
    random, names, truth = Random(4), ("a", "b", "c"), {"a": 0.8, "b": 0.0, "c": -0.8}
    held = 0
    for _ in range(200):
        wins = dict.fromkeys(((one, other) for one in names for other in names), 0.0)
        for one, other in combinations(names, 2):
            for _ in range(40):
                is_won = random.random() < sigmoid(truth[one] - truth[other])
                wins[(one, other) if is_won else (other, one)] += 1
        found = fit(names, wins)
        for name in names:
            _, low, high = found.beats_average(name)
            held += low <= sigmoid(truth[name]) <= high
    assert 0.92 <= held / 600 <= 0.98


def verdicts_of(judge: str) -> list[PairVerdict]:
    """Ten questions to two models: the judge is fair and prefers a, or prefers the first answer."""
    fair = {("a", "b"): "A", ("b", "a"): "B"}
    return [
        PairVerdict(f"q{number}", first, second, fair[first, second] if judge == "fair" else "A")
        for number in range(10)
        for first, second in (("a", "b"), ("b", "a"))
    ]


def test_a_judge_who_prefers_a_position_prefers_nobody() -> None:
    """All pairs are ties, both are as strong, and the bias stands beside it."""
    biased = rank(["a", "b"], verdicts_of("biased"))
    assert [(each.wins, each.losses, each.ties) for each in biased.table] == [(0, 0, 10)] * 2
    assert {each.strength.value for each in biased.table} == {0.5}
    assert (biased.prefers_first.value, biased.agrees.value) == (1.0, 0.0)
    fair = rank(["b", "a"], verdicts_of("fair"))
    assert [(each.name, each.wins) for each in fair.table] == [("a", 10), ("b", 0)]
    assert (fair.prefers_first.value, fair.agrees.value, fair.is_smoothed) == (0.5, 1.0, True)
    low, high = fair.table[0].strength.low, fair.table[1].strength.high
    assert low > high


def test_pairs_without_both_orders_do_not_count() -> None:
    """An unreadable verdict is counted, and its pair is left out; what is left decides."""
    verdicts = [*verdicts_of("fair")[:-1], PairVerdict("q9", "b", "a", None)]
    found = rank(["a", "b"], verdicts)
    assert (found.pairs, found.unclear, found.table[0].wins) == (9, 1, 9)
    nothing = rank(["a", "b", "c"], [PairVerdict("q1", "a", "b", None)], {("a", "b"): 2})
    assert (nothing.table, nothing.pairs, nothing.equal, nothing.unclear) == ([], 0, 2, 1)
    assert nothing.as_document("run-2", "run-1").position.first_preferred.n == 0
