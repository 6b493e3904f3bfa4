"""Writes the summary of a queries run and its results for a terminal, as plain text."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from producer.aggregate.queries import TARGETS, Target, targets
from producer.documents import Counts
from producer.queries.documents import QueriesRun, QueriesSummary
from producer.queries.report.check_reasons import failures
from producer.queries.report.failed_queries import QueryFailures
from producer.queries.report.opened_rows import OpenedQuery, opened
from producer.queries.report.wording import outcome
from producer.queries.results import AskedQuery
from producer.report.cells import Size, plain
from producer.report.interfaces import Details, Paint, Screen, unpainted
from producer.report.run_title import head_of, last_lines
from producer.text import duration, latency, plural, share
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import confidence_of, json_object
from shared.runs import RunInfo

COLUMNS: Final = ("id", "category", "outcome", "confidence", "latency", "why")
"""Of the table of results."""
MET: Final = "PASS"
NO_VALUE: Final = "N/A"
"""What the document says of a target."""
_LABELS: Final = max(len(target.label) for target in TARGETS)


def summary_text(document: QueriesRun, paint: Paint = unpainted) -> str:
    """Writes outcomes, metrics against their targets, latencies and errors of a run.

    Args:
        document: as `producer.document` makes it.
        paint: colours the name of the run, and whether targets are met.
    """
    summary, counts = document.summary, document.counts
    lines = [paint(head_of(document), "bold"), ""]
    metrics = [_target(each, paint) for each in targets(summary.metrics) if each.status != NO_VALUE]
    lines += [*metrics, ""] if metrics else []
    lines += [" · ".join(f"{word} {number:,}" for word, number in _remarks(summary, counts))]
    if summary.latency_ms:
        lines.append(f"latency: {_times(summary.latency_ms.named())}")
        if claimed := summary.server_latency_ms:
            lines.append(f"latency by the server: {_times({'p50': claimed.p50, 'p95': claimed.p95})}")
    return "\n".join([*lines, *last_lines(document)])


def table_rows(rows: Sequence[ItemRow]) -> list[list[str]]:
    """Returns results as cells of a table with `COLUMNS`, safe to print."""
    return [_cells(query) for query in opened(rows)]


def _cells(query: OpenedQuery) -> list[str]:
    """Returns the cells of one query."""
    row, result = query.row, query.result
    if result is None:
        baseline = AskedQuery(json_object(msgspec.json.decode(row.line)) if row.line else {})
        return [plain(baseline.id, Size.CELL), "", row.outcome.value, "", "", ""]
    return [
        plain(result.id, Size.CELL),
        plain(result.category, Size.CELL),
        row.outcome.value,
        plain(confidence_of(result.response)[0], Size.CELL),
        "" if result.client_ms is None else latency(result.client_ms),
        plain(query.error or "; ".join(failures(result)), Size.LINE),
    ]


def _headline(document: QueriesRun) -> str:
    """Returns a line with the run and how far it came."""
    counts, summary = document.counts, document.summary
    text = f"{document.state}: {plural(counts.total, 'query')}"
    text += f" to {plain(summary.api_url, Size.CELL)}"
    if summary.duration_s is None:
        return f"{text}, {counts.done:,} done ({share(counts.done, counts.total)})"
    return f"{text} in {duration(summary.duration_s)}"


def _times(percentiles: Mapping[str, int]) -> str:
    """Writes percentiles.

    >>> _times({"p50": 7, "p95": 1200})
    'p50 7 ms, p95 1,200 ms'
    """
    return ", ".join(f"{name} {latency(time)}" for name, time in percentiles.items())


def _target(target: Target, paint: Paint) -> str:
    """Writes one metric beside its target."""
    label, value = f"{target.label:<{_LABELS}}", target.shown(target.value)
    status = paint(target.status, "green" if target.status == MET else "red")
    return f"  {label}  {value:>8}  {target.wanted():<9} {status}"


def _remarks(summary: QueriesSummary, counts: Counts) -> list[tuple[str, int]]:
    """Returns the outcomes and further counts with their labels."""
    labelled = [
        ("passed", counts.passed, True),
        ("failed", counts.failed, True),
        ("errors", counts.error, True),
        ("skipped", counts.skipped, False),
        ("retried", summary.retried, False),
        ("deflections without required keywords", summary.vacuous_deflections, False),
    ]
    return [(word, number) for word, number, is_always_shown in labelled if number or is_always_shown]


def _details(info: RunInfo, _is_verbose: bool) -> Details:  # noqa: FBT001 - the form of every screen
    """Shows what failed."""
    return QueryFailures(QueryRun.from_snapshot(info.snapshot))


SCREEN: Final = Screen(
    summary_text,
    _headline,
    outcome,
    COLUMNS,
    table_rows,
    spare=("confidence", "category"),
    names=("id", "category"),
    right=("latency",),
    details=_details,
)
"""What a terminal shows of a queries run."""
