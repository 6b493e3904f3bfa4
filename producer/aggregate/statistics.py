"""Computes how sure a number is: intervals, percentiles, repeats, and the test of paired outcomes; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, erfc, exp, fsum, hypot, lgamma, log, log1p, sqrt
from typing import Final

from producer.documents import Rate

Z_95: Final = 1.959963984540054
"""Quantile of the normal distribution for two-sided 95% intervals."""
TAIL_95: Final = 0.025
"""What each tail of such an interval may have."""
EXACT_UP_TO: Final = 1_000
"""Discordant pairs up to which McNemar's test sums binomials; beyond, the normal limit differs by < 0.001."""


def wilson(part: int, whole: int, *, effect: float = 1.0, z: float = Z_95) -> Rate:
    """Returns a share with its score interval.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). Of
    the simple intervals it is the one that holds its level for few cases and for shares near 0 and 1 (L. D.
    Brown, T. T. Cai, A. DasGupta, Statistical Science 16, 2001). Nothing of nothing may be anything.

    Args:
        part: what is counted.
        whole: what it is a share of.
        effect: how many of these tell as much as one that is related to no other (`design_effect`).
        z: quantile of the normal distribution.

    The values of R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3:

    >>> [round(bound, 4) for bound in (wilson(81, 263).low, wilson(81, 263).high)]
    [0.2553, 0.3662]
    >>> [round(bound, 4) for bound in (wilson(1, 29).low, wilson(1, 29).high)]
    [0.0061, 0.1718]
    >>> wilson(0, 20).low, round(wilson(0, 20).high, 4)
    (0.0, 0.1611)
    >>> wilson(16, 32, effect=4.0).low == wilson(4, 8).low
    True
    """
    if not whole:
        return Rate(0.0, 0.0, 1.0, 0)
    share, square, n = part / whole, z * z, whole / effect
    middle = share + square / (2 * n)
    spread = z * sqrt(share * (1 - share) / n + square / (4 * n * n))
    scale = 1 + square / n
    # At the ends the formula gives the bound exactly, floating point nearly.
    low = 0.0 if part == 0 else min(share, max(0.0, (middle - spread) / scale))
    high = 1.0 if part == whole else max(share, min(1.0, (middle + spread) / scale))
    return Rate(share, low, high, whole)


def independent_difference(a: Rate, b: Rate) -> tuple[float, float]:
    """Returns the interval of the difference of two shares that were measured apart, b less a.

    It joins their own intervals: R. G. Newcombe, Statistics in Medicine 17 (1998), method 10, whose table II
    has this one for 56 of 70 less 48 of 80:

    >>> [round(bound, 4) for bound in independent_difference(wilson(48, 80), wilson(56, 70))]
    [0.0524, 0.3339]
    """
    step = b.value - a.value
    return step - hypot(b.value - b.low, a.high - a.value), step + hypot(b.high - b.value, a.value - a.low)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Returns the nearest-rank percentile: the smallest value that `percent` of all do not exceed.

    It is a value that was seen, which an interpolated one is not (R. J. Hyndman, Y. Fan, "Sample quantiles in
    statistical packages", The American Statistician 50, 1996, definition 1).

    Args:
        ordered: at least one value, smallest first.
        percent: above 0, up to 100.

    >>> percentile([15, 20, 35, 40, 50], 30), percentile([15, 20, 35, 40, 50], 100)
    (20, 50)
    """
    rank = max(1, -int(-percent * len(ordered) // 100))
    return ordered[rank - 1]


def percentile_ranks(n: int, percent: float, tail: float = TAIL_95) -> tuple[int | None, int | None]:
    """Returns the ranks, from 1, of the values between which a percentile lies with 95% confidence.

    How many of n values lie below a percentile is binomial, whatever their distribution: H. A. David and
    H. N. Nagaraja, "Order Statistics" (2003), section 7.1. Each tail has at most 2.5%, so that the interval
    holds its level. Few values say nothing about high percentiles: then there is no upper bound.

    Args:
        n: how many values there are.
        percent: above 0, below 100.
        tail: most that each side may have.

    For the median of 20 values these are the 6th and the 15th, with 95.9%:

    >>> percentile_ranks(20, 50), percentile_ranks(5, 50), percentile_ranks(100, 95)
    ((6, 15), (None, None), (90, 100))
    """
    share, low, high, below = percent / 100, None, None, 0.0
    mean, spread = n * share, sqrt(n * share * (1 - share))
    begin, end = max(0, int(mean - 12 * spread)), min(n, int(mean + 12 * spread) + 1)
    for k in range(begin, end + 1):
        chance = exp(
            lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(share) + (n - k) * log1p(-share)
        )
        below += chance
        if below <= tail:
            low = k + 1
        if high is None and below >= 1 - tail and k + 1 <= n:
            high = k + 1
    return low, high


def percentiles(values: Iterable[float], percents: Sequence[int] = (50, 95)) -> dict[str, float]:
    """Returns percentiles by name, and of how many values they are; empty without any.

    >>> percentiles([10, 20, 30, 40])
    {'p50': 20, 'p95': 40, 'n': 4}
    """
    ordered = sorted(values)
    if not ordered:
        return {}
    return {f"p{percent}": percentile(ordered, percent) for percent in percents} | {"n": len(ordered)}


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over clusters."""

    value: float
    """The mean of all values."""
    standard_error: float | None
    """None with fewer than two clusters: one case says nothing about others."""
    n: int
    """Values."""
    clusters: int
    """Cases they belong to."""


def clustered_mean(clusters: Iterable[Sequence[float]]) -> Mean:
    """Returns the mean of all values, and its standard error with the values of one case taken as related.

    Repeats of a case are no new cases: an error that took them so would promise too much. As in E. Miller,
    "Adding error bars to evals" (arXiv:2411.00640, 2024), section 2.2, with the factor G/(G-1) of A. C.
    Cameron and D. L. Miller (Journal of Human Resources 50, 2015), which makes it the usual standard error
    where each cluster has one value.

    Args:
        clusters: the values of each case.

    >>> clustered_mean([[1.0], [2.0], [3.0], [4.0]])  # the deviation 1.29 over the root of 4
    Mean(value=2.5, standard_error=0.6454972243679028, n=4, clusters=4)
    >>> round(clustered_mean([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]).standard_error, 4)
    0.6455
    """
    groups = [values for values in clusters if values]
    n, count = sum(map(len, groups)), len(groups)
    if not n:
        return Mean(0.0, None, 0, 0)
    mean = fsum(value for values in groups for value in values) / n
    if count == 1:
        return Mean(mean, None, n, 1)
    squares = fsum(fsum(value - mean for value in values) ** 2 for values in groups)
    return Mean(mean, sqrt(squares * count / (count - 1)) / n, n, count)


def pass_at_k(n: int, passed: int, k: int) -> float:
    """Estimates without bias the chance that at least one of `k` tries passes.

    M. Chen and others, "Evaluating large language models trained on code" (arXiv:2107.03374, 2021), equation
    1.

    Args:
        n: tries that were made.
        passed: those that passed.
        k: from 1 to `n`.

    Raises:
        ValueError: more is asked than was tried.

    >>> round(pass_at_k(10, 3, 1), 4), round(pass_at_k(10, 3, 5), 4), pass_at_k(5, 1, 5)
    (0.3, 0.9167, 1.0)
    """
    _check_k(n, passed, k)
    return 1 - comb(n - passed, k) / comb(n, k)


def pass_hat_k(n: int, passed: int, k: int) -> float:
    """Estimates without bias the chance that all of `k` tries pass.

    S. Yao and others, "τ-bench" (arXiv:2406.12045, 2024), section 4.

    Raises:
        ValueError: more is asked than was tried.

    >>> pass_hat_k(4, 2, 1), round(pass_hat_k(4, 2, 2), 4), pass_hat_k(4, 4, 3)
    (0.5, 0.1667, 1.0)
    """
    _check_k(n, passed, k)
    return comb(passed, k) / comb(n, k)


@dataclass(frozen=True, slots=True)
class Flakiness:
    """How stable verdicts are over repeats."""

    cases: int
    """Cases that were tried more than once."""
    flaky: int
    """Those with differing verdicts."""
    disagreement: float
    """Chance that two tries of one case differ, averaged over cases; 0 without repeats."""


def flakiness(verdicts: Iterable[Sequence[bool]]) -> Flakiness:
    """Counts cases whose repeats differ, and how often two tries of one case do.

    The latter is the Gini-Simpson index of E. H. Simpson, "Measurement of diversity" (Nature 163, 1949), in
    its unbiased form: 2·p·(n-p) / (n·(n-1)) for p passed of n.

    Args:
        verdicts: the verdicts of each case.

    >>> flakiness([[True, True], [True, False], [True]])
    Flakiness(cases=2, flaky=1, disagreement=0.5)
    """
    repeated = [(len(tries), sum(tries)) for tries in verdicts if len(tries) > 1]
    shares = [2 * passed * (n - passed) / (n * (n - 1)) for n, passed in repeated]
    flaky = sum(0 < passed < n for n, passed in repeated)
    return Flakiness(len(repeated), flaky, fsum(shares) / len(shares) if shares else 0.0)


@dataclass(frozen=True, slots=True)
class McNemar:
    """The test of paired verdicts."""

    p_value: float
    """How likely so uneven a split is when nothing has changed; two-sided."""
    method: str
    """`mid-p`, or `normal` for very many pairs."""
    exact_p: float
    """The exact conditional value, for those who prefer it."""


def mcnemar(broken: int, fixed: int) -> McNemar:
    """Tests whether more was broken than fixed, or the other way round, than chance explains.

    Only pairs whose verdict changed count (Q. McNemar, Psychometrika 12, 1947). The p-value is the mid-p one:
    M. W. Fagerland, S. Lydersen, P. Laake (BMC Medical Research Methodology 13:91, 2013) found that it holds
    its level like the exact test, which is needlessly strict for few pairs, and that the continuity
    correction is stricter still; so that one is not offered. Four broken cases and no fixed one are not
    significant at 5%, five are.

    Their example, 1 against 7 (table 3: exact 0.070, mid-p 0.039):

    >>> result = mcnemar(1, 7)
    >>> round(result.p_value, 3), round(result.exact_p, 3), result.method
    (0.039, 0.07, 'mid-p')
    >>> mcnemar(1, 0).p_value, mcnemar(0, 0).p_value
    (0.5, 1.0)
    """
    n, less = broken + fixed, min(broken, fixed)
    if not n:
        return McNemar(1.0, "mid-p", 1.0)
    if n > EXACT_UP_TO:
        p = erfc(abs(broken - fixed) / sqrt(2 * n))
        return McNemar(p, "normal", p)
    both_tails = 2 * sum(comb(n, k) for k in range(less + 1))
    exact = min(1.0, both_tails / 2**n)
    mid = 1.0 if broken == fixed else (both_tails - comb(n, less)) / 2**n
    return McNemar(mid, "mid-p", exact)


def paired_difference(worse: int, better: int, n: int, *, z: float = Z_95) -> tuple[float, float]:
    """Returns bounds of the difference of two shares of the same cases, after less before.

    D. G. Bonett, R. M. Price, "Adjusted Wald confidence interval for a difference of binomial proportions
    based on paired data", Journal of Educational and Behavioral Statistics 37 (2012): for few changed pairs
    it agrees with McNemar's test, where a bootstrap gives intervals that are too narrow.

    Args:
        worse: pairs that passed before only.
        better: pairs that pass after only.
        n: all pairs.
        z: quantile of the normal distribution.

    >>> [round(bound, 3) for bound in paired_difference(4, 0, 50)]
    [-0.167, 0.013]
    """
    down, up = (worse + 1) / (n + 2), (better + 1) / (n + 2)
    spread = z * sqrt((down + up - (up - down) ** 2) / (n + 2))
    return max(-1.0, up - down - spread), min(1.0, up - down + spread)


def _check_k(n: int, passed: int, k: int) -> None:
    """Refuses impossible numbers."""
    if not (1 <= k <= n and 0 <= passed <= n):
        raise ValueError(f"{passed} passed of {n}, {k} at a time: needs 1 <= k <= n and 0 <= passed <= n")
