"""Results of queries to the metrics of the harness document, and the metrics against their targets.

Percentages go from 0 to 100. What is counted where:

    deflection, citation     successful in-scope queries
    OOS handling             successful out-of-scope queries
    hallucination, latency   successful queries, in scope or not

>>> calculate_metrics([])["deflection_rate"], [target.status for target in targets(metrics_of([]))]
(0.0, ['N/A', 'N/A', 'N/A', 'N/A', 'N/A'])
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, Literal

import msgspec

from producer.aggregate.statistics import percentile_ranks
from producer.documents import PercentileInterval, PercentileIntervals, Percentiles
from producer.queries.documents import CategoryMetrics, JudgedTarget, Metrics, Status
from producer.queries.results import AskedQuery
from shared.contracts.query_vocabulary import (
    CATEGORIES,
    LATENCY_THRESHOLD_MS,
)
from shared.thresholds import reaches

PERCENTILES: Final = (50, 90, 95, 99)
BOUNDED_PERCENTILES: Final = (50, 95, 99)
"""Percentiles that have an interval, in the order of `PercentileIntervals`."""


@dataclass(slots=True)
class _Group:
    """Counts over the successful queries of one group; one pass, flat memory."""

    total: int = 0
    in_scope: int = 0
    oos: int = 0
    deflected: int = 0
    applicable: int = 0
    cited: int = 0
    cited_at_all: int = 0
    hallucinated: int = 0
    declined: int = 0
    latency_sum_ms: int = 0
    fast: int = 0

    def add(self, query: AskedQuery) -> None:
        """Counts one successful query."""
        self.total += 1
        latency = query.latency_ms
        self.latency_sum_ms += latency
        self.fast += latency < LATENCY_THRESHOLD_MS
        self.hallucinated += not query.check("must_not_contain").passed
        if query.is_oos:
            self.oos += 1
            self.declined += query.check("oos_handling").passed
        else:
            self.in_scope += 1
            self.deflected += query.check("must_contain").passed
            self.cited_at_all += query.is_cited
            if query.is_citation_applicable:
                self.applicable += 1
                self.cited += query.check("citation_present").passed

    def shares(self) -> dict[str, tuple[int, int]]:
        """Returns what each rate is a share of: how many, of how many."""
        return {
            "deflection_rate": (self.deflected, self.in_scope),
            "citation_accuracy": (self.cited, self.applicable),
            "citation_accuracy_raw": (self.cited_at_all, self.in_scope),
            "hallucination_rate": (self.hallucinated, self.total),
            "oos_handling_rate": (self.declined, self.oos),
            "latency_under_5s": (self.fast, self.total),
        }

    def as_category(self) -> CategoryMetrics:
        """Returns the metrics of one category, unrounded."""
        return CategoryMetrics(
            total=self.total,
            in_scope=self.in_scope,
            oos=self.oos,
            citation_applicable=self.applicable,
            deflection_rate=_percent(self.deflected, self.in_scope),
            citation_accuracy=_percent(self.cited, self.applicable),
            hallucination_rate=_percent(self.hallucinated, self.total),
            avg_latency_ms=_mean(self.latency_sum_ms, self.total),
        )


class MetricsSoFar:
    """Adds up results one after the other, in memory that does not grow."""

    def __init__(self) -> None:
        self._every, self._failures = _Group(), 0
        self._by_category = {category: _Group() for category in CATEGORIES}

    def add(self, query: AskedQuery) -> None:
        """Takes one result."""
        if query.is_failed:
            self._failures += 1
            return
        self._every.add(query)
        self._by_category.setdefault(str(query.category), _Group()).add(query)

    def shares(self) -> dict[str, tuple[int, int]]:
        """Returns what each rate is a share of: how many, of how many."""
        return self._every.shares()

    def metrics(self) -> Metrics:
        """Returns the document's metrics of what was added."""
        every = self._every
        return Metrics(
            deflection_rate=round(_percent(every.deflected, every.in_scope), 1),
            citation_accuracy=round(_percent(every.cited, every.applicable), 1),
            citation_accuracy_raw=round(_percent(every.cited_at_all, every.in_scope), 1),
            citation_applicable_queries=every.applicable,
            citation_na_queries=every.in_scope - every.applicable,
            hallucination_rate=round(_percent(every.hallucinated, every.total), 1),
            oos_handling_rate=round(_percent(every.declined, every.oos), 1),
            avg_latency_ms=round(_mean(every.latency_sum_ms, every.total), 0),
            latency_under_5s=round(_percent(every.fast, every.total), 1),
            total_queries=every.total + self._failures,
            successful_queries=every.total,
            failed_queries=self._failures,
            in_scope_queries=every.in_scope,
            oos_queries=every.oos,
            by_category={name: group.as_category() for name, group in self._by_category.items()},
        )


def shares_of(query: AskedQuery) -> dict[str, tuple[int, int]]:
    """Returns what one result adds to each rate."""
    group = _Group()
    if not query.is_failed:
        group.add(query)
    return group.shares()


def calculate_metrics(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Calculates the metrics of a run; empty groups give 0.0.

    Args:
        results: results of queries, each with the nine keys of the document; failed ones included.

    Returns:
        The fifteen keys of the document. Rates are rounded to one decimal, the latency to whole milliseconds.
    """
    found: dict[str, Any] = msgspec.to_builtins(metrics_of(results))
    return found


def metrics_of(results: Iterable[Mapping[str, Any]]) -> Metrics:
    """Calculates the same as a type."""
    so_far = MetricsSoFar()
    for result in results:
        so_far.add(AskedQuery(result))
    return so_far.metrics()


@dataclass(frozen=True, slots=True)
class Target:
    """One of the document's targets, and how a run did."""

    metric: str
    """Key among the metrics."""
    label: str
    """For people."""
    threshold: float
    """The limit."""
    relation: Literal[">=", "<"]
    """What the value must be to the limit."""
    group: str
    """Key of the count that the metric is a share of; 0 makes the target N/A."""
    value: float = 0.0
    """What the run reached, rounded as it is shown."""
    status: Status = "N/A"
    """Compared as shown, so that no report says 40.0 is below 40."""

    @property
    def is_time(self) -> bool:
        """Whether it counts milliseconds instead of percent."""
        return self.metric.endswith("_ms")

    def shown(self, number: float, *, decimals: int = 1) -> str:
        """Writes a number with this target's unit."""
        return f"{number:.0f}ms" if self.is_time else f"{number:.{decimals}f}%"

    @property
    def reached(self) -> str:
        """Writes what the run reached; N/A where there was nothing to measure."""
        return "N/A" if self.status == "N/A" else self.shown(self.value)

    def wanted(self, *, decimals: int = 0) -> str:
        """Writes the target, such as `>= 40%`."""
        return f"{self.relation} {self.shown(self.threshold, decimals=decimals)}"

    @property
    def judged(self) -> JudgedTarget:
        """The target as documents have it."""
        return JudgedTarget(self.metric, self.relation, self.threshold, self.value, self.status)


TARGETS: Final = (
    Target("deflection_rate", "Deflection Rate", 40.0, ">=", "in_scope_queries"),
    Target("citation_accuracy", "Citation Accuracy", 80.0, ">=", "citation_applicable_queries"),
    Target("hallucination_rate", "Hallucination Rate", 15.0, "<", "successful_queries"),
    Target("oos_handling_rate", "OOS Handling", 90.0, ">=", "oos_queries"),
    Target("avg_latency_ms", "Avg Latency", LATENCY_THRESHOLD_MS, "<", "successful_queries"),
)
"""The five targets of the document, in its order."""


def targets(metrics: Metrics) -> list[Target]:
    """Compares the metrics with their targets.

    >>> met = msgspec.structs.replace(metrics_of([]), deflection_rate=40.0, in_scope_queries=5)
    >>> targets(met)[0].wanted(), targets(met)[0].status
    ('>= 40%', 'PASS')
    """
    return [_compared(target, metrics) for target in TARGETS]


def _compared(target: Target, metrics: Metrics) -> Target:
    """Fills in what the run reached."""
    value = getattr(metrics, target.metric)
    is_reached = reaches(value, target.threshold)
    met = is_reached if target.relation == ">=" else not is_reached
    status: Status = "N/A" if not getattr(metrics, target.group) else "PASS" if met else "FAIL"
    return replace(target, value=value, status=status)


def percentiles(times: Mapping[int, int]) -> Percentiles:
    """Returns percentiles and maximum from numbers of queries by latency; empty without any.

    >>> percentiles({10: 1, 20: 1, 30: 1, 40: 1})
    Percentiles(p50=20, p90=40, p95=40, p99=40, max=40)
    """
    ordered = sorted(times)
    if not ordered:
        return Percentiles()
    reached = list(accumulate(times[time] for time in ordered))
    ranks = (-(-percent * reached[-1] // 100) for percent in PERCENTILES)  # the nearest rank, from 1
    p50, p90, p95, p99 = (ordered[bisect_left(reached, rank)] for rank in ranks)
    return Percentiles(p50, p90, p95, p99, ordered[-1])


def percentile_intervals(times: Mapping[int, int]) -> PercentileIntervals:
    """Returns the 95% intervals of percentiles from numbers of items by latency; empty without any.

    >>> found = percentile_intervals(dict.fromkeys(range(1, 21), 1))
    >>> found.p50, found.p95
    (PercentileInterval(low=6, high=15), PercentileInterval(low=17, high=None))
    """
    if not times:
        return PercentileIntervals()
    ordered = sorted(times)
    reached = list(accumulate(times[time] for time in ordered))

    def at(rank: int | None) -> int | None:
        return None if rank is None else ordered[bisect_left(reached, rank)]

    p50, p95, p99 = (
        PercentileInterval(*map(at, percentile_ranks(reached[-1], percent)))
        for percent in BOUNDED_PERCENTILES
    )
    return PercentileIntervals(p50, p95, p99)


def _percent(part: int, whole: int) -> float:
    """Returns a share in percent; of nothing, 0."""
    return 100.0 * part / whole if whole else 0.0


def _mean(total: int, count: int) -> float:
    """Returns the mean; of nothing, 0."""
    return total / count if count else 0.0
