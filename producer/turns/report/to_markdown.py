"""Writes a turns run as Markdown for people: numbers first, then what went wrong, then the first turns."""

from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, Final

from producer.report.cells import Size, markdown, markdown_table
from producer.report.run_verdict import verdict_with
from producer.turns.documents import TurnsRun
from producer.turns.report.opened_rows import OpenedRow, message_of, opened
from producer.turns.report.wording import RULES, call_remarks, headline, outcome, remarks
from producer.turns.totals import ranked, share
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
        self._out.write("\n".join(self._lines(document)).encode() + b"\n")

    def _lines(self, document: TurnsRun) -> list[str]:
        """Puts the parts of the report together."""
        summary, counts = document.summary, document.counts
        decided = counts.decided
        rules = {f"{rule} {words}": summary.rules[rule] for rule, words in RULES.items()}
        verdict = verdict_with(document, outcome(document))
        lines = [f"# {markdown(str(verdict))}", ""]
        if verdict.why:
            lines += [markdown(" ".join(verdict.why)), ""]
        source = f" of {markdown(self._info.title, Size.LINE)}" if self._info.title else ""
        lines += [f"Run {markdown(self._info.run)}{source}, {headline(document)}.", ""]
        lines += _table(("decision", "turns", "share"), _shares(summary.decisions, decided))
        lines += _table(("rule", "turns", "share"), _shares(rules, decided))
        lines += _table(("also", "turns"), [list(remark) for remark in remarks(document)])
        if calls := call_remarks(document):
            model = [("model", summary.model or ""), ("asked for", summary.live or "")]
            lines += _table(("calls", ""), [list(row) for row in (*model, *calls)])
        if self._bad:
            errors = [[code, f"{number:,}"] for code, number in ranked(summary.errors)]
            lines += ["## Errors", "", *_table(("code", "turns"), errors)]
            lines += _turns_table(_ERRORS, self._bad, _error_cells)
            lines += _rest(counts.error - len(self._bad), "turns in error", self._info.run)
        if self._first:
            lines += ["## Turns", "", *_turns_table(_TURNS, self._first, _turn_cells)]
            listed = counts.decided + counts.error + counts.skipped
            lines += _rest(listed - len(self._first), "turns", self._info.run)
        return lines


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Writes a table with escaped cells, and a blank line after it."""
    return [markdown_table(columns, ([markdown(cell, Size.LINE) for cell in row] for row in rows)), ""]


def _turns_table(
    columns: Sequence[str], rows: Sequence[OpenedRow], cells_of: Callable[[OpenedRow], list[str]]
) -> list[str]:
    """Writes a table of turns, with their messages where those are known."""
    if not any(row.row.payload for row in rows):
        return _table(columns, list(map(cells_of, rows)))
    return _table((*columns, _TEXT), [[*cells_of(row), message_of(row.row)] for row in rows])


def _shares(counts: Mapping[str, int], whole: int) -> list[list[str]]:
    """Returns counts with their share."""
    return [[name, f"{count:,}", f"{share(count, whole):.1f}%"] for name, count in counts.items()]


def _turn_cells(row: OpenedRow) -> list[str]:
    """Returns the cells of one turn."""
    result = row.result
    if result is None:
        return [row.item_id, "", "", row.outcome.value, "", "", "", ""]
    return [
        row.item_id,
        result.thread_id,
        result.message_id,
        result.decision or row.outcome.value,
        str(result.rule or ""),
        "frozen" if result.peak_guardrail_active else "",
        "updated" if result.summary_updated else "",
        result.reason,
    ]


def _error_cells(row: OpenedRow) -> list[str]:
    """Returns the cells of one turn that ended in error."""
    result, error = row.result, row.error
    names = [result.thread_id, result.message_id] if result else ["", ""]
    return [row.item_id, *names, *([error.code, error.message] if error else ["", ""])]


def _rest(number: int, noun: str, run: str) -> list[str]:
    """Returns what is not listed, and where it is."""
    if number <= 0:
        return []
    return [f"{number:,} more {noun}: `proctor results {run}`.", ""]
