"""The nine sections of the harness document's report, row by row: what Markdown and HTML both show.

Every row is made of one result alone, so that a report may keep rows instead of results. Cells are escaped by
whoever writes them: each function is given how.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from producer.aggregate.queries import (
    check_of,
    is_citation_applicable,
    is_cited,
    latency_ms,
    targets,
)
from producer.queries.documents import Metrics
from shared.contracts.query_vocabulary import CHECKS, confidence_of, failed, json_object

Result = Mapping[str, Any]
Row = tuple[str, ...]
Cell = Callable[..., str]
"""Makes hostile text safe for one cell, given the text and its longest length: `plain` or `markdown`."""

QUERY_CHARS: Final = 60
EXCERPT_CHARS: Final = 100
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
    row: Callable[[Result, Cell], Row | None]
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


def _keyword_failure(result: Result, cell: Cell) -> Row | None:
    """Section 4: in-scope answers that lack required keywords."""
    if failed(result) or result.get("is_oos") or passed(result, "must_contain"):
        return None
    return (_query(result, cell), _listed(check_of(result, "must_contain").get("missing"), cell))


def _hallucination(result: Result, cell: Cell) -> Row | None:
    """Section 5: answers with signs of invention."""
    if failed(result) or passed(result, "must_not_contain"):
        return None
    return (_query(result, cell), _listed(check_of(result, "must_not_contain").get("found"), cell))


def _oos_failure(result: Result, cell: Cell) -> Row | None:
    """Section 6: out-of-scope queries that were answered instead of declined."""
    if failed(result) or not result.get("is_oos") or passed(result, "oos_handling"):
        return None
    return (_query(result, cell), cell(json_object(result.get("response")).get("answer"), EXCERPT_CHARS))


def _citation_not_applicable(result: Result, cell: Cell) -> Row | None:
    """Section 7: queries for which nothing was retrieved, so that nothing could be cited."""
    if failed(result) or is_citation_applicable(result):
        return None
    return (_scoped(result, cell), *_confidence(result, cell))


def _citation_missing(result: Result, cell: Cell) -> Row | None:
    """Section 8: queries for which chunks were retrieved and none was cited."""
    if failed(result) or not is_citation_applicable(result) or is_cited(result):
        return None
    return (_scoped(result, cell), _confidence(result, cell)[0])


def _raw(result: Result, cell: Cell) -> Row:
    """Section 9: every query of the run, the failed ones included."""
    name, category = cell(result.get("id")), cell(result.get("category"))
    latency = f"{latency_ms(result)}ms"
    if failed(result):
        error = f"ERROR: {cell(result.get('error'), EXCERPT_CHARS)}"
        return (name, category, "-", "-", "-", "-", "-", latency, error)
    is_oos = bool(result.get("is_oos"))
    return (
        name,
        category,
        _confidence(result, cell)[0],
        "-" if is_oos else _word(passed(result, "must_contain")),
        _word(passed(result, "citation_present")) if is_citation_applicable(result) else "N/A",
        _word(passed(result, "must_not_contain")),
        _word(passed(result, "oos_handling")) if is_oos else "-",
        latency,
        _word(bool(result.get("overall_pass"))) + _failed_checks(result),
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


def passed(result: Result, name: str) -> bool:
    """Returns whether one check passed."""
    return bool(check_of(result, name).get("pass"))


def _query(result: Result, cell: Cell) -> str:
    """Names a query: id and the start of its text."""
    return f"{cell(result.get('id'))}: {cell(result.get('query'), QUERY_CHARS)}"


def _scoped(result: Result, cell: Cell) -> str:
    """Names a query, and says if it is out of scope."""
    return _query(result, cell) + (" (OOS)" if result.get("is_oos") else "")


def _confidence(result: Result, cell: Cell) -> tuple[str, str]:
    """Returns level and reason of the reply's confidence, `-` where it has none."""
    level, reason = confidence_of(result.get("response"))
    return cell(level, EXCERPT_CHARS) or "-", cell(reason, EXCERPT_CHARS) or "-"


def _listed(texts: Any, cell: Cell) -> str:
    """Returns a list of texts for one cell."""
    entries = texts if isinstance(texts, list | tuple) else []
    return cell(", ".join(entry for entry in entries if isinstance(entry, str)), LIST_CHARS)


def _share(percent: float, of: int) -> str:
    """Writes a percentage; of nothing it is N/A."""
    return f"{percent:.1f}%" if of else "N/A"


def _failed_checks(result: Result) -> str:
    """Names the checks that a failure is due to: not all of them have a column."""
    names = [
        name for name in CHECKS if check_of(result, name).get("applicable", True) and not passed(result, name)
    ]
    return f": {', '.join(names)}" if names and not result.get("overall_pass") else ""


def _word(is_passed: bool) -> str:  # noqa: FBT001 - the one fact that is put into a word
    """Returns the verdict's word."""
    return "PASS" if is_passed else "FAIL"
