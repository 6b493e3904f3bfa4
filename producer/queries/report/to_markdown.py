"""Writes the report of an evaluation run in Markdown: the nine sections of the harness document.

Every section stands in every report, with "None" where there is nothing to list, so that a reader can tell
"no hallucinations" from "not looked at". All cells are escaped. The evaluation harness writes exactly these;
reports of `proctor` begin with the verdict and the queries that failed.
"""

from collections.abc import Sequence

from producer.queries.documents import Metrics
from producer.queries.report.sections import (
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
    Row,
    category_rows,
    metric_rows,
    not_applicable_note,
    vacuous_note,
)
from producer.queries.results import AskedQuery
from producer.report.cells import markdown, markdown_table
from shared.contracts.query_vocabulary import began_at


def report_markdown(
    results: Sequence[AskedQuery], metrics: Metrics, run_id: str, *, notes: Sequence[str] = ()
) -> str:
    """Returns the report.

    Args:
        results: results of queries, in the order in which they shall stand.
        metrics: see `metrics_of`.
        run_id: the run; its name contains when it began.
        notes: what a reader must know before trusting the numbers, such as a partial run.
    """
    head = (
        "# Evaluation Report",
        "",
        f"- **Date:** {began_at(run_id) or '-'}",
        f"- **Run ID:** {markdown(run_id)}",
        f"- **Queries:** {metrics.total_queries}",
        f"- **Successful:** {metrics.successful_queries}/{metrics.total_queries}",
        *(f"- **Note:** {markdown(note)}" for note in notes),
    )
    sections = Sections()
    for result in results:
        sections.add(result)
    return "\n\n".join(("\n".join(head), *sections.blocks(metrics))) + "\n"


class Sections:
    """Collects sections 2 to 9 while results go by: their rows are kept, as results may be large."""

    def __init__(self) -> None:
        self._rows: dict[Listing, list[Row]] = {listing: [] for listing in (*FAILURES, RAW)}
        self._vacuous = self._not_applicable = self._not_applicable_in_scope = 0

    def add(self, query: AskedQuery) -> None:
        """Takes one result; they stand in the order in which they come."""
        for listing, rows in self._rows.items():
            if (row := listing.row(query, markdown)) is not None:
                rows.append(row)
        self._vacuous += query.is_vacuous
        if not query.is_failed and not query.is_citation_applicable:
            self._not_applicable += 1
            self._not_applicable_in_scope += not query.is_oos

    def blocks(self, metrics: Metrics) -> list[str]:
        """Returns the sections in their order."""
        notes = {
            KEYWORDS: vacuous_note(self._vacuous),
            NOT_APPLICABLE: not_applicable_note(self._not_applicable_in_scope, self._not_applicable),
        }
        return [
            _section(METRICS, METRIC_COLUMNS, [row for _, row in metric_rows(metrics)]),
            _section(BY_CATEGORY, CATEGORY_COLUMNS, category_rows(metrics, markdown)),
            *(
                _section(listing.title, listing.columns, rows, notes.get(listing, ""))
                for listing, rows in self._rows.items()
            ),
        ]


def _section(title: str, columns: Sequence[str], rows: Sequence[Row], note: str = "") -> str:
    """Returns a heading, a note and a table, or "None" in the table's place."""
    parts = [f"## {title}"]
    if note:
        parts.append(note)
    parts.append(markdown_table(columns, rows) if rows else NONE)
    return "\n\n".join(parts)
