"""Words gates for people: which number was found, and which was needed."""

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

Unit = Literal["share", "percent", "number"]
"""Of the value in the document; gates are written in fractions either way."""

_NEEDED: Final[Mapping[str, str]] = {
    "<": "at least {} needed",
    "<=": "more than {} needed",
    ">": "at most {} allowed",
    ">=": "less than {} allowed",
}
"""What a run has to keep to, by the relation that makes it fail."""
_UNITS: Final = {"_ms": "{} ms", "_usd": "${}", "_s": "{} s", "_per_case": "${}"}
"""Around a number with six digits, since rounded figures could seem to meet a gate that they miss."""
_SCORES: Final = ("_mean", "_alpha")
"""Ends of the names of numbers that nobody reads in percent."""
_STATISTIC: Final = re.compile(r"p[0-9]+|mean")
"""Ends of the names of metrics that stand first in words."""
_MOST_DIGITS: Final = 6
_WORDS: Final = {
    "pass_at_k": "pass@k",
    "pass_hat_k": "pass^k",
    "flaky": "flaky cases",
    "cost_per_case": "cost per case",
}
"""Metrics whose words their names do not say."""


def metric_words(metric: str) -> str:
    """Names a metric.

    >>> metric_words("latency_p95_ms"), metric_words("check:contains: Paris.pass_rate")
    ('p95 latency', "check 'contains: Paris': pass rate")
    >>> metric_words("score_mean"), metric_words("case:pass_rate")
    ('mean score', 'case pass rate')
    >>> metric_words("pass_hat_k")
    'pass^k'
    """
    group, colon, rest = metric.partition(":")
    if metric in _WORDS:
        return _WORDS[metric]
    if colon and "." not in rest:
        return f"{group} {metric_words(rest)}"
    if colon:
        name, _, figure = rest.rpartition(".")
        return f"{group} {name!r}: {metric_words(figure)}"
    suffix = next((each for each in _UNITS if metric.endswith(each)), "")
    name, _, figure = metric.removesuffix(suffix).rpartition("_")
    words = (figure, name) if name and _STATISTIC.fullmatch(figure) else (name, figure)
    return " ".join(words).strip().replace("_", " ")


class Wanted(NamedTuple):
    """A gate, as far as it is worded."""

    metric: str
    relation: str
    """Which makes it fail."""
    bound: float
    """The limit; a fraction where the metric is a rate."""


def gate_words(wanted: Wanted, unit: Unit, value: float, is_missed: Callable[[float], bool]) -> str:
    """Says what was found and what was needed.

    Args:
        wanted: the gate.
        unit: what its value is.
        value: in this run; a fraction where it is a rate.
        is_missed: whether a value makes the gate fail.

    >>> gate_words(Wanted("pass_rate", "<", 0.9), "share", 0.53125, lambda value: value < 0.9)
    'pass rate 53.1%, at least 90% needed'
    >>> gate_words(Wanted("pass_rate", "<", 0.9), "share", 0.8999, lambda value: value < 0.9)
    'pass rate 89.99%, at least 90% needed'
    >>> gate_words(Wanted("latency_p95_ms", ">=", 5000), "number", 8123.0, lambda value: value >= 5000)
    'p95 latency 8,123 ms, less than 5,000 ms allowed'
    """
    metric, relation, bound = wanted
    needed = _NEEDED[relation]
    if unit == "number" or metric.endswith(_SCORES):
        form = next((form for suffix, form in _UNITS.items() if metric.endswith(suffix)), "{}")
        found, limit = form.format(f"{value:,.6g}"), form.format(f"{bound:,g}")
    else:
        exact = is_missed(value)
        digits = next(
            (each for each in range(1, _MOST_DIGITS) if is_missed(round(value, each + 2)) is exact),
            _MOST_DIGITS,
        )
        found, limit = f"{100 * value:.{digits}f}%", f"{100 * bound:g}%"
    return f"{metric_words(metric)} {found}, {needed.format(limit)}"
