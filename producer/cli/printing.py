"""Streams the results of a run to stdout, with memory that does not grow with the run."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from producer.aggregate.gates import Gate
from producer.cli.context import Session
from producer.cli.wording import count, plural
from producer.document import document_of, pages_of, totals_of
from producer.report.formats import format_of
from producer.report.protocol import Report, Totals
from producer.report.screens import SCREENS
from shared.runs import RunInfo

TABLE_ROWS: Final = 50
"""Rows of a table when nobody says how many."""
WIDE: Final = 110
"""Cells of a line that hold every column; a narrower terminal gets fewer."""


def print_results(
    session: Session,
    info: RunInfo,
    name: str,
    *,
    only_failed: bool,
    first: int | None,
    gates: Sequence[Gate] = (),
    more: Sequence[Report] = (),
    with_text: bool = True,
) -> dict[str, Any]:
    """Prints results in one of the formats of reports and returns the run's document.

    Args:
        session: the way to Redis.
        info: the run.
        name: of the format.
        only_failed: leave the other items out.
        first: most items; None for all.
        gates: what must not be true of the run.
        more: what else reads the results.
        with_text: whether what was said in turns is shown.
    """
    out = sys.stdout.buffer
    reports, totals = [format_of(info.kind, name)(out, info), *more], totals_of(info.kind)
    for page in _pages(session, info, totals, only_failed=only_failed, first=first, with_text=with_text):
        for report in reports:
            report.page(page)
    document = document_of(info, totals, gates=gates)
    for report in reports:
        report.end(document)
    out.flush()
    return document


def print_table(session: Session, info: RunInfo, *, only_failed: bool, first: int | None) -> None:
    """Prints results as a table, the first ones only unless told otherwise."""
    screen, most, totals = SCREENS[info.kind], first or TABLE_ROWS, totals_of(info.kind)
    rows = [
        row for page in _pages(session, info, totals, only_failed=only_failed, first=most) for row in page
    ]
    if rows:
        is_narrow = (session.output.width or WIDE) < WIDE
        kept = [at for at, name in enumerate(screen.columns) if not (is_narrow and name in screen.wide_only)]
        cells = [[row[at] for at in kept] for row in screen.cells(rows)]
        headings = [screen.columns[at].upper() for at in kept]
        session.output.table(headings, cells, right=[name.upper() for name in screen.right])
    else:
        session.output.note("nothing failed" if only_failed else "no results yet")
    left = _listed(totals, info, only_failed=only_failed) - len(rows)
    if left > 0 and first is None:
        session.output.note(
            f"and {plural(left, 'item')} more: --first {count(left + len(rows))}, or --format jsonl"
        )


def _listed(totals: Totals, info: RunInfo, *, only_failed: bool) -> int:
    """Counts the rows that a table without a limit would have."""
    counts = totals.counts(info.total)
    bad = counts["error"] + (counts["failed"] if "f" in SCREENS[info.kind].failed else 0)
    return bad if only_failed else sum(counts.values()) - counts["total"]


def _pages(
    session: Session,
    info: RunInfo,
    totals: Totals,
    *,
    only_failed: bool,
    first: int | None,
    with_text: bool = False,
) -> Iterator[Sequence[Any]]:
    """Yields the rows that were asked for, page by page, and counts all of them."""
    left, failed = first, tuple(SCREENS[info.kind].failed)
    for rows in pages_of(session.store, info, with_text=with_text):
        totals.add(rows)
        wanted: Sequence[Any] = [row for row in rows if row.code.startswith(failed)] if only_failed else rows
        if left is not None:
            wanted = wanted[:left]
            left -= len(wanted)
        if wanted:
            yield wanted
