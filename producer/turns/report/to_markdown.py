"""Lists in Markdown which turns went wrong, and the first turns."""

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final

from producer.report.cells import Size, markdown, markdown_table
from producer.report.to_markdown import markdown_report
from producer.turns.documents import TurnsRun
from producer.turns.report.opened_rows import OpenedRow, message_of, opened
from producer.turns.report.run_report import run_report
from shared.runs import RunInfo, TurnRow

ERRORS_SHOWN: Final = 50
"""Turns in error that are listed; `proctor results` shows all."""
TURNS_SHOWN: Final = 50
"""First turns that are listed."""
_TURNS: Final = ("turn", "thread", "message", "decision", "rule", "freeze", "summary", "why")
_ERRORS: Final = ("turn", "thread", "message", "code", "error")
_TEXT: Final = "text"
"""A last column of both, where rows come with their input."""


class MarkdownReport:
    """Keeps the few rows that it shows and writes everything at the end.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info = out, info
        self._first = list[OpenedRow]()
        self._bad = list[OpenedRow]()

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Keeps the rows worth showing."""
        self._first += opened(rows[: TURNS_SHOWN - len(self._first)])
        missing = ERRORS_SHOWN - len(self._bad)
        if missing:
            self._bad += opened([row for row in rows if row.code[:1] == "x"][:missing])

    def end(self, document: TurnsRun) -> None:
        """Writes the report."""
        self._out.write(markdown_report(run_report(document), self._items(document)))

    def _items(self, document: TurnsRun) -> Iterator[str]:
        """Yields the turns in error, and the first turns."""
        counts, run = document.counts, self._info.run
        if self._bad:
            yield "## Turns in error"
            yield _turns_table(_ERRORS, self._bad, _error_cells)
            yield from _rest(counts.error - len(self._bad), "turns in error", run)
        if self._first:
            yield "## Turns"
            yield _turns_table(_TURNS, self._first, _turn_cells)
            listed = counts.decided + counts.error + counts.skipped
            yield from _rest(listed - len(self._first), "turns", run)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Writes a table with escaped cells."""
    return markdown_table(columns, ([markdown(cell, Size.LINE) for cell in row] for row in rows))


def _turns_table(
    columns: Sequence[str], rows: Sequence[OpenedRow], cells_of: Callable[[OpenedRow], list[str]]
) -> str:
    """Writes a table of turns, with their messages where those are known."""
    if not any(row.row.payload for row in rows):
        return _table(columns, list(map(cells_of, rows)))
    return _table((*columns, _TEXT), [[*cells_of(row), message_of(row.row)] for row in rows])


def _turn_cells(row: OpenedRow) -> list[str]:
    """Returns the cells of one turn."""
    thread, message, outcome, decision, *more = row.cells
    return [row.item_id, thread, message, decision or outcome, *more]


def _error_cells(row: OpenedRow) -> list[str]:
    """Returns the cells of one turn that ended in error."""
    result, error = row.result, row.error
    names = [result.thread_id, result.message_id] if result else ["", ""]
    return [row.item_id, *names, *([error.code, error.message] if error else ["", ""])]


def _rest(number: int, noun: str, run: str) -> Iterator[str]:
    """Yields what is not listed, and where it is."""
    if number > 0:
        yield f"{number:,} more {noun}: `proctor results {run}`"
