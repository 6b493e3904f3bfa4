"""Builds the report of a run of single items: outcomes and latencies."""

from producer.items.documents import ItemsRun
from producer.report.figures import Figure, Labelled, ShownIn, Unit
from producer.report.run_report import RunReport, latencies, names_of
from producer.report.run_verdict import rated, verdict_with
from producer.text import duration, plural, share


def run_report(document: ItemsRun) -> RunReport:
    """Returns what is said of a run."""
    counts, summary = document.counts, document.summary
    figures = [Labelled("retried", Figure(summary.retried))] if summary.retried else []
    if summary.cost_usd:
        figures.append(Labelled("cost", Figure(summary.cost_usd, Unit.USD)))
    return RunReport(
        run=document,
        names=names_of(document),
        headline=_headline(document),
        verdict=verdict_with(document, rated(document)),
        outcomes=[Labelled(word, Figure(number)) for word, number in counts.named().items()],
        figures=figures,
        lines=latencies(summary.latency_ms, places=ShownIn.BRIEF | ShownIn.MARKDOWN),
    )


def _headline(document: ItemsRun) -> str:
    """Writes in one line what the run is and how far it came."""
    counts, summary = document.counts, document.summary
    text = f"{document.state}: {plural(counts.total, 'item')}"
    if summary.duration_s is None:
        done = counts.done + counts.skipped
        return f"{text}, {done:,} done ({share(done, counts.total)})"
    return f"{text} in {duration(summary.duration_s)}"
