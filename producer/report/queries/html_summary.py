"""What the HTML report of a queries run says above its queries: verdict, targets, checks, categories."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from producer.aggregate.gates import gate_line
from producer.aggregate.queries import targets
from producer.aggregate.turns import ranked
from producer.report.cells import plain
from producer.report.html.page import Tile, begin, fill
from producer.report.queries.check_reasons import CheckCounts
from producer.report.queries.reports import notes_of
from producer.report.queries.sections import (
    BY_CATEGORY,
    CATEGORY_COLUMNS,
    METRIC_COLUMNS,
    METRICS,
    category_rows,
    metric_rows,
)
from producer.report.turns.wording import verdict_line
from producer.text import duration, plural
from shared import __version__
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import began_at
from shared.names import FINAL_STATES
from shared.runs import RunInfo

TEMPLATE: Final = "queries/page.html.j2"
TITLE: Final = "Evaluation Report"
"""That of the document."""
_TONES: Final[Mapping[str, str]] = {"PASS": "good", "FAIL": "bad", "N/A": ""}


def opening(document: Mapping[str, Any], info: RunInfo) -> bytes:
    """Writes the first screen, which is the first section of the document as well."""
    metrics, summary = document["summary"]["metrics"], document["summary"]
    about = [
        f"Date: {began_at(info.run) or f'{_created(info)}'}",
        f"Run ID: {info.run}",
        f"Queries: {metrics['total_queries']:,}",
        f"Successful: {metrics['successful_queries']:,}/{metrics['total_queries']:,}",
        f"Input: {plain(info.source)}",
        *([] if summary["duration_s"] is None else [f"Time: {duration(summary['duration_s'])}"]),
    ]
    said = [f"Note: {note}" for note in notes_of(info)]
    said += [f"{summary['retried']:,} retried"] * bool(summary["retried"])
    return begin(
        TITLE,
        _verdict(document),
        is_good=not document["exit"] if document["state"] in FINAL_STATES else None,
        remarks=[*said, *(gate_line(gate) for gate in document.get("gates", ()))],
        tiles=list(_tiles(document)),
        about=" · ".join(about),
    )


def summary_of(document: Mapping[str, Any], checks: CheckCounts) -> bytes:
    """Writes sections 2 and 3 of the document, and beside them checks, latencies and errors."""
    summary = document["summary"]
    rows = [(cells, summary["rates"].get(metric)) for metric, cells in metric_rows(summary["metrics"])]
    times = {"rows": list(summary["latency_ms"].items()), "n": summary["latency_n"]}
    errors = [(plain(code), number) for code, number in ranked(summary["errors"])]
    shown = (METRICS, METRIC_COLUMNS, rows, checks.rows(), times, errors)
    categories = category_rows(summary["metrics"], plain)
    return fill(TEMPLATE, "metrics", *shown) + fill(
        TEMPLATE, "categories", BY_CATEGORY, CATEGORY_COLUMNS, categories
    )


def facts_of(document: Mapping[str, Any], info: RunInfo) -> list[tuple[str, str]]:
    """Says what was run, for those who want to run it again or doubt it."""
    run = QueryRun.from_snapshot(info.snapshot)
    facts = [
        ("run", f"{info.run} ({document['state']})"),
        ("input", info.source),
        ("submitted", _created(info)),
        ("API", f"{run.method} {run.api_url}{run.path}"),
        ("delay, concurrency", f"{run.delay_s:g} s, {run.concurrency:,}"),
        ("time limit", f"{run.timeout_s:g} s"),
        ("retries of errors", f"{run.retry_errors:,}"),
        ("begins at", run.start_from),
        ("chosen", run.chosen),
        ("continues", run.continues),
        ("baselines' version", run.version),
        ("repeats", f"{run.repeat:,}" if run.repeat > 1 else ""),
        ("intervals", "Wilson, 95 %"),
        ("percentiles", "nearest rank, of queries with an answer"),
        ("written by", f"Proctor {__version__}, document version {document['schema_version']}"),
    ]
    return [(name, value) for name, value in facts if value]


def _verdict(document: Mapping[str, Any]) -> str:
    """Says in one line what counts."""
    counts, metrics = document["counts"], document["summary"]["metrics"]
    judged = [target for target in targets(metrics) if target.status != "N/A"]
    met = sum(target.status == "PASS" for target in judged)
    told = [f"{met} of {plural(len(judged), 'target')} met" if judged else "no target could be judged"]
    told.append(f"{counts['passed']:,} of {_queries(counts['total'])} passed")
    told += [f"{counts['failed']:,} failed"] * bool(counts["failed"])
    return verdict_line(document, told)


def _tiles(document: Mapping[str, Any]) -> Iterator[Tile]:
    """Yields the figures of the first screen: the targets, then the outcomes."""
    counts, summary = document["counts"], document["summary"]
    for target in targets(summary["metrics"]):
        value = "-" if target.status == "N/A" else target.shown(target.value)
        note = f"{target.status}, target {target.wanted()}"
        yield Tile(target.label, value, note, tone=_TONES[target.status])
    yield Tile("passed", f"{counts['passed']:,}", f"of {_queries(counts['total'])}", link="#passed")
    for word, name in (("failed", "failed"), ("error", "errors")):
        is_bad = bool(counts[word])
        yield Tile(name, f"{counts[word]:,}", tone="bad" * is_bad, link=f"#outcome={word}" * is_bad)
    if counts["skipped"]:
        yield Tile("skipped", f"{counts['skipped']:,}", tone="warn")
    if times := summary["latency_ms"]:
        yield Tile("latency, P95", f"{times['p95']:,} ms", f"P50 {times['p50']:,} ms")


def _queries(number: int) -> str:
    """Counts queries.

    >>> _queries(1), _queries(50)
    ('1 query', '50 queries')
    """
    return f"{number:,} {'query' if number == 1 else 'queries'}"


def _created(info: RunInfo) -> str:
    """When the run was submitted."""
    return f"{datetime.fromtimestamp(info.created_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
