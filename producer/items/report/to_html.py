"""Writes a run of single items as one HTML file: the verdict, outcomes and latency, and one row an item."""

import json
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple

from producer.aggregate.statistics import wilson
from producer.item_ids import item_id
from producer.items.documents import ItemsRun
from producer.items.report.opened_rows import COLUMNS, OpenedItem, cells_of, opened
from producer.items.report.run_report import run_report
from producer.report.cells import Size, plain
from producer.report.html.head import facts_of, page_of
from producer.report.html.rendering import Text, cut, fill, text_limit
from producer.report.html.viewer import (
    WORST_FIRST,
    Chip,
    Fact,
    Group,
    Head,
    Letter,
    Metric,
    PageRow,
    Rows,
    begin,
    end,
    strip,
    tools,
)
from producer.text import cost, duration, latency, plural
from shared.codecs.item_rows import CACHED, ItemRow
from shared.names import Outcome
from shared.runs import RunInfo

TEMPLATE: Final = "items/report/page.html.j2"
FOLDER: Final = "items/report"
FAILED: Final = "failed"
"""The reason of an item that failed: its kind has no other."""


class _Shown(NamedTuple):
    """What the page shows of an item."""

    id: str
    """Of its element."""
    name: str
    letter: Letter
    word: str
    why: str
    reason: str
    """Under which it is listed; empty where nothing went wrong."""
    figures: Sequence[str]
    gist: str
    shown: str
    """The other columns, or the start of the result."""
    code: str
    error: Text | None
    columns: Sequence[tuple[str, str]]
    result: Text | None


class ItemsHtmlReport:
    """Keeps the rows on disk, and writes them behind verdict and figures.

    Args:
        out: where to.
        info: the run.
        columns: keys of a result that follow `COLUMNS`.
    """

    def __init__(self, out: BinaryIO, info: RunInfo, columns: Sequence[str]) -> None:
        self._out, self._info, self._noun, self._columns = out, info, info.kind.noun, columns
        many = plural(2, self._noun).partition(" ")[2]
        self._nouns = (self._noun, many)
        ends = ("that failed", "without a result", "that never ran", "that passed", "that ran")
        groups = [Group(f"{self._noun} {end}", f"{many} {end}") for end in ends]
        self._rows = Rows(facets=("reason",), orders=("latency", "number"), groups=groups)
        self._limit = text_limit(info.total)

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for item in opened(rows):
            row, shown = item.row, self._shown(item)
            reasons = [shown.reason] if shown.reason else []
            orders = {"latency": row.latency_ms, "number": row.index}
            html = fill(TEMPLATE, "row", shown)
            is_decided = row.outcome is Outcome.DECIDED  # which is neither good nor bad
            group = len(WORST_FIRST) if is_decided else WORST_FIRST.index(shown.letter)
            self._rows.add(PageRow(shown.id, html, shown.letter, {"reason": reasons}, orders), group=group)

    def end(self, document: ItemsRun) -> None:
        """Writes the page."""
        for piece in self._pieces(document):
            self._out.write(piece)

    def _pieces(self, document: ItemsRun) -> Iterator[bytes]:
        """Yields the page from top to bottom."""
        report, info = run_report(document), self._info
        yield begin(page_of(report, info, FOLDER))
        yield strip(list(_metrics(document)))
        reasons = [
            Chip("reason", name, name, "f" if name == FAILED else "e")
            for name in self._rows.answers("reason")
        ]
        yield tools(
            self._rows,
            nouns=self._nouns,
            search="Search results and reasons",
            chips=[Chip("show", "failed", "Failed"), Chip("show", "errors", "Errors")],
            orders=[("-latency", "slowest first"), ("number", "run order")],
            reasons=reasons,
        )
        yield from self._rows.pieces(Head(columns=1, label=self._nouns[1].capitalize()))
        seconds = document.summary.duration_s
        took = "" if seconds is None else duration(seconds)
        yield end(facts_of(report, info, [("took", took)]), folder=FOLDER, row=self._noun, cell="")

    def _shown(self, item: OpenedItem) -> _Shown:
        """Returns what the page shows of an item."""
        row, result = item.row, item.result
        kind = self._info.kind
        values = zip(self._columns, cells_of(kind, item, self._columns)[len(COLUMNS) :], strict=True)
        columns = [(name, plain(str(value), Size.REASON)) for name, value in values if value != ""]
        text = "" if result is None else json.dumps(result, ensure_ascii=False)
        rest = ", ".join(f"{name} {value}" for name, value in columns[1:])
        figures = [f"tried {row.attempts:,} times"] if row.attempts > 1 else []
        if CACHED in row.code:
            figures.append("from the cache")
        figures += [] if row.latency_ms is None else [latency(row.latency_ms)]
        figures += [] if row.cost_usd is None else [cost(row.cost_usd)]
        why = plain(item.message or item.code, Size.REASON)
        reason = plain(why, Size.LINE) or (FAILED if row.outcome is Outcome.FAILED else "")
        return _Shown(
            id=f"i{row.index + 1}",
            name=item_id(kind, row.index),
            letter=Letter.of(row.outcome),
            word=row.outcome.value,
            why=why,
            reason=reason,
            figures=figures,
            gist=columns[0][1] if columns else "",
            shown=rest or plain(text, Size.REASON),
            code=item.code,
            error=cut(item.message, self._limit) if item.code else None,
            columns=columns,
            result=cut(text, self._limit) if text else None,
        )


def _metrics(document: ItemsRun) -> Iterator[Metric]:
    """Yields the cards of the strip: what passed, of those with a verdict and of all; and latencies."""
    counts, summary = document.counts, document.summary
    judged = counts.answered
    if judged:
        rate = wilson(counts.passed, judged)
        facts = [Fact(f"{counts.passed:,} of {judged:,} with a result")]
        if counts.failed:
            facts.append(Fact(f"✗ {counts.failed:,} failed", tone="f"))
        if counts.error:
            facts.append(Fact(f"! {counts.error:,} without", tone="e"))
        yield Metric("Passed", "", facts=facts).rated(rate.rounded())
    else:
        number = counts.decided
        facts = [Fact(f"of {counts.total:,}")]
        yield Metric("With a result", f"{number:,}" if number else "none", facts=facts)
    if times := summary.latency_ms:
        facts = [Fact(f"P95 {latency(times.p95)}, at most {latency(times.max)}")]
        facts.append(Fact(f"n = {summary.latency_n:,}"))
        yield Metric("Latency, P50", latency(times.p50), facts=facts)
    if summary.cost_usd:
        yield Metric("Cost", cost(summary.cost_usd))
