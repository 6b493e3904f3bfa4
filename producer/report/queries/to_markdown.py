"""Writes the report of an evaluation run in Markdown: the nine sections of the harness document.

Every section stands in every report, with "None" where there is nothing to list, so that a reader can tell
"no hallucinations" from "not looked at". All cells are escaped.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from producer.aggregate.queries import (
    check_of,
    is_citation_applicable,
    is_cited,
    is_vacuous,
    latency_ms,
    targets,
)
from producer.report.cells import markdown, markdown_list
from shared.query_words import began_at, confidence_of, failed, json_object

Result = Mapping[str, Any]
Rows = Sequence[tuple[str, ...]]

QUERY_CHARS: Final = 60
EXCERPT_CHARS: Final = 100
LIST_CHARS: Final = 200
NONE: Final = "None"


def report_markdown(
    results: Sequence[Result], metrics: Mapping[str, Any], run_id: str, *, notes: Sequence[str] = ()
) -> str:
    """Returns the report.

    Args:
        results: results of queries, in the order in which they shall stand.
        metrics: see `calculate_metrics`.
        run_id: the run; its name tells when it began.
        notes: what a reader must know before trusting the numbers, such as a partial run.
    """
    successful = [result for result in results if not failed(result)]
    sections = (
        _header(metrics, run_id, notes),
        _metrics(metrics),
        _categories(metrics),
        _keyword_failures(successful),
        _hallucinations(successful),
        _oos_failures(successful),
        _citations_not_applicable(successful),
        _citations_missing(successful),
        _raw(results),
    )
    return "\n\n".join(sections) + "\n"


def _header(metrics: Mapping[str, Any], run_id: str, notes: Sequence[str]) -> str:
    """Section 1: what was run, when, and how much of it can be judged."""
    lines = [
        "# Evaluation Report",
        "",
        f"- **Date:** {began_at(run_id) or '-'}",
        f"- **Run ID:** {markdown(run_id)}",
        f"- **Queries:** {metrics['total_queries']}",
        f"- **Successful:** {metrics['successful_queries']}/{metrics['total_queries']}",
        *(f"- **Note:** {markdown(note)}" for note in notes),
    ]
    return "\n".join(lines)


def _metrics(metrics: Mapping[str, Any]) -> str:
    """Section 2: each metric beside its target."""
    rows = list[tuple[str, ...]]()
    for target in targets(dict(metrics)):
        rows.append((target.label, target.shown(target.value), target.wanted(), target.status))
        if target.metric == "citation_accuracy" and metrics["citation_na_queries"]:
            raw = f"{metrics['citation_accuracy_raw']:.1f}%"
            rows.append(("Citation (raw)", raw, "-", f"{metrics['citation_na_queries']} N/A"))
    rows.append(("Latency < 5s", f"{metrics['latency_under_5s']:.1f}%", "-", "-"))
    return _section("Aggregate Metrics", ("Metric", "Result", "Target", "Status"), rows)


def _categories(metrics: Mapping[str, Any]) -> str:
    """Section 3: the same by category."""
    columns = ("Category", "Queries", "Deflection", "Citation", "Hallucination", "Avg Latency")
    rows = [
        (
            markdown(category),
            str(numbers["total"]),
            _share(numbers["deflection_rate"], numbers["in_scope"]),
            _share(numbers["citation_accuracy"], numbers["citation_applicable"]),
            _share(numbers["hallucination_rate"], numbers["total"]),
            f"{numbers['avg_latency_ms']:.0f}ms" if numbers["total"] else "N/A",
        )
        for category, numbers in metrics["by_category"].items()
    ]
    return _section("Per-Category Breakdown", columns, rows)


def _keyword_failures(successful: Sequence[Result]) -> str:
    """Section 4: in-scope answers that lack required keywords."""
    rows = [
        (_query(result), markdown_list(check_of(result, "must_contain").get("missing"), LIST_CHARS))
        for result in successful
        if not result.get("is_oos") and not _passed(result, "must_contain")
    ]
    vacuous = sum(map(is_vacuous, successful))
    note = (
        f"In-scope queries that require no keyword, and so count as deflected: {vacuous}." if vacuous else ""
    )
    return _section("must_contain Failures", ("Query", "Missing Keywords"), rows, note)


def _hallucinations(successful: Sequence[Result]) -> str:
    """Section 5: answers with signs of invention."""
    rows = [
        (_query(result), markdown_list(check_of(result, "must_not_contain").get("found"), LIST_CHARS))
        for result in successful
        if not _passed(result, "must_not_contain")
    ]
    return _section("Hallucination Detections", ("Query", "Found Signals"), rows)


def _oos_failures(successful: Sequence[Result]) -> str:
    """Section 6: out-of-scope queries that were answered instead of declined."""
    rows = [
        (_query(result), markdown(json_object(result.get("response")).get("answer"), EXCERPT_CHARS))
        for result in successful
        if result.get("is_oos") and not _passed(result, "oos_handling")
    ]
    return _section("OOS Handling Failures", ("Query", "Answer Excerpt"), rows)


def _citations_not_applicable(successful: Sequence[Result]) -> str:
    """Section 7: queries for which nothing was retrieved, so that nothing could be cited."""
    found = [result for result in successful if not is_citation_applicable(result)]
    rows = [(_scoped(result), *_confidence(result)) for result in found]
    in_scope = sum(not result.get("is_oos") for result in found)
    note = f"In scope, and so left out of citation accuracy: {in_scope} of {len(found)}." if found else ""
    return _section("Citation N/A", ("Query", "Confidence", "Reason"), rows, note)


def _citations_missing(successful: Sequence[Result]) -> str:
    """Section 8: queries for which chunks were retrieved and none was cited."""
    rows = [
        (_scoped(result), _confidence(result)[0])
        for result in successful
        if is_citation_applicable(result) and not is_cited(result)
    ]
    return _section("Citation Missing", ("Query", "Confidence"), rows)


def _raw(results: Iterable[Result]) -> str:
    """Section 9: every query of the run, the failed ones included."""
    columns = ("ID", "Category", "Confidence", "Deflect", "Citation", "Halluc", "OOS", "Latency", "Pass")
    return _section("Raw Query Results", columns, [_raw_row(result) for result in results])


def _raw_row(result: Result) -> tuple[str, ...]:
    """Returns one query's line in the last table."""
    name, category = markdown(result.get("id")), markdown(result.get("category"))
    latency = f"{latency_ms(result)}ms"
    if failed(result):
        error = f"ERROR: {markdown(result.get('error'), EXCERPT_CHARS)}"
        return (name, category, "-", "-", "-", "-", "-", latency, error)
    is_oos = bool(result.get("is_oos"))
    return (
        name,
        category,
        _confidence(result)[0],
        "-" if is_oos else _word(_passed(result, "must_contain")),
        _word(_passed(result, "citation_present")) if is_citation_applicable(result) else "N/A",
        _word(_passed(result, "must_not_contain")),
        _word(_passed(result, "oos_handling")) if is_oos else "-",
        latency,
        _word(bool(result.get("overall_pass"))),
    )


def _section(title: str, columns: Sequence[str], rows: Rows, note: str = "") -> str:
    """Returns a heading, a note and a table, or "None" in the table's place."""
    parts = [f"## {title}"]
    if note:
        parts.append(note)
    if rows:
        lines = [columns, tuple("---" for _ in columns), *rows]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    else:
        parts.append(NONE)
    return "\n\n".join(parts)


def _query(result: Result) -> str:
    """Names a query: id and the start of its text."""
    return f"{markdown(result.get('id'))}: {markdown(result.get('query'), QUERY_CHARS)}"


def _scoped(result: Result) -> str:
    """Names a query, and says if it is out of scope."""
    return _query(result) + (" (OOS)" if result.get("is_oos") else "")


def _confidence(result: Result) -> tuple[str, str]:
    """Returns level and reason of the reply's confidence, `-` where it has none."""
    level, reason = confidence_of(result.get("response"))
    return markdown(level, EXCERPT_CHARS) or "-", markdown(reason, EXCERPT_CHARS) or "-"


def _share(percent: float, of: int) -> str:
    """Writes a percentage; of nothing it is N/A."""
    return f"{percent:.1f}%" if of else "N/A"


def _passed(result: Result, name: str) -> bool:
    """Tells whether one check passed."""
    return bool(check_of(result, name).get("pass"))


def _word(passed: bool) -> str:  # noqa: FBT001 - the one fact that is put into a word
    """Returns the verdict's word."""
    return "PASS" if passed else "FAIL"
