"""Writes a queries run as one HTML file: the verdict, the metrics, one row a query, and tables below."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

from producer.queries.documents import QueriesRun
from producer.queries.report.check_reasons import REASON_OF_CHECK, CheckCounts
from producer.queries.report.html_query import (
    NEVER_SENT,
    briefly,
    shown_query,
)
from producer.queries.report.html_summary import (
    TEMPLATE,
    below,
    heads,
    legend,
    metrics_of,
    opening,
)
from producer.queries.report.opened_rows import opened
from producer.report.html.rendering import fill, text_limit
from producer.report.html.viewer import (
    WORST_FIRST,
    Chip,
    Group,
    Head,
    Letter,
    PageRow,
    Rows,
    begin,
    strip,
    tools,
)
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.runs import RunInfo

MOST_CHIPS: Final = 6
"""Traits of queries that are chips; more are a list to choose from, as categories always are."""
MOST_WHOLE: Final = 20_000
"""Queries of which the page has everything; in a larger run passed ones are shown briefly."""
GROUPS: Final = (
    Group("query that failed", "queries that failed"),
    Group("query without an answer", "queries without an answer"),
    Group("query that was never sent", "queries that were never sent"),
    Group("query that passed", "queries that passed"),
)
"""In the order of `WORST_FIRST`."""


class QueriesHtmlReport:
    """Keeps the rows on disk, and writes them behind verdict and metrics.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info = out, info
        self._run = QueryRun.from_snapshot(info.snapshot)
        self._limit = text_limit(info.total)
        self._rows = Rows(facets=("reason", "category", "tag"), orders=("latency", "number"), groups=GROUPS)
        self._whole = 0
        self._checks = CheckCounts()
        self._times, self._missed = Counter[int](), Counter[str]()
        self._measured_ms, self._measured = 0, 0

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for query in opened(rows):
            shown = shown_query(query, self._info, self._run, self._limit)
            if self._info.total > MOST_WHOLE and (shown.letter is Letter.PASSED or self._whole >= MOST_WHOLE):
                shown = briefly(shown)
            else:
                self._whole += 1
            orders = {"latency": shown.latency, "number": query.row.index}
            html = fill(TEMPLATE, "row", shown.filled)
            row = PageRow(shown.filled["id"], html, shown.letter, shown.facets, orders)
            self._rows.add(row, group=WORST_FIRST.index(shown.letter))
            self._missed[shown.facets["category"][0]] += shown.letter is not Letter.PASSED
            if query.result is not None and not query.code:
                self._checks.add(query.result)
                self._times[query.result.measured_ms] += 1
                self._measured += shown.latency is not None
                self._measured_ms += shown.latency or 0

    def end(self, document: QueriesRun) -> None:
        """Writes the page."""
        for piece in self._pieces(document):
            self._out.write(piece)

    def _pieces(self, document: QueriesRun) -> Iterator[bytes]:
        """Yields the page from top to bottom."""
        yield begin(opening(document, self._info, is_brief=self._whole < len(self._rows)))
        measured = self._measured_ms / self._measured if self._measured else None
        yield strip(metrics_of(document, measured))
        yield self._tools(document)
        pieces = self._rows.pieces(Head(columns=1, label="Queries"))
        yield next(pieces)
        yield heads(self._checks)
        yield from pieces
        yield legend()
        yield from below(document, self._info, self._checks, self._missed, self._times)

    def _tools(self, document: QueriesRun) -> bytes:
        """Writes search, filters and reasons."""
        chips = [Chip("show", "failed", "Failed"), Chip("show", "errors", "Errors")]
        choices, traits = [("category", "Category")], sorted(filter(None, self._rows.having("tag")))
        if len(traits) > MOST_CHIPS:
            choices.append(("tag", "Trait"))
        else:
            chips += [Chip("tag", name, name) for name in traits]
        counts = document.counts
        lead = [f"{counts.failed:,} failed"] if counts.failed else []
        if counts.error:
            lead.append(f"{counts.error:,} without an answer")
        if counts.skipped:
            lead.append(f"{counts.skipped:,} never sent")
        of_checks = set(REASON_OF_CHECK.values())
        reasons = [
            Chip("reason", name, name, "f" if name in of_checks else "" if name == NEVER_SENT else "e")
            for name in self._rows.answers("reason")
        ]
        return tools(
            self._rows,
            nouns=("query", "queries"),
            search="Search queries, answers, sources, reasons",
            chips=chips,
            choices=choices,
            orders=[("-latency", "slowest first"), ("number", "run order")],
            reasons=sorted(reasons, key=lambda chip: "fe".find(chip.tone or "-") % 3),
            lead=f"{', '.join(lead)}:",
        )
