"""Writes the table of an evaluation run for spreadsheets: sixteen columns, one row per query."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from producer.aggregate.queries import check_of, is_citation_applicable, latency_ms
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
    return csv_lines([COLUMNS, *map(csv_row, results)])


def csv_row(result: Mapping[str, Any]) -> list[Any]:
    """Returns the cells of one query."""
    keywords = check_of(result, "must_contain")
    return [
        result.get("id"),
        result.get("category"),
        result.get("query"),
        bool(result.get("is_oos")),
        confidence_of(result.get("response"))[0],
        _verdict(result, "must_contain"),
        keywords.get("matched", 0),
        keywords.get("total", 0),
        _verdict(result, "must_not_contain"),
        _verdict(result, "expected_docs"),
        _verdict(result, "citation_present"),
        is_citation_applicable(result),
        _verdict(result, "oos_handling"),
        latency_ms(result),
        bool(result.get("overall_pass")),
        result.get("error"),
    ]


def _verdict(result: Mapping[str, Any], name: str) -> bool:
    """Returns whether one check passed."""
    return bool(check_of(result, name).get("pass"))
