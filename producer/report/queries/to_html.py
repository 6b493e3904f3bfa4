"""Writes a queries run as one HTML file: the nine sections of the document, and every query in detail."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

from producer.report.cells import plain
from producer.report.html.page import chunked, end, fill, text_limit
from producer.report.html.spool import Spool
from producer.report.queries.check_reasons import CheckCounts
from producer.report.queries.html_query import element_id, told
from producer.report.queries.html_summary import TEMPLATE, facts_of, opening, summary_of
from producer.report.queries.opened_rows import OpenedQuery, opened
from producer.report.queries.sections import (
    FAILURES,
    KEYWORDS,
    NONE,
    NOT_APPLICABLE,
    RAW,
    Listing,
    not_applicable_note,
    vacuous_note,
)
from shared.codecs.item_rows import ItemRow
from shared.runs import RunInfo

MOST_QUERIES: Final = 20_000
"""Queries that a page shows in detail: a browser opens so many without pain."""
MOST_LISTED: Final = 500
"""Rows of one section of failures; all are among the details."""


class QueriesHtmlReport:
    """Keeps what the page shows of the rows on disk, and writes it behind the summary.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info = out, info
        self._limit = text_limit(min(info.total, MOST_QUERIES))
        self._checks = CheckCounts()
        self._listed = {listing.title: Spool() for listing in FAILURES}
        self._kept = {False: Spool(), True: Spool()}
        self._table = Spool()
        self._numbers = Counter[str]()
        self._outcomes, self._categories = Counter[str](), Counter[str]()

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for query in opened(rows):
            shown = told(query, self._limit)
            is_passed = shown["passed"]
            self._outcomes[shown["outcome"]] += 1
            self._categories[shown["category"]] += 1
            if len(self._kept[is_passed]) < MOST_QUERIES:
                self._kept[is_passed].add(0, fill(TEMPLATE, "query", shown))
            self._list(query)

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the page."""
        for piece in self._pieces(document):
            self._out.write(piece)

    def _list(self, query: OpenedQuery) -> None:
        """Puts a query into the sections that it belongs to."""
        result, place = query.result, element_id(query.row.index)
        if result is None:
            return
        self._checks.add(result)
        for listing in FAILURES:
            if (cells := listing.row(result, plain)) is not None:
                self._numbers[listing.title] += 1
                if len(self._listed[listing.title]) < MOST_LISTED:
                    self._listed[listing.title].add(0, fill(TEMPLATE, "listed", cells, place))
        if len(self._table) < MOST_QUERIES:
            self._table.add(0, fill(TEMPLATE, "row", RAW.row(query.shown, plain), place))

    def _pieces(self, document: Mapping[str, Any]) -> Iterator[bytes]:
        """Yields the page from top to bottom."""
        summary = document["summary"]
        left_out = summary["metrics"]["citation_na_queries"]
        notes = {
            KEYWORDS.title: vacuous_note(summary["vacuous_deflections"]),
            NOT_APPLICABLE.title: not_applicable_note(left_out, self._numbers[NOT_APPLICABLE.title]),
        }
        yield opening(document, self._info)
        yield summary_of(document, self._checks)
        for at, listing in enumerate(FAILURES):
            yield from self._section(listing, notes.get(listing.title, ""), f"s{at + 4}")
        yield from self._details()
        yield fill(TEMPLATE, "table", RAW.columns)
        yield from _drained(self._table)
        yield fill(TEMPLATE, "table_end")
        yield end(facts_of(document, self._info))

    def _section(self, listing: Listing, note: str, element: str) -> Iterator[bytes]:
        """Yields one of the sections of failures."""
        number, spool = self._numbers[listing.title], self._listed[listing.title]
        yield fill(TEMPLATE, "listing", listing.title, listing.columns, number, note, element)
        left = number - len(spool)
        yield from _drained(spool)
        yield fill(TEMPLATE, "listing_end", number, left, NONE)

    def _details(self) -> Iterator[bytes]:
        """Yields every query in detail, those that did not pass first."""
        outcomes = [(name, f"{name} ({number:,})") for name, number in self._outcomes.most_common()]
        numbers = {True: self._outcomes["passed"], False: self._outcomes.total() - self._outcomes["passed"]}
        left, room = self._outcomes.total() - MOST_QUERIES, MOST_QUERIES
        note = _note(self._limit, left, self._info.run)
        yield fill(TEMPLATE, "queries", RAW.title, note, outcomes, sorted(self._categories))
        for is_passed, name in ((False, "Failures"), (True, "Passed")):
            yield fill(TEMPLATE, "list", name, numbers[is_passed])
            yield from chunked(_drained(self._kept[is_passed], room))
            yield fill(TEMPLATE, "list_end")
            room -= min(room, numbers[is_passed])


def _drained(spool: Spool, most: int | None = None) -> Iterator[bytes]:
    """Yields what was kept, and gives the disk back."""
    yield from (piece for _, piece in spool.pieces(most))
    spool.close()


def _note(limit: int, left: int, run: str) -> tuple[str, str]:
    """Says what the page leaves out, and the command that has all of it.

    >>> _note(1000, 5, "r1")[0]
    'Texts are cut after 1,000 characters, 5 queries left out; all of it:'
    """
    told = f"Texts are cut after {limit:,} characters" + f", {left:,} queries left out" * (left > 0)
    return f"{told}; all of it:", f"proctor results {run} --format jsonl"
