"""Makes what the HTML report of a queries run shows around its rows: verdict, metrics, tables, settings."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from producer.aggregate.queries import Target, targets
from producer.queries.documents import CategoryMetrics, Metrics, QueriesRun
from producer.queries.report.check_reasons import CheckCounts
from producer.queries.report.reports import notes_of
from producer.queries.report.run_report import NAMES, answered, run_report, value_of, wanted
from producer.report.figures import Column, Figure, Name, ShownIn, Table, Unit, interval_of
from producer.report.html.charts import Series, rounded_up, stacked
from producer.report.html.head import charts, facts_of, page_of, tables
from producer.report.html.rendering import fill, markup
from producer.report.html.viewer import Fact, Metric, Page, end, popover
from producer.report.run_verdict import NO_ANSWERS, Verdict, shortfalls
from producer.text import latency, percent, plural, sentence_of, share
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import LATENCY_THRESHOLD_MS
from shared.names import RunState
from shared.runs import RunInfo

TEMPLATE: Final = "queries/report/page.html.j2"
FOLDER: Final = "queries/report"
CHECK_HEADS: Final[Mapping[str, str]] = {
    "must_contain": "must",
    "must_not_contain": "must not",
    "expected_docs": "docs",
    "citation_present": "cited",
    "oos_handling": "scope",
    "latency": "time",
}
"""Above the marks of the checks; `page.css` has them for narrow screens."""
_DEMANDS: Final[Mapping[str, str]] = {
    "must_contain": "required keywords found",
    "must_not_contain": "no forbidden keyword",
    "expected_docs": "expected documents retrieved",
    "citation_present": "something cited",
    "oos_handling": "out-of-scope query declined",
    "latency": f"under {LATENCY_THRESHOLD_MS / 1000:g} s",
}
"""What each check demands, for the legend."""
_SHARES_OF: Final[Mapping[str, str]] = {
    "deflection_rate": "in-scope answers",
    "citation_accuracy": "citable answers",
    "hallucination_rate": "answers",
    "oos_handling_rate": "out-of-scope answers",
}
LEGEND: Final = "legend"
"""Id of what the `?` in the head opens."""
NO_ANSWER_IN_CATEGORY: Final = CategoryMetrics(0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0)
_BINS: Final = 20
"""Columns of a distribution."""
_LEAST_TIMES: Final = 20
"""Answers from which on a distribution of latencies says something."""
_LEAST_SPREAD: Final = 2
"""How much slower the slowest twentieth is than the median, so that a distribution says something."""


def opening(document: QueriesRun, info: RunInfo, *, is_brief: bool) -> Page:
    """Returns what the page begins with.

    Args:
        document: the run's.
        info: the run.
        is_brief: whether some queries are shown without all details.
    """
    why = list(map(sentence_of, notes_of(info)))
    if is_brief:
        why.append(f"Passed queries are shown briefly, all of it: proctor results {info.run} --format jsonl.")
    page = page_of(run_report(document).noting(why), info, FOLDER)
    links = [("Checks", "#checks"), ("Categories", "#categories")] if answered(document) else []
    return replace(
        page, verdict=_heading(document, run_report(document).verdict), links=[*links, *page.links]
    )


def metrics_of(document: QueriesRun, measured_ms: float | None = None) -> list[Metric]:
    """Returns the cards of the strip: queries that passed, then the targets of the document.

    Args:
        document: the run's.
        measured_ms: mean latency by the client's clock; None: it was not measured.
    """
    found = [_target(target, document, measured_ms) for target in targets(document.summary.metrics)]
    return [_passed(document), *found]


def heads(checks: CheckCounts) -> bytes:
    """Writes the heads of the columns, with the share of answers that passed each check."""
    columns = []
    for row in checks.rows():
        n = row.rate.n
        title = f"{row.name}, {_DEMANDS[row.name]}: {row.passed:,} of {n:,} passed"
        columns.append((CHECK_HEADS[row.name], title, share(row.passed, n) if n else ""))
    return fill(TEMPLATE, "heads", columns, LEGEND)


def legend() -> bytes:
    """Writes what the columns of checks mean, which the `?` in their head opens."""
    marks = [("✓ ✗ \u2013", "passed, failed, not applicable"), ("%", "share of answers that pass the check")]
    checks = [(f"{CHECK_HEADS[name]} ({name})", demand) for name, demand in _DEMANDS.items()]
    return popover(LEGEND, "What the marks mean", [*checks, *marks])


def below(
    document: QueriesRun,
    info: RunInfo,
    checks: CheckCounts,
    missed: Mapping[str, int],
    times: Mapping[int, int],
) -> Iterator[bytes]:
    """Yields what stands below the rows: checks, categories, latencies, settings.

    Args:
        document: the run's.
        info: the run.
        checks: verdicts of the checks.
        missed: queries without a pass, by category.
        times: answers by their latency in milliseconds.
    """
    report = run_report(document)
    if answered(document):
        found = [
            CHECKS.filled(checks.rows()),
            CATEGORIES.filled(_categories(document.summary.metrics, missed)),
        ]
        yield tables(replace(report, tables=found).tables_in(ShownIn.PAGE))
        yield charts(_latencies(document, times))
    yield end(facts_of(report, info, _settings(info)), folder=FOLDER, row="query", cell="")


def _settings(info: RunInfo) -> list[tuple[str, str]]:
    """Lists the settings of a run."""
    run = QueryRun.from_snapshot(info.snapshot)
    return [
        ("API", f"{run.method} {run.api_url}{run.path}"),
        ("delay, concurrency", f"{run.delay_s:g} s, {run.concurrency:,}"),
        ("time limit", f"{run.timeout_s:g} s"),
        ("retries of errors", f"{run.retry_errors:,}"),
        ("begins at", run.start_from),
        ("chosen", run.chosen),
        ("continues", run.continues),
        ("baselines' version", run.version),
        ("repeats", f"{run.repeat:,}" if run.repeat > 1 else ""),
        ("intervals", "Wilson, 95%, by query"),
        ("percentiles", "nearest rank, of queries with an answer, as the server measured where it says so"),
    ]


def _heading(document: QueriesRun, verdict: Verdict) -> str:
    """Returns the verdict; failed answers come first where they alone decide, whatever the targets say."""
    counts = document.counts
    missed = [target for target in targets(document.summary.metrics) if target.status == "FAIL"]
    if (
        document.state != RunState.FINISHED
        or not counts.failed
        or not verdict.targets
        or missed
        or counts.error
    ):
        return verdict.heading
    failed = f"{counts.failed:,} of {plural(answered(document), 'answer')} failed"
    return "; ".join([", ".join([failed, *shortfalls(document)]), verdict.targets])


def _passed(document: QueriesRun) -> Metric:
    """The card of queries that passed all checks: of those with an answer, and of all."""
    counts, has_answer = document.counts, answered(document)
    rate = document.summary.rates.pass_rate_of_answered
    facts = [Fact(f"{counts.passed:,} of {has_answer:,} passed")] if has_answer else []
    if counts.error and has_answer:
        sent = has_answer + counts.error
        facts.append(Fact(f"{percent(counts.passed / sent)} of all {sent:,} sent"))
    if counts.failed:
        facts.append(Fact(f"✗ {counts.failed:,} failed", tone="f"))
    if counts.error:
        facts.append(Fact(f"! {counts.error:,} no answer", tone="e"))
    metric = Metric("Passed", NO_ANSWERS, facts=facts, tone="" if has_answer else "dim")
    return metric.rated(rate) if has_answer else metric


def _target(target: Target, document: QueriesRun, measured_ms: float | None) -> Metric:
    """The card of one target."""
    summary = document.summary
    rate = summary.rates.of(target.metric) if target.status != "N/A" else None
    verdict = {"PASS": Fact("✓ met", tone="p"), "FAIL": Fact("✗ missed", tone="f")}.get(target.status)
    facts, measured, aim = [*filter(None, [verdict])], "", f"target {wanted(target)}"
    if rate:
        facts.append(Fact(f"n = {rate.n:,} {_SHARES_OF[target.metric]}"))
        facts += list(_beside(target, summary.metrics))
    elif target.is_time and (times := summary.latency_ms):
        facts.append(Fact(f"P50 {latency(times.p50)}, P95 {latency(times.p95)}"))
        facts.append(Fact(f"{summary.metrics.latency_under_5s:.1f}% under 5 s"))
    if target.is_time and measured_ms is not None:
        measured = f"measured {latency(measured_ms)}"
    name, value = NAMES[target.metric], value_of(target)
    tone = {"FAIL": "f", "N/A": "dim"}.get(target.status, "")
    metric = Metric(name[0].upper() + name[1:], value, captions=(measured, aim), facts=facts, tone=tone)
    return metric.rated(rate, aim)._replace(value=value, target=target.threshold / 100) if rate else metric


def _beside(target: Target, metrics: Metrics) -> Iterator[Fact]:
    """Yields what a rate leaves out."""
    if target.metric == "citation_accuracy" and metrics.citation_na_queries:
        yield Fact(f"{metrics.citation_accuracy_raw:.1f}% with the {metrics.citation_na_queries:,} N/A")


class _Category(NamedTuple):
    """A row of the table of categories."""

    name: str
    metrics: CategoryMetrics
    missed: int
    """Queries without a pass."""


def _categories(metrics: Metrics, missed: Mapping[str, int]) -> Iterator[_Category]:
    """Yields the categories that occur."""
    for name in dict.fromkeys((*metrics.by_category, *missed)):
        numbers = metrics.by_category.get(name, NO_ANSWER_IN_CATEGORY)
        if numbers.total or missed.get(name):
            yield _Category(name, numbers, missed.get(name, 0))


def _share(percentage: float, of: int) -> Figure:
    """Returns a share of the document, which has it in percent."""
    return Figure(percentage / 100 if of else None, Unit.SHARE)


CHECKS: Final = Table(
    title="The six checks",
    link="Checks",
    columns=(
        Column("Check", lambda check: check.name),
        Column("Failed because", lambda check: Name(check.reason, "reason" if check.failed else "")),
        Column("Passed", lambda check: Figure(check.passed), is_kept=True),
        Column("Failed", lambda check: Figure(check.failed), is_kept=True),
        Column("N/A", lambda check: Figure(check.not_applicable), is_kept=True),
        Column(
            "Pass rate",
            lambda check: Figure(check.rate.value if check.rate.n else None, Unit.SHARE, missing=NO_ANSWERS),
        ),
        Column("95% interval", lambda check: interval_of(check.rate) if check.rate.n else Figure()),
    ),
    note="Of queries with an answer. A check that does not apply counts neither way.",
)
CATEGORIES: Final = Table(
    title="By category",
    link="Categories",
    columns=(
        Column("Category", lambda of: Name(of.name, "category")),
        Column("Answered", lambda of: Figure(of.metrics.total), is_kept=True),
        Column("Not passed", lambda of: Figure(of.missed), is_kept=True),
        Column("Deflection", lambda of: _share(of.metrics.deflection_rate, of.metrics.in_scope)),
        Column("Citation", lambda of: _share(of.metrics.citation_accuracy, of.metrics.citation_applicable)),
        Column("Hallucination", lambda of: _share(of.metrics.hallucination_rate, of.metrics.total)),
        Column(
            "Average latency",
            lambda of: Figure(of.metrics.avg_latency_ms if of.metrics.total else None, Unit.LATENCY_MS),
        ),
    ),
)


def _latencies(document: QueriesRun, times: Mapping[int, int]) -> list[tuple[str, Any, str]]:
    """Draws the distribution of latencies; nothing where it would say nothing."""
    found = document.summary.latency_ms
    if sum(times.values()) < _LEAST_TIMES or found.p95 < _LEAST_SPREAD * max(1, found.p50):
        return []
    step = rounded_up(max(times) / 1000) / _BINS
    inside, beyond = [0.0] * _BINS, [0.0] * _BINS
    for time, number in times.items():
        at = min(_BINS - 1, int(time / 1000 / step))
        (inside if time < LATENCY_THRESHOLD_MS else beyond)[at] += number
    series = [Series("within the limit", inside, "t0"), Series("too slow", beyond, "bad")]
    labels = [f"{step * at:.3g} s" for at in range(_BINS)]
    shown = [each for each in series if any(each.values)]
    chart = stacked(shown, labels, title="Answers by latency", y_label="answers")
    return [("Latency", markup(chart), "Answers by time, as the server measured it where it says so.")]
