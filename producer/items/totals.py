"""Adds up a run of single items from its rows, for kinds without totals of their own."""

from collections import Counter
from collections.abc import Sequence

from producer.aggregate.queries import percentiles
from producer.aggregate.related import outcome_rates
from producer.documents import Counts
from producer.items.documents import ItemsSummary
from producer.items.report.opened_rows import opened
from shared.codecs.item_rows import CACHED, ItemRow
from shared.names import Outcome
from shared.runs import RunInfo


class ItemTotals:
    """Counts rows; memory grows with the number of different latencies only."""

    def __init__(self) -> None:
        self._outcomes = Counter[Outcome]()
        self._errors = Counter[str]()
        self._latencies_ms = Counter[int]()
        self._retried = 0
        self._cost_usd = 0.0

    def add(self, page: Sequence[ItemRow]) -> None:
        """Counts some rows."""
        for item in opened(page):
            row = item.row
            self._outcomes[row.outcome] += 1
            self._retried += row.attempts > 1
            if item.code:
                self._errors[item.code] += 1
            if row.latency_ms is not None and CACHED not in row.code:
                self._latencies_ms[row.latency_ms] += 1
            self._cost_usd += row.cost_usd or 0.0

    def counts(self, total: int) -> Counts:
        """Returns rows by outcome, and the size of the run.

        >>> ItemTotals().counts(3).total
        3
        """
        return Counts.of(self._outcomes, total)

    def summary(self, info: RunInfo) -> ItemsSummary:
        """Returns latencies, known cost, retries and errors; items of an unknown kind are not related."""
        return ItemsSummary(
            latency_ms=percentiles(self._latencies_ms),
            latency_n=self._latencies_ms.total(),
            cost_usd=self._cost_usd,
            retried=self._retried,
            errors=dict(self._errors.most_common()),
            source=info.source,
            duration_s=info.duration_s,
            items_per_s=info.per_s,
            rates=outcome_rates(self.counts(info.total)),
        )

    def misses(self) -> bool:
        """Returns whether an item failed."""
        return bool(self._outcomes[Outcome.FAILED])
