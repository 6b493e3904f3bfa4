"""Adds up a queries run from its rows: outcomes, the document's metrics and targets, latencies, errors."""

from collections import Counter
from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import asdict

from producer.aggregate.queries import (
    MetricsSoFar,
    percentiles,
    shares_of,
    targets,
)
from producer.aggregate.related import ByCase, counts_of, outcome_effects, outcome_rates
from producer.aggregate.statistics import wilson
from producer.documents import Counts, Rate
from producer.queries.documents import QueriesSummary, QueryRates
from producer.queries.report.opened_rows import opened
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.names import Outcome
from shared.runs import RunInfo


class QueryTotals:
    """Counts rows; memory grows with the number of queries and of different latencies only."""

    def __init__(self) -> None:
        self.outcomes = Counter[Outcome]()
        """Rows by outcome."""
        self.errors = Counter[str]()
        """Rows that ended in error, by error code."""
        self.retried = 0
        """Rows that took more than one send."""
        self._vacuous = 0
        self._times, self._server_times = Counter[int](), Counter[int]()
        self._metrics = MetricsSoFar()
        self._outcomes_by_query, self._shares_by_query = ByCase(), ByCase()

    def add(self, page: Sequence[ItemRow]) -> None:
        """Counts some rows."""
        for row, result, code, _ in opened(page):
            self.outcomes[row.outcome] += 1
            self.retried += row.attempts > 1
            if code:
                self.errors[code] += 1
            if result is not None:
                self._metrics.add(result)
                self._outcomes_by_query.add(result.id, counts_of(row.outcome))
                shares = shares_of(result).values()
                self._shares_by_query.add(result.id, tuple(number for pair in shares for number in pair))
                self._vacuous += result.is_vacuous
                if not result.is_failed:
                    self._times[result.measured_ms] += 1
                    if (claim := result.server_ms) is not None:
                        self._server_times[claim] += 1

    def counts(self, total: int) -> Counts:
        """Returns rows by outcome, and the size of the run.

        >>> QueryTotals().counts(3).total
        3
        """
        return Counts.of(self.outcomes, total)

    def summary(self, info: RunInfo) -> QueriesSummary:
        """Returns the metrics, the targets, and what the document does not ask for, with what was run."""
        metrics, run = self._metrics.metrics(), QueryRun.from_snapshot(info.snapshot)
        outcomes = outcome_rates(self.counts(info.total), outcome_effects(self._outcomes_by_query))
        return QueriesSummary(
            metrics=metrics,
            targets=tuple(target.judged for target in targets(metrics)),
            rates=QueryRates(**asdict(outcomes), **self._rates()),
            latency_ms=percentiles(self._times),
            server_latency_ms=percentiles(self._server_times),
            latency_n=self._times.total(),
            vacuous_deflections=self._vacuous,
            retried=self.retried,
            errors=dict(self.errors.most_common()),
            source=info.source,
            duration_s=info.duration_s,
            api_url=run.api_url,
            delay_s=run.delay_s,
            concurrency=run.concurrency,
            fold_apostrophes=run.fold_apostrophes or UNSET,
            queries_per_s=info.per_s,
        )

    def _rates(self) -> dict[str, Rate]:
        """Returns the shares of the queries that each metric counts; answers to a query are related."""
        found, by_query = dict[str, Rate](), self._shares_by_query
        for at, (name, (part, whole)) in enumerate(self._metrics.shares().items()):
            effect = by_query.effect([2 * at], [2 * at + 1])
            found[name] = wilson(part, whole, effect=effect).rounded()
        return found

    def misses(self) -> bool:
        """Returns whether a query failed or a target was missed; a target without data is not missed."""
        return bool(self.outcomes[Outcome.FAILED]) or any(
            target.status == "FAIL" for target in targets(self._metrics.metrics())
        )
