"""Builds the report of a queries run: metrics against their targets, and latencies."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from producer.aggregate.queries import Target, targets
from producer.documents import Percentiles
from producer.queries.documents import QueriesRun
from producer.queries.report.sections import METRIC_COLUMNS, METRICS, metric_rows
from producer.report.figures import Cell, Column, Figure, Labelled, Name, ShownIn, Table
from producer.report.run_report import RunReport, headline_of, latencies, names_of
from producer.report.run_verdict import NO_ANSWERS, RunOutcome, rated, verdict_with
from producer.text import latency, percent, plural

TONES: Final = {"PASS": "p", "FAIL": "f"}
"""Of the document's words for targets."""
NAMES: Final[Mapping[str, str]] = {
    "deflection_rate": "deflection rate",
    "citation_accuracy": "citation accuracy",
    "hallucination_rate": "hallucination rate",
    "oos_handling_rate": "OOS handling",
    "avg_latency_ms": "average latency",
}
"""Of targets within a sentence."""
_NAMED: Final = 2
"""Missed targets that the sentence names."""


def run_report(document: QueriesRun) -> RunReport:
    """Returns what is said of a run."""
    counts, summary = document.counts, document.summary
    outcomes = [("passed", counts.passed), ("failed", counts.failed), ("errors", counts.error)]
    if counts.skipped:
        outcomes.append(("skipped", counts.skipped))
    figures = [Labelled("retried", Figure(summary.retried))] if summary.retried else []
    if vacuous := summary.vacuous_deflections:
        outcomes.append(("deflections without required keywords", vacuous))
    beside = ShownIn.BRIEF | ShownIn.MARKDOWN  # a page has them on its cards
    claimed = summary.server_latency_ms
    return RunReport(
        run=document,
        names=names_of(document),
        headline=headline_of(document, f"{plural(counts.total, 'query')} to {summary.api_url}"),
        verdict=verdict_with(document, _outcome(document)),
        outcomes=[Labelled(word, Figure(number)) for word, number in outcomes],
        figures=figures,
        lines=[
            *latencies(summary.latency_ms, places=beside),
            *latencies(Percentiles(p50=claimed.p50, p95=claimed.p95), "latency by the server", places=beside),
        ],
        tables=[_metrics_table(document)],
        title="Evaluation Report",
    )


def _metrics_table(document: QueriesRun) -> Table:
    """Makes a row for each metric of the document; none where nothing was answered."""
    metrics = document.summary.metrics
    rows: list[list[Cell]] = [
        [name, result, target, Name(status, tone=TONES.get(status, ""))]
        for _, (name, result, target, status) in metric_rows(metrics)
    ]
    return Table(
        title=METRICS,
        columns=[Column(heading, str) for heading in METRIC_COLUMNS],
        rows=rows if metrics.successful_queries else (),
        places=ShownIn.BRIEF,  # a page has them on its cards, Markdown in the document's sections
    )


def _outcome(document: QueriesRun) -> RunOutcome:
    """Returns how many queries passed, which targets were missed, and what is in doubt."""
    metrics = targets(document.summary.metrics)
    judged = [target for target in metrics if target.status != "N/A"]
    why = [*_doubts(document, judged), *_vacuous(document.summary.vacuous_deflections)]
    return rated(document)._replace(targets=_targets(judged), why=why)


def answered(document: QueriesRun) -> int:
    """Returns how many queries of a run have an answer."""
    return document.counts.answered


def value_of(target: Target) -> str:
    """Writes what a run reached; a rate without answers is none, never zero.

    >>> from producer.aggregate.queries import TARGETS
    >>> value_of(TARGETS[0])
    'no answers'
    """
    return NO_ANSWERS if target.status == "N/A" else _number(target, target.value)


def wanted(target: Target) -> str:
    """Writes the limit of a target.

    >>> from producer.aggregate.queries import TARGETS
    >>> wanted(TARGETS[0]), wanted(TARGETS[4])
    ('≥ 40%', '< 5,000 ms')
    """
    return f"{'≥' if target.relation == '>=' else '<'} {_number(target, target.threshold, decimals=0)}"


def _number(target: Target, number: float, *, decimals: int = 1) -> str:
    """Writes a number with the unit of a target."""
    return latency(number) if target.is_time else percent(number / 100, decimals)


def _targets(judged: Sequence[Target]) -> str:
    """Names the missed targets, or says that all of those with answers are met."""
    missed = [target for target in judged if target.status == "FAIL"]
    if not missed:
        return f"{'all ' if len(judged) > 1 else ''}{plural(len(judged), 'target')} met" if judged else ""
    named = ", ".join(
        f"{NAMES[each.metric]} {value_of(each)} (needs {wanted(each)})" for each in missed[:_NAMED]
    )
    more = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    return f"{len(missed)} of {plural(len(judged), 'target')} missed: {named}{more}"


def _doubts(document: QueriesRun, judged: Sequence[Target]) -> Iterator[str]:
    """Yields the rates whose interval holds their target: too few queries for a clear verdict."""
    rates = document.summary.rates
    doubtful = [
        f"{NAMES[target.metric]} {percent(rate.low, 0)} to {percent(rate.high, 0)}"
        for target in judged
        if (rate := rates.of(target.metric)) and rate.low < target.threshold / 100 < rate.high
    ]
    if doubtful:
        because = "Too few queries to be sure, since the target lies within the 95% interval"
        yield f"{because}: {', '.join(doubtful)}."


def _vacuous(number: int) -> Iterator[str]:
    """Yields what makes the deflection rate look better than it is."""
    if number:
        verb = "requires no keyword and counts" if number == 1 else "require no keyword and count"
        yield f"{number:,} in-scope {'query' if number == 1 else 'queries'} {verb} as deflected."
