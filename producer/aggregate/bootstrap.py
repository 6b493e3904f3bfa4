"""Resamples what was measured to estimate how sure a statistic of it is; seeded, so the same each time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from random import Random
from statistics import NormalDist
from typing import Final

from producer.aggregate.statistics import paired_difference

RESAMPLES: Final = 2_000
"""Enough for 95% bounds (B. Efron, R. Tibshirani, "An introduction to the bootstrap", 1993, ch. 19)."""
RESAMPLED_UP_TO: Final = 2_000
"""Values up to which the mean is resampled; of more, the mean is as good as normal, and costs no seconds."""
SEED: Final = 20_251_121
"""The same data give the same bounds on every machine."""
_NORMAL: Final = NormalDist()

Statistic = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """A statistic and its bounds."""

    value: float
    """Of the data as they are."""
    low: float
    """Lower bound."""
    high: float
    """Upper bound."""
    n: int
    """Values it was made of."""
    method: str
    """`bca`; `normal` where there are too many values to resample; `bonett-price` of paired shares."""

    @property
    def is_significant(self) -> bool:
        """Whether 0, that is: no difference, lies outside."""
        return self.low > 0 or self.high < 0


def mean(values: Sequence[float]) -> float:
    """Returns the mean.

    >>> mean([1.0, 2.0])
    1.5
    """
    return fsum(values) / len(values)


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Returns the mean of values that count by their weights.

    >>> weighted_mean([1.0, 0.0], [9.0, 1.0])
    0.9
    """
    return fsum(value * weight for value, weight in zip(values, weights, strict=True)) / fsum(weights)


def bootstrap(
    values: Sequence[float],
    statistic: Statistic = mean,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """Returns a statistic with its bias-corrected and accelerated interval.

    B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987). BCa rather than the percentile
    interval, because latencies and costs are skewed, and there the percentile interval lies too low.

    Args:
        values: independent ones; paired differences for a comparison, one per case.
        statistic: what is made of them.
        level: share of samples in which the interval holds the true value.
        resamples: how many samples to draw.
        seed: of the random numbers.

    >>> bootstrap([3.0, 3.0, 3.0])
    Interval(value=3.0, low=3.0, high=3.0, n=3, method='bca')
    >>> bootstrap([1.0, 5.0, 2.0, 8.0]) == bootstrap([1.0, 5.0, 2.0, 8.0])
    True
    """
    seen = statistic(values)
    if min(values) == max(values):
        return Interval(seen, seen, seen, len(values), "bca")
    if len(values) > RESAMPLED_UP_TO and statistic is mean:
        return _normal(values, level)
    random = Random(seed)  # noqa: S311 - statistics, no secret
    drawn = sorted(statistic(random.choices(values, k=len(values))) for _ in range(resamples))
    return _bca(seen, drawn, _acceleration(values, statistic), len(values), level)


def _bca(seen: float, drawn: Sequence[float], speed: float, n: int, level: float) -> Interval:
    """Reads the bounds from what was drawn, in order."""
    resamples = len(drawn)
    below = sum(one < seen for one in drawn) + sum(one == seen for one in drawn) / 2
    bias = _NORMAL.inv_cdf(min(max(below, 0.5), resamples - 0.5) / resamples)
    bounds = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        quantile = bias + _NORMAL.inv_cdf(tail)
        place = _NORMAL.cdf(bias + quantile / max(1e-9, 1 - speed * quantile))
        bounds.append(drawn[min(resamples - 1, int(place * resamples))])
    return Interval(seen, bounds[0], bounds[1], n, "bca")


def paired(
    before: Sequence[float],
    after: Sequence[float],
    *,
    weights: Sequence[float] | None = None,
    level: float = 0.95,
    seed: int = SEED,
) -> Interval:
    """Returns the mean difference of pairs, after less before, with its interval.

    Args:
        before: one value per case.
        after: the same cases in the same order.
        weights: how much each of them counts; None: all the same.
        level: see `bootstrap`.
        seed: see `bootstrap`.

    Raises:
        ValueError: there are no pairs, or some are not complete.

    >>> paired([1.0, 2.0], [2.0, 3.0]).value
    1.0
    >>> paired([1.0, 2.0], [2.0, 5.0], weights=[3.0, 1.0]).value
    1.5
    """
    if not before:
        raise ValueError("no pairs to compare")
    moved = [b - a for a, b in zip(before, after, strict=True)]
    if weights is None or min(weights) == max(weights):
        return bootstrap(moved, level=level, seed=seed)
    return _weighted(moved, weights, level, seed)


def _weighted(values: Sequence[float], weights: Sequence[float], level: float, seed: int) -> Interval:
    """Returns a weighted mean with its interval: cases are drawn, each with its weight."""
    n, seen = len(values), weighted_mean(values, weights)
    if min(values) == max(values):
        return Interval(values[0], values[0], values[0], n, "bca")
    pulls = [weight * (value - seen) for value, weight in zip(values, weights, strict=True)]
    if n > RESAMPLED_UP_TO:
        error = sqrt(fsum(pull**2 for pull in pulls) * n / (n - 1)) / fsum(weights)
        spread = error * _NORMAL.inv_cdf((1 + level) / 2)
        return Interval(seen, seen - spread, seen + spread, n, "normal")
    random, drawn = Random(seed), list[float]()  # noqa: S311 - statistics, no secret
    for _ in range(RESAMPLES):
        chosen = random.choices(range(n), k=n)
        weight = fsum(weights[at] for at in chosen)
        drawn.append(seen + fsum(pulls[at] for at in chosen) / weight if weight else seen)
    return _bca(seen, sorted(drawn), _skew(pulls), n, level)


def paired_rate(worse: int, better: int, n: int, *, level: float = 0.95) -> Interval:
    """Returns the difference of the shares of cases that passed, with its interval.

    Args:
        worse: cases that passed before only.
        better: cases that pass after only.
        n: all cases.
        level: see `bootstrap`.

    >>> paired_rate(4, 0, 50).is_significant
    False
    """
    low, high = paired_difference(worse, better, n, z=_NORMAL.inv_cdf((1 + level) / 2))
    return Interval((better - worse) / n, low, high, n, "bonett-price")


def _acceleration(values: Sequence[float], statistic: Statistic) -> float:
    """Estimates how the spread moves with the value, by leaving out each value in turn.

    For the mean what is left out stands for itself, so nothing needs to be computed anew.
    """
    if statistic is mean:
        middle = mean(values)
        moved = [value - middle for value in values]
    else:
        left = [statistic([*values[:at], *values[at + 1 :]]) for at in range(len(values))]
        middle = mean(left)
        moved = [middle - one for one in left]
    return _skew(moved)


def _skew(moved: Sequence[float]) -> float:
    """Returns the acceleration from how far each value moves the statistic."""
    largest = max(map(abs, moved))
    if not largest:
        return 0.0
    scaled = [one / largest for one in moved]  # squares of tiny numbers would vanish, of huge ones overflow
    return fsum(one**3 for one in scaled) / (6 * sqrt(fsum(one**2 for one in scaled)) ** 3)


def _normal(values: Sequence[float], level: float) -> Interval:
    """Returns the mean with the interval of the central limit theorem."""
    middle, n = mean(values), len(values)
    error = sqrt(fsum((value - middle) ** 2 for value in values) / (n - 1) / n)
    spread = error * _NORMAL.inv_cdf((1 + level) / 2)
    return Interval(middle, middle - spread, middle + spread, n, "normal")
