"""Builds the report of a run of single items: outcomes and latencies."""

from producer.items.documents import ItemsRun
from producer.report.figures import Figure, Labelled, ShownIn, Unit
from producer.report.run_report import RunReport, headline_of, latencies, names_of
from producer.report.run_verdict import rated, verdict_with
from producer.text import plural


def run_report(document: ItemsRun) -> RunReport:
    """Returns what is said of a run."""
    counts, summary = document.counts, document.summary
    figures = [Labelled("retried", Figure(summary.retried))] if summary.retried else []
    if summary.cost_usd:
        figures.append(Labelled("cost", Figure(summary.cost_usd, Unit.USD)))
    return RunReport(
        run=document,
        names=names_of(document),
        headline=headline_of(document, plural(counts.total, "item")),
        verdict=verdict_with(document, rated(document)),
        outcomes=[Labelled(word, Figure(number)) for word, number in counts.named().items()],
        figures=figures,
        lines=latencies(summary.latency_ms, places=ShownIn.BRIEF | ShownIn.MARKDOWN),
    )
