"""The types of what Proctor prints and writes of runs of single items, for kinds without their own."""

from producer.documents import Count, OutcomeRates, Part, Percentiles, RunDocument


class ItemsSummary(Part, frozen=True):
    """The figures of a run of single items."""

    latency_ms: Percentiles
    latency_n: Count
    cost_usd: float
    retried: Count
    errors: dict[str, Count]
    source: str
    duration_s: float | None
    items_per_s: float | None
    rates: OutcomeRates


ItemsRun = RunDocument[ItemsSummary]
"""The document of a run of single items."""
