"""Statistics give the values of the papers they come from, and keep their promises for any numbers."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.aggregate.bootstrap import RESAMPLED_UP_TO, bootstrap, mean, paired, paired_rate
from producer.aggregate.statistics import (
    EXACT_UP_TO,
    clustered_mean,
    flakiness,
    mcnemar,
    pass_at_k,
    pass_hat_k,
    percentile,
    percentiles,
    wilson,
)
from producer.cases.judge_statistics import Calibration, calibrated, corrected_rate, krippendorff_alpha
from producer.cases.repeats import Repeats

SPATIAL = "48 36 20 29 42 42 20 42 22 41 45 14 6 0 33 28 34 4 32 24 47 41 24 26 30 41"
"""Table 14.1 of Efron and Tibshirani (1993), scores A."""
OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
"""Four observers and twelve units, some missing, of Krippendorff (2011), section C."""


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_bounds(part: int, whole: int, low: float, high: float) -> None:
    """Newcombe's table I of 1998, method 3."""
    rate = wilson(part, whole)
    assert (round(rate.low, 4), round(rate.high, 4)) == (low, high)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_wilson_stays_within_0_and_1_and_holds_the_share(one: int, other: int) -> None:
    """For any counts the bounds are shares, the seen share lies between them, and mirroring mirrors them."""
    part, whole = min(one, other), max(one, other)
    rate, mirrored = wilson(part, whole), wilson(whole - part, whole)
    assert 0 <= rate.low <= rate.high <= 1
    if whole:
        assert rate.low <= part / whole <= rate.high
        assert rate.low == pytest.approx(1 - mirrored.high, abs=1e-9)


@given(st.lists(st.integers(-1000, 1000), min_size=1), st.integers(1, 100))
def test_a_percentile_is_a_seen_value_that_enough_values_do_not_exceed(
    values: list[int], percent: int
) -> None:
    """Nearest rank: of all values, at least that share is as small, and fewer are smaller."""
    found = percentile(sorted(values), percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


def test_percentiles_tell_of_how_many_values_they_are() -> None:
    """Few values are marked as few, and none as nothing."""
    assert percentiles(range(1, 101), (50, 99)) == {"p50": 50, "p99": 99, "n": 100}
    assert percentiles([]) == {}


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30), st.integers(2, 5))
def test_repeats_do_not_make_a_mean_surer(values: list[float], repeats: int) -> None:
    """Each case repeated with the same result has the standard error of the cases alone."""
    single = clustered_mean([value] for value in values)
    many = clustered_mean([value] * repeats for value in values)
    middle = sum(values) / len(values)
    plain = sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values))
    assert single.standard_error == pytest.approx(plain, abs=1e-6)
    assert many.standard_error == pytest.approx(plain, abs=1e-6)
    assert (many.n, many.clusters) == (len(values) * repeats, len(values))


def test_one_case_has_no_standard_error() -> None:
    """Repeats of a single case say nothing about other cases, and no case says nothing at all."""
    assert clustered_mean([[1.0, 2.0]]).standard_error is None
    assert clustered_mean([]).n == 0


@given(st.integers(1, 30), st.data())
def test_pass_at_k_rises_and_pass_hat_k_falls(n: int, data: st.DataObject) -> None:
    """For one try both are the pass rate; with more tries one grows and the other shrinks."""
    passed, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert pass_at_k(n, passed, 1) == pytest.approx(passed / n)
    assert pass_hat_k(n, passed, 1) == pytest.approx(passed / n)
    assert -1e-12 <= pass_hat_k(n, passed, k) <= passed / n + 1e-12 <= pass_at_k(n, passed, k) + 2e-12


def test_more_tries_than_were_made_are_refused() -> None:
    """pass@k of fewer than k tries is no number."""
    with pytest.raises(ValueError, match="1 <= k <= n"):
        pass_at_k(3, 1, 4)


def test_flakiness_counts_cases_that_differ_from_themselves() -> None:
    """Single tries are not stable, they are unknown; nothing repeated is nothing flaky."""
    found = flakiness([[True] * 4, [True, False, True, False], [False]])
    assert (found.cases, found.flaky, round(found.disagreement, 4)) == (2, 1, 0.3333)
    assert flakiness([[True]]).disagreement == 0


@pytest.mark.parametrize(("b", "c", "exact", "mid"), [(1, 7, 0.0703, 0.0391), (0, 5, 0.0625, 0.0312)])
def test_mcnemar_gives_the_published_values(b: int, c: int, exact: float, mid: float) -> None:
    """The example of Fagerland, Lydersen and Laake, and five against none."""
    found = mcnemar(b, c)
    assert (round(found.exact_p, 4), round(found.p_value, 4)) == (exact, mid)


@given(st.integers(0, 1500), st.integers(0, 1500))
def test_mcnemar_is_symmetric(b: int, c: int) -> None:
    """Which run is called A changes no p-value, and all are probabilities; mid-p is never above exact."""
    assert mcnemar(b, c) == mcnemar(c, b)
    assert 0 <= mcnemar(b, c).p_value <= mcnemar(b, c).exact_p <= 1


def test_few_broken_cases_are_not_significant() -> None:
    """One lone broken case is chance; five against none are not, at 5 %."""
    assert [mcnemar(broken, 0).p_value <= 0.05 for broken in range(1, 6)] == [False] * 4 + [True]


def test_the_normal_limit_joins_the_exact_test() -> None:
    """Where sums of binomials give way to the normal distribution, nothing jumps."""
    half = EXACT_UP_TO // 2
    exact, normal = mcnemar(half - 30, half + 30), mcnemar(half - 30, half + 31)
    assert (exact.method, normal.method) == ("mid-p", "normal")
    assert exact.p_value == pytest.approx(normal.p_value, abs=0.005)


def test_bca_gives_the_published_interval() -> None:
    """Efron and Tibshirani's spatial test data, variance, 90 %: 115.8 to 259.6."""
    scores = [float(word) for word in SPATIAL.split()]

    def variance(values: Sequence[float]) -> float:
        middle = mean(values)
        return mean([(value - middle) ** 2 for value in values])

    found = bootstrap(scores, variance, level=0.9)
    assert found.value == pytest.approx(171.5, abs=0.1)
    assert found.low == pytest.approx(115.8, abs=6)
    assert found.high == pytest.approx(259.6, abs=14)


@given(st.lists(st.floats(-1000, 1000), min_size=1, max_size=12))
def test_bootstrap_is_deterministic_and_stays_within_the_values(values: list[float]) -> None:
    """The same data give the same bounds, and a mean is never outside what was seen."""
    found = bootstrap(values, resamples=200)
    assert found == bootstrap(values, resamples=200)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


def test_many_values_are_not_resampled() -> None:
    """A long list costs no seconds, and its interval is that of the normal distribution."""
    values = [float(at % 7) for at in range(RESAMPLED_UP_TO + 1)]
    found = bootstrap(values)
    assert found.method == "normal"
    assert found.low < 3 < found.high
    assert paired(values, [value + 1 for value in values]).is_significant


def test_a_difference_of_shares_is_as_cautious_as_mcnemar() -> None:
    """Four broken of fifty: a bootstrap would call that proof, the test does not, and neither does this."""
    assert not paired_rate(4, 0, 50).is_significant
    assert paired_rate(9, 0, 50).is_significant
    with pytest.raises(ValueError, match="no pairs"):
        paired([], [])


def test_alpha_gives_the_published_values() -> None:
    """Krippendorff 0.692 and, with missing values, 0.743."""
    nominal = list(zip("aabbdcccedda", "babbbccceddd", strict=True))
    assert krippendorff_alpha(nominal) == pytest.approx(0.692, abs=0.0005)
    rows = [[None if sign == "." else sign for sign in row] for row in zip(*OBSERVERS, strict=True)]
    assert krippendorff_alpha(rows) == pytest.approx(0.743, abs=0.0005)


def test_agreement_that_cannot_be_computed_is_none() -> None:
    """One word only, or nothing to pair, says nothing of agreement."""
    assert krippendorff_alpha([["a", None], ["b"]]) is None
    assert krippendorff_alpha(["aa", "aa"]) is None


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_a_calibration_counts_every_case_once(pairs: list[tuple[bool, bool]]) -> None:
    """All rates of a judge are shares with bounds around them, whatever the labels."""
    judge = calibrated(Counter(pairs))
    assert judge.n == len(pairs)
    for rate in (judge.precision, judge.recall, judge.specificity, judge.balanced_accuracy):
        assert 0 <= rate.low <= rate.value + 1e-12
        assert rate.value - 1e-12 <= rate.high <= 1


def test_a_corrected_rate_undoes_what_the_judge_gets_wrong() -> None:
    """Rogan and Gladen: a perfect judge changes nothing, a generous one loses, a coin is mute."""
    perfect = corrected_rate(30, 40, Calibration(50, 0, 50, 0))
    assert perfect is not None
    assert perfect.value == 0.75
    generous = corrected_rate(480, 800, Calibration(90, 20, 80, 10))
    assert generous is not None
    assert generous.value == pytest.approx(0.5714, abs=1e-4)
    assert generous.low < generous.value < generous.high
    assert corrected_rate(30, 40, Calibration(5, 5, 5, 5)) is None
    assert corrected_rate(30, 40, Calibration(5, 0, 0, 0)) is None


def test_repeats_tell_passes_errors_and_flaky_cases() -> None:
    """Tries come case by case; a case cut short is in the mean, but k tries of it are no estimate."""
    repeats = Repeats()
    for case, tries in enumerate(("ppp", "ppf", "fff", "pf")):
        for verdict in tries:
            repeats.add(case, passed=verdict == "p")
    found = repeats.summary()
    assert found is not None
    assert (found.repeats, found.cases, found.complete_cases, found.flaky) == (3, 4, 3, 2)
    assert found.mean == pytest.approx(6 / 11)
    assert found.pass_at_k == pytest.approx({"1": 5 / 9, "3": 2 / 3})
    assert found.pass_hat_k == pytest.approx({"1": 5 / 9, "3": 1 / 3})
    assert Repeats().summary() is None
