"""Writes a turns run as one HTML file that needs nothing else: no network, hostile text inert."""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Final

from producer.report.html.page import end, fill
from producer.report.html.spool import Spool
from producer.report.turns.html_summary import (
    TEMPLATE,
    Course,
    errors_of,
    facts_of,
    marks,
    opening,
    summary_of,
)
from producer.report.turns.html_threads import SKIPPED, Threads, bad_rows, shown_of
from producer.report.turns.opened_rows import opened
from producer.report.turns.wording import RULES
from producer.text import plural
from shared.runs import RunInfo, TurnRow

MOST_TURNS: Final = 20_000
"""Turns in the table: a browser opens so many without pain."""
MOST_ERRORS: Final = 100
"""Turns in error that are listed first, wherever in the run they are."""
DECISIONS: Final = ("must", "should", "skip", "error", SKIPPED)


class TurnsHtmlReport:
    """Keeps what the page shows of the rows on disk, and writes it behind the summary.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info = out, info
        self._course, self._threads = Course(info.total), Threads(info.run)
        self._table = Spool()
        self._bad = list[Mapping[str, Any]]()
        self._seen = 0

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Takes some rows."""
        self._course.add(rows)
        room = max(0, MOST_TURNS - self._seen)
        self._seen += len(rows)
        for turn in opened(rows[:room]):
            shown = shown_of(turn)
            place = self._threads.add(turn, shown)
            self._table.add(0, fill(TEMPLATE, "turn", {**shown, "place": place}))
        if missing := MOST_ERRORS - len(self._bad):
            bad = [row for row in rows if row.code[:1] == "x"]
            self._bad += map(shown_of, opened(bad[:missing]))

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the page."""
        out, summary = self._out, document["summary"]
        left = self._seen - len(self._table)
        out.write(opening(document, self._info))
        if self._bad:
            out.write(errors_of(document, len(self._bad)))
            out.write(bad_rows(self._bad))
        out.write(summary_of(document, self._course))
        note = self._threads.note(summary["threads"], is_cut=left > 0)
        out.write(fill(TEMPLATE, "threads", note, marks()))
        for piece in self._threads.pieces():
            out.write(piece)
        rules = [(rule, f"{rule} {words}") for rule, words in RULES.items()]
        choices = (DECISIONS, rules, self._threads.choices())
        out.write(fill(TEMPLATE, "turns", _note(left, self._info.run), *choices))
        for _, piece in self._table.pieces():
            out.write(piece)
        self._table.close()
        out.write(fill(TEMPLATE, "turns_end"))
        out.write(end(facts_of(document, self._info)))


def _note(left: int, run: str) -> tuple[str, str]:
    """Says what the table leaves out, and the command that has all of it.

    >>> _note(5, "r1")[0]
    'The first 20,000 turns; 5 turns left out, all of it:'
    """
    told = f"The first {MOST_TURNS:,} turns; {plural(left, 'turn')} left out, all of it:" if left > 0 else ""
    return told or "All turns of the run; for programs:", f"proctor results {run} --format jsonl"
