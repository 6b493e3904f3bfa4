"""The nine sections of the harness document's report, row by row: what Markdown and HTML both show.

Every row is made of one result alone, so that a report may keep rows instead of results. Cells are escaped by
whoever writes them: each function is given how.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from producer.aggregate.queries import targets
from producer.queries.documents import Metrics
from producer.queries.results import AskedQuery
from producer.report.cells import Size
from shared.contracts.query_vocabulary import CHECKS, confidence_of

Row = tuple[str, ...]
Cell = Callable[..., str]
"""Makes hostile text safe for one cell, given the text and its longest length: `plain` or `markdown`."""

EXCERPT_CHARS: Final = 100
"""Cells of the documented sections, like `LIST_CHARS`: their cuts stay as they have been."""
LIST_CHARS: Final = 200
NONE: Final = "None"
"""What stands in the place of a table without rows."""
METRICS: Final = "Aggregate Metrics"
METRIC_COLUMNS: Final = ("Metric", "Result", "Target", "Status")
BY_CATEGORY: Final = "Per-Category Breakdown"
CATEGORY_COLUMNS: Final = ("Category", "Queries", "Deflection", "Citation", "Hallucination", "Avg Latency")


class Listing(NamedTuple):
    """A section with a row for each result that it is about."""

    title: str
    columns: Row
    row: Callable[[AskedQuery, Cell], Row | None]
    """Makes the row; None for a result that does not stand in it."""


def metric_rows(metrics: Metrics) -> list[tuple[str, Row]]:
    """Section 2: each metric beside its target; nothing hostile stands in it.

    Returns:
        For each row the metric's key, and the cells.
    """
    rows = list[tuple[str, Row]]()
    for target in targets(metrics):
        cells = (target.label, target.reached, target.wanted(), target.status)
        rows.append((target.metric, cells))
        if target.metric == "citation_accuracy" and metrics.citation_na_queries:
            raw = f"{metrics.citation_accuracy_raw:.1f}%"
            not_applicable = f"{metrics.citation_na_queries} N/A"
            rows.append(("citation_accuracy_raw", ("Citation (raw)", raw, "-", not_applicable)))
    fast = _share(metrics.latency_under_5s, metrics.successful_queries)
    return [*rows, ("latency_under_5s", ("Latency < 5s", fast, "-", "-"))]


def category_rows(metrics: Metrics, cell: Cell) -> list[Row]:
    """Section 3: the same by category."""
    return [
        (
            cell(category),
            str(numbers.total),
            _share(numbers.deflection_rate, numbers.in_scope),
            _share(numbers.citation_accuracy, numbers.citation_applicable),
            _share(numbers.hallucination_rate, numbers.total),
            f"{numbers.avg_latency_ms:.0f}ms" if numbers.total else "N/A",
        )
        for category, numbers in metrics.by_category.items()
    ]


def vacuous_note(number: int) -> str:
    """Names what makes the deflection rate look better than it is; empty where nothing does."""
    what = "In-scope queries that require no keyword, and so count as deflected"
    return f"{what}: {number}." if number else ""


def not_applicable_note(in_scope: int, of: int) -> str:
    """Names what citation accuracy leaves out; empty where it leaves out nothing."""
    return f"In scope, and so left out of citation accuracy: {in_scope} of {of}." if of else ""


def _keyword_failure(query: AskedQuery, cell: Cell) -> Row | None:
    """Section 4: in-scope answers that lack required keywords."""
    check = query.check("must_contain")
    if query.is_failed or query.is_oos or check.passed:
        return None
    return (_query(query, cell), cell(", ".join(check.texts("missing")), LIST_CHARS))


def _hallucination(query: AskedQuery, cell: Cell) -> Row | None:
    """Section 5: answers with signs of invention."""
    check = query.check("must_not_contain")
    if query.is_failed or check.passed:
        return None
    return (_query(query, cell), cell(", ".join(check.texts("found")), LIST_CHARS))


def _oos_failure(query: AskedQuery, cell: Cell) -> Row | None:
    """Section 6: out-of-scope queries that were answered instead of declined."""
    if query.is_failed or not query.is_oos or query.check("oos_handling").passed:
        return None
    return (_query(query, cell), cell(query.answer, EXCERPT_CHARS))


def _citation_not_applicable(query: AskedQuery, cell: Cell) -> Row | None:
    """Section 7: queries for which nothing was retrieved, so that nothing could be cited."""
    if query.is_failed or query.is_citation_applicable:
        return None
    return (_scoped(query, cell), *_confidence(query, cell))


def _citation_missing(query: AskedQuery, cell: Cell) -> Row | None:
    """Section 8: queries for which chunks were retrieved and none was cited."""
    if query.is_failed or not query.is_citation_applicable or query.is_cited:
        return None
    return (_scoped(query, cell), _confidence(query, cell)[0])


def _raw(query: AskedQuery, cell: Cell) -> Row:
    """Section 9: every query of the run, the failed ones included."""
    name, category = cell(query.id), cell(query.category)
    latency = f"{query.latency_ms}ms"
    if query.is_failed:
        error = f"ERROR: {cell(query.error, EXCERPT_CHARS)}"
        return (name, category, "-", "-", "-", "-", "-", latency, error)
    verdicts = {name: _word(query.check(name).passed) for name in CHECKS}
    return (
        name,
        category,
        _confidence(query, cell)[0],
        "-" if query.is_oos else verdicts["must_contain"],
        verdicts["citation_present"] if query.is_citation_applicable else "N/A",
        verdicts["must_not_contain"],
        verdicts["oos_handling"] if query.is_oos else "-",
        latency,
        _word(query.passed) + _failed_checks(query),
    )


KEYWORDS: Final = Listing("must_contain Failures", ("Query", "Missing Keywords"), _keyword_failure)
INVENTED: Final = Listing("Hallucination Detections", ("Query", "Found Signals"), _hallucination)
OUT_OF_SCOPE: Final = Listing("OOS Handling Failures", ("Query", "Answer Excerpt"), _oos_failure)
NOT_APPLICABLE: Final = Listing("Citation N/A", ("Query", "Confidence", "Reason"), _citation_not_applicable)
MISSING: Final = Listing("Citation Missing", ("Query", "Confidence"), _citation_missing)
RAW: Final = Listing(
    "Raw Query Results",
    ("ID", "Category", "Confidence", "Deflect", "Citation", "Halluc", "OOS", "Latency", "Pass"),
    _raw,
)
FAILURES: Final = (KEYWORDS, INVENTED, OUT_OF_SCOPE, NOT_APPLICABLE, MISSING)
"""Sections 4 to 8, in the order of the document."""


def _query(query: AskedQuery, cell: Cell) -> str:
    """Names a query: id and the start of its text."""
    return f"{cell(query.id)}: {cell(query.query, Size.CELL)}"


def _scoped(query: AskedQuery, cell: Cell) -> str:
    """Names a query, and says if it is out of scope."""
    return _query(query, cell) + (" (OOS)" if query.is_oos else "")


def _confidence(query: AskedQuery, cell: Cell) -> tuple[str, str]:
    """Returns level and reason of the reply's confidence, `-` where it has none."""
    level, reason = confidence_of(query.response)
    return cell(level, EXCERPT_CHARS) or "-", cell(reason, EXCERPT_CHARS) or "-"


def _share(percent: float, of: int) -> str:
    """Writes a percentage; of nothing it is N/A."""
    return f"{percent:.1f}%" if of else "N/A"


def _failed_checks(query: AskedQuery) -> str:
    """Names the checks that a failure is due to: not all of them have a column."""
    checks = {name: query.check(name) for name in CHECKS}
    names = [name for name, check in checks.items() if check.is_applicable and not check.passed]
    return f": {', '.join(names)}" if names and not query.passed else ""


def _word(is_passed: bool) -> str:  # noqa: FBT001 - the one fact that is put into a word
    """Returns the verdict's word."""
    return "PASS" if is_passed else "FAIL"
