"""Writes a turns run as one HTML file: conversations, with what was decided beside each message."""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, Final

from producer.report.cells import Size
from producer.report.figures import ShownIn
from producer.report.html.head import facts_of, page_of, tables
from producer.report.html.rendering import fill, text_limit
from producer.report.html.viewer import Chip, Group, Head, Rows, begin, end, tools
from producer.text import plural, ranked
from producer.turns.documents import TurnsRun
from producer.turns.report.html_rows import (
    CHANGED,
    DISCARDED,
    FACETS,
    FROZEN,
    ORDERS,
    TEMPLATE,
    row_of,
)
from producer.turns.report.html_threads import Threads, first_to_read, item_of
from producer.turns.report.opened_rows import MESSAGE_CHARS
from producer.turns.report.run_report import run_report
from producer.turns.report.turn_records import SKIPPED, record_of, short
from shared.runs import RunInfo, TurnRow

FOLDER: Final = "turns/report"
MOST_TURNS: Final = 100_000
"""Turns on the page: a browser opens so many in a second or two."""
THREADS_AT_ONCE: Final = 100
"""Of the list of threads, that stand together as text until they are scrolled to."""
CHIPS: Final = (
    Chip("decision", "must", "must"),
    Chip("decision", "should", "should"),
    Chip("decision", "skip", "skip"),
    Chip("decision", SKIPPED, SKIPPED),
    Chip("freeze", FROZEN, "❄︎ frozen"),
    Chip("summary", CHANGED, "changed"),
    Chip("summary", DISCARDED, "discarded"),
    Chip("show", "errors", "failed"),
)
SORTS: Final = (("index", "run order"), ("-affect", "strongest affect"), ("rule", "rule"))


class TurnsHtmlReport:
    """Keeps what the page shows of the rows on disk, and writes it when all are known.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info = out, info
        self._threads = Threads()
        self._chars = min(MESSAGE_CHARS, text_limit(info.total))
        self._seen = 0

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Takes some rows."""
        free = max(0, MOST_TURNS - self._seen)
        self._seen += len(rows)
        for row in rows[:free]:
            self._threads.add(record_of(self._info.run, row, self._chars))

    def end(self, document: TurnsRun) -> None:
        """Writes the page."""
        out, threads = self._out, self._threads
        order = threads.ranked()
        looks = [first_to_read(threads.threads, order), self._left()]
        frozen = sum(thread.freezes > 0 for thread in threads.threads)
        out.write(_opening(document, self._info, looks, frozen_threads=frozen))
        rows, firsts = self._rows(order)
        codes = [
            Chip("code", short(code, Size.NAME), code, "e") for code, _ in ranked(document.summary.errors)
        ]
        codes = [chip for chip in codes if rows.answers("code")[chip.value]]
        out.write(
            tools(
                rows,
                nouns=("turn", "turns"),
                search="Search messages and reasons",
                chips=CHIPS,
                choices=[("rule", "Rule")],
                orders=SORTS,
                first="by thread",
                reasons=codes,
                lead="failed turns:",
            )
        )
        if len(rows):
            out.write(fill(TEMPLATE, "legend"))
        has_times = any(thread.first_at for thread in threads.threads)
        has_affect = any(thread.course.is_measured for thread in threads.threads)
        out.write(fill(TEMPLATE, "open", has_times, has_affect))
        for piece in rows.pieces(Head(1, label="Turns by thread")):
            out.write(piece)
        self._write_threads(order, firsts)
        out.write(fill(TEMPLATE, "close"))
        out.writelines(_below(document, self._info))

    def _rows(self, order: Sequence[int]) -> tuple[Rows, dict[int, str]]:
        """Makes the rows of all turns, and finds the first one of each thread."""
        threads = self._threads.threads
        ranks = {number: rank for rank, number in enumerate(order)}
        groups = [Group("turn", "turns", threads[at].name) for at in order]
        rows, firsts = Rows(facets=FACETS, orders=ORDERS, groups=groups), dict[int, str]()
        for number, step in self._threads.steps():
            rank = ranks[number]
            firsts.setdefault(number, item_of(step.record))
            rows.add(row_of(self._info.run, step, threads[number], f"t{rank + 1}"), group=rank)
        return rows, firsts

    def _write_threads(self, order: Sequence[int], firsts: Mapping[int, str]) -> None:
        """Writes the list of threads; the later ones as text that becomes elements when it is scrolled to."""
        if len(order) < 2:  # noqa: PLR2004 - one thread is no list
            return
        out = self._out
        out.write(
            fill(TEMPLATE, "threads_begin", f"{plural(len(order), 'thread')}, {_sorted_by(self._threads)}")
        )
        for rank, number in enumerate(order):
            thread, place = self._threads.threads[number], rank % THREADS_AT_ONCE
            shown = {
                "first": firsts[number],
                "place": f"t{rank + 1}",
                "name": thread.name,
                "errors": thread.errors,
                "freezes": thread.freezes,
                "turns": plural(thread.turns, "turn"),
                "strip": thread.small(),
            }
            is_text = rank >= THREADS_AT_ONCE
            if is_text and not place:
                out.write(b"<noscript>")
            out.write(fill(TEMPLATE, "thread", shown))
            if is_text and (place == THREADS_AT_ONCE - 1 or rank == len(order) - 1):
                out.write(b"</noscript>")
        out.write(fill(TEMPLATE, "threads_end"))

    def _left(self) -> str:
        """Returns what the page leaves out."""
        left = self._seen - len(self._threads)
        return f"The first {MOST_TURNS:,} turns; {plural(left, 'turn')} left out." if left > 0 else ""


def _sorted_by(threads: Threads) -> str:
    """Returns how threads are sorted."""
    found = threads.threads
    words = ["failed first"] if any(thread.errors for thread in found) else []
    if any(thread.freezes for thread in found):
        words.append("most freezes first")
    return ", ".join(words) or "in run order"


def _opening(document: TurnsRun, info: RunInfo, looks: Sequence[str], *, frozen_threads: int) -> bytes:
    """Writes a page up to its verdict.

    Args:
        document: the run's.
        info: the run.
        looks: sentences on what to look at.
        frozen_threads: threads with a freeze.
    """
    threads = plural(document.summary.threads, "thread")
    peaks = f"Peaks froze turns in {frozen_threads:,} of {threads}." if frozen_threads else ""
    return begin(page_of(run_report(document).noting([peaks, *looks]), info, FOLDER))


def _below(document: TurnsRun, info: RunInfo) -> Iterator[bytes]:
    """Yields what stands below the rows: tables, and what was run with which settings."""
    report, summary = run_report(document), document.summary
    settings = [
        ("threads belong to", "this run alone" if info.namespace == info.run else info.namespace),
        ("summary policy", summary.summary_policy),
        ("model", summary.model or ""),
        ("asked for", summary.live or ""),
    ]
    yield tables(report.tables_in(ShownIn.PAGE))
    yield end(facts_of(report, info, settings), folder=FOLDER, row="turn", cell="")
