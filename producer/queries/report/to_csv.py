"""Writes the table of an evaluation run for spreadsheets: sixteen columns, one row per query."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from producer.queries.results import AskedQuery
from producer.report.cells import csv_lines
from shared.contracts.query_vocabulary import confidence_of

COLUMNS: Final = (
    "id",
    "category",
    "query",
    "is_oos",
    "confidence",
    "must_contain_pass",
    "must_contain_matched",
    "must_contain_total",
    "must_not_contain_pass",
    "expected_docs_pass",
    "citation_present",
    "citation_applicable",
    "oos_handling_pass",
    "latency_ms",
    "overall_pass",
    "error",
)
"""The columns of the document, in its order."""


def results_csv(results: Iterable[Mapping[str, Any]]) -> bytes:
    r"""Returns the file's content, UTF-8, header first.

    >>> results_csv([]).decode().split(",")[:3]
    ['id', 'category', 'query']
    """
    return csv_lines([COLUMNS, *(csv_row(AskedQuery(result)) for result in results)])


def csv_row(query: AskedQuery) -> list[Any]:
    """Returns the cells of one query."""
    keywords = query.check("must_contain")
    return [
        query.id,
        query.category,
        query.query,
        query.is_oos,
        confidence_of(query.response)[0],
        keywords.passed,
        keywords.number("matched"),
        keywords.number("total"),
        query.check("must_not_contain").passed,
        query.check("expected_docs").passed,
        query.check("citation_present").passed,
        query.is_citation_applicable,
        query.check("oos_handling").passed,
        query.latency_ms,
        query.passed,
        query.error,
    ]
