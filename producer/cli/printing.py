"""Streams the results of a run to stdout, with memory that does not grow with the run."""

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from producer.aggregate.turns import TurnTotals
from producer.cli.context import Session
from producer.cli.wording import count, plural
from producer.document import document_of
from producer.report.formats import FORMATS
from producer.report.terminal import COLUMNS, table_rows
from shared.runs import RunInfo, TurnRow

TABLE_ROWS: Final = 50
"""Rows of a table when nobody says how many."""
WIDE: Final = 110
"""Cells of a line that hold every column; a narrower terminal gets fewer."""
IN_WIDE_ONLY: Final = frozenset({"message", "outcome"})
_ERROR: Final = "x"
"""First letter of the codes of items that ended in error."""


def print_results(
    session: Session, info: RunInfo, name: str, *, only_failed: bool, first: int | None
) -> None:
    """Prints results in one of the formats of reports."""
    out = sys.stdout.buffer
    report, totals = FORMATS[name](out, info), TurnTotals()
    for page in _pages(session, info, totals, only_failed=only_failed, first=first):
        report.page(page)
    report.end(document_of(info, totals))
    out.flush()


def print_table(session: Session, info: RunInfo, *, only_failed: bool, first: int | None) -> None:
    """Prints results as a table, the first ones only unless told otherwise."""
    most, totals = first or TABLE_ROWS, TurnTotals()
    rows = [
        row for page in _pages(session, info, totals, only_failed=only_failed, first=most) for row in page
    ]
    if rows:
        is_narrow = (session.output.width or WIDE) < WIDE
        kept = [number for number, name in enumerate(COLUMNS) if not (is_narrow and name in IN_WIDE_ONLY)]
        cells = [[row[number] for number in kept] for row in table_rows(rows)]
        session.output.table([COLUMNS[number].upper() for number in kept], cells, right=("RULE",))
    else:
        session.output.note("nothing failed" if only_failed else "no results yet")
    left = (totals.codes.total() if not only_failed else totals.errors.total()) - len(rows)
    if left > 0 and first is None:
        session.output.note(
            f"and {plural(left, 'item')} more: --first {count(left + len(rows))}, or --format jsonl"
        )


def _pages(
    session: Session, info: RunInfo, totals: TurnTotals, *, only_failed: bool, first: int | None
) -> Iterator[Sequence[TurnRow]]:
    """Yields the rows that were asked for, page by page, and counts all of them."""
    left = first
    for rows in session.store.pages(info.run):
        totals.add(rows)
        wanted: Sequence[TurnRow] = [row for row in rows if row.code[:1] == _ERROR] if only_failed else rows
        if left is not None:
            wanted = wanted[:left]
            left -= len(wanted)
        if wanted:
            yield wanted
