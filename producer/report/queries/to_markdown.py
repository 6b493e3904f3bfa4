"""Writes the report of an evaluation run in Markdown: the nine sections of the harness document.

Every section stands in every report, with "None" where there is nothing to list, so that a reader can tell
"no hallucinations" from "not looked at". All cells are escaped. The evaluation harness writes exactly these;
reports of `proctor` begin with the verdict and the queries that failed (`verdict_markdown`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from producer.aggregate.queries import is_citation_applicable, is_vacuous
from producer.report.cells import markdown
from producer.report.queries.sections import (
    BY_CATEGORY,
    CATEGORY_COLUMNS,
    FAILURES,
    KEYWORDS,
    METRIC_COLUMNS,
    METRICS,
    NONE,
    NOT_APPLICABLE,
    RAW,
    Listing,
    Result,
    Row,
    category_rows,
    metric_rows,
    not_applicable_note,
    vacuous_note,
)
from producer.report.run_verdict import Verdict
from shared.contracts.query_vocabulary import began_at, failed


def report_markdown(
    results: Sequence[Result], metrics: Mapping[str, Any], run_id: str, *, notes: Sequence[str] = ()
) -> str:
    """Returns the report.

    Args:
        results: results of queries, in the order in which they shall stand.
        metrics: see `calculate_metrics`.
        run_id: the run; its name contains when it began.
        notes: what a reader must know before trusting the numbers, such as a partial run.
    """
    head = ("# Evaluation Report", *_facts(metrics, run_id, notes))
    return "\n\n".join(("\n".join(head), *_sections(results, metrics))) + "\n"


def verdict_markdown(
    verdict: Verdict,
    failures: Sequence[str],
    results: Sequence[Result],
    metrics: Mapping[str, Any],
    *,
    run_id: str,
    notes: Sequence[str] = (),
) -> str:
    """Returns the report whose heading ends with the verdict; the failed queries follow, if there are any.

    Args:
        verdict: of the run.
        failures: blocks of Markdown about what failed; empty for none.
        results: results of queries, in the order in which they shall stand.
        metrics: see `calculate_metrics`.
        run_id: the run.
        notes: what a reader must know before trusting the numbers, such as a partial run.
    """
    why = markdown(" ".join(verdict.why))
    blocks = [f"# Evaluation Report: {markdown(str(verdict))}", *filter(None, [why])]
    blocks.append("\n".join(_facts(metrics, run_id, notes)[1:]))
    if failures:
        blocks += ["## What failed", *failures]
    return "\n\n".join((*blocks, *_sections(results, metrics))) + "\n"


def table(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Writes a table of cells that are safe."""
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _sections(results: Sequence[Result], metrics: Mapping[str, Any]) -> list[str]:
    """Sections 2 to 9."""
    notes = {
        KEYWORDS.title: vacuous_note(sum(map(is_vacuous, results))),
        NOT_APPLICABLE.title: _not_applicable(results),
    }
    return [
        _section(METRICS, METRIC_COLUMNS, [row for _, row in metric_rows(metrics)]),
        _section(BY_CATEGORY, CATEGORY_COLUMNS, category_rows(metrics, markdown)),
        *(_listed(listing, results, notes.get(listing.title, "")) for listing in (*FAILURES, RAW)),
    ]


def _facts(metrics: Mapping[str, Any], run_id: str, notes: Sequence[str]) -> list[str]:
    """Section 1 below its heading: what was run, when, and how much of it can be judged."""
    return [
        "",
        f"- **Date:** {began_at(run_id) or '-'}",
        f"- **Run ID:** {markdown(run_id)}",
        f"- **Queries:** {metrics['total_queries']}",
        f"- **Successful:** {metrics['successful_queries']}/{metrics['total_queries']}",
        *(f"- **Note:** {markdown(note)}" for note in notes),
    ]


def _not_applicable(results: Sequence[Result]) -> str:
    """Returns how many queries citation accuracy leaves out."""
    found = [result for result in results if not failed(result) and not is_citation_applicable(result)]
    return not_applicable_note(sum(not result.get("is_oos") for result in found), len(found))


def _listed(listing: Listing, results: Sequence[Result], note: str) -> str:
    """Writes a section with a row for each result that it is about."""
    rows = [row for result in results if (row := listing.row(result, markdown)) is not None]
    return _section(listing.title, listing.columns, rows, note)


def _section(title: str, columns: Sequence[str], rows: Sequence[Row], note: str = "") -> str:
    """Returns a heading, a note and a table, or "None" in the table's place."""
    parts = [f"## {title}"]
    if note:
        parts.append(note)
    if rows:
        parts.append(table(columns, rows))
    else:
        parts.append(NONE)
    return "\n\n".join(parts)
