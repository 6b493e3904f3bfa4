"""Streams the results of a run to stdout, with memory that does not grow with the run."""

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Final, NamedTuple

from producer import kinds
from producer.aggregate.gates import Gate
from producer.cli.item_view import print_records
from producer.cli.output import Style
from producer.cli.session import Session
from producer.document import document_of, lend_files, pages_of, totals_of
from producer.documents import AnyRun
from producer.report.formats import TRACES, format_of
from producer.report.interfaces import Report, Totals, TurnText
from producer.review.label_store import review_of
from producer.row_filter import RowFilter, parse_filter
from producer.row_reader import shown_of
from producer.text import count, plural
from shared.runs import RunInfo

TABLE_ROWS: Final = 50
"""Rows of a table by default."""
LEAST_NAME: Final = 16
"""Names keep as many cells."""
LEAST_REASON: Final = 30
"""The last column of a table, which says why, keeps as many cells; other columns are dropped for it."""
_STYLES: Final[Mapping[str, Style]] = {
    "passed": "green",
    "failed": "red",
    "error": "yellow",
    "skipped": "dim",
}
"""Colours of outcomes."""


class ResultFilter(NamedTuple):
    """Which results to print."""

    only: str | None = None
    """`failed` for what did not pass, `errors` for what ended in error; None for every outcome."""
    first: int | None = None
    """Most items; None for all."""
    items: Collection[int] | None = None
    """Positions; None for all."""
    where: RowFilter | None = None
    """A condition; None for none."""


ALL: Final = ResultFilter()


def selection_of(
    only: str | None, first: int | None, items: Collection[int] | None, where: str | None
) -> ResultFilter:
    """Reads which results to print; see `ResultFilter`.

    Raises:
        FilterError: the condition cannot be read.
    """
    return ResultFilter(only, first, items, None if where is None else parse_filter(where))


def print_results(
    session: Session,
    info: RunInfo,
    name: str,
    selection: ResultFilter = ALL,
    *,
    gates: Sequence[Gate] = (),
    more: Sequence[Report] = (),
    with_text: bool = True,
) -> AnyRun:
    """Prints results in one of the formats of reports and returns the run's document.

    Args:
        session: access to Redis.
        info: the run.
        name: of the format.
        selection: which results.
        gates: conditions that fail the run.
        more: further reports that read the results.
        with_text: whether the texts of turns are included.
    """
    out = sys.stdout.buffer
    reports, totals = [format_of(info.kind, name)(out, info), *more], _totals(session, info)
    text = TurnText.NOT_READ if TRACES in name else TurnText.of_reports(with_text=with_text)
    lend_files(reports, session.access.store, info.run)
    for page in _pages(session, info, totals, selection, text):
        for report in reports:
            report.page(page)
    document = document_of(info, totals, gates=gates)
    for report in reports:
        report.end(document)
    out.flush()
    return document


def _totals(session: Session, info: RunInfo) -> Totals:
    return totals_of(info.kind, review_of(session.access.store, info.run))


def lines_of(session: Session, info: RunInfo, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Returns rows as objects, as `results --format jsonl` prints them."""
    out = BytesIO()
    report = format_of(info.kind, "jsonl")(out, info)
    lend_files([report], session.access.store, info.run)
    report.page(rows)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def print_table(session: Session, info: RunInfo, selection: ResultFilter) -> None:
    """Prints results as a table, by default the first ones; failures as records with their answers."""
    screen, totals = kinds.of(info.kind).screen(), _totals(session, info)
    first = selection._replace(first=selection.first or TABLE_ROWS)
    text = TurnText.NOT_READ if selection.only is None else TurnText.SHOWN
    rows = [row for page in _pages(session, info, totals, first, text) for row in page]
    if rows and selection.only is not None:
        print_records(session.output, map(shown_of(info), rows))
    elif rows:
        right, spare, names = (
            [name.upper() for name in some] for some in (screen.right, screen.spare, screen.names)
        )
        session.output.table(
            [name.upper() for name in screen.columns],
            screen.cells(rows),
            right=right,
            spare=spare,
            middle=names,
            least=LEAST_NAME,
            tail=LEAST_REASON,
            style_of=_style,
        )
    else:
        session.output.note(_why_empty(totals, info, selection))
    left = _listed(totals, info, selection) - len(rows)
    if left > 0 and selection.first is None:
        session.output.note(
            f"and {plural(left, 'item')} more: --first {count(left + len(rows))}, or --format jsonl"
        )


def _style(heading: str, cell: str) -> Style | None:
    """Returns the colour of an outcome or a status; None for other cells.

    >>> _style("STATUS", "failed_equality"), _style("CASE", "passed")
    ('red', None)
    """
    return _STYLES.get(cell.partition("_")[0]) if heading in {"OUTCOME", "STATUS"} else None


def _why_empty(totals: Totals, info: RunInfo, selection: ResultFilter) -> str:
    """Says why a table has no rows."""
    chosen = selection._replace(where=None)
    candidates = _listed(totals, info, chosen) if chosen.items is None else len(chosen.items)
    if selection.where is not None and candidates:
        return f"none of {plural(candidates, info.kind.noun)} meets the condition"
    return {"failed": "nothing failed", "errors": "nothing ended in error", None: "no results yet"}[
        selection.only
    ]


def _listed(totals: Totals, info: RunInfo, selection: ResultFilter) -> int:
    """Counts the rows that a table without a limit would have."""
    if selection.items is not None or selection.where is not None:
        return 0  # they were named one by one, or are not counted
    counts = totals.counts(info.total)
    match selection.only:
        case "failed":
            return counts.failed + counts.error
        case "errors":
            return counts.error
        case _:
            return counts.done + counts.skipped


def _pages(
    session: Session,
    info: RunInfo,
    totals: Totals,
    selection: ResultFilter,
    text: TurnText = TurnText.NOT_READ,
) -> Iterator[Sequence[Any]]:
    """Yields the selected rows page by page, and counts all rows."""
    left, where = selection.first, selection.where
    facts = kinds.of(info.kind).facts(where.fields) if where else None
    codes = ("x",) if selection.only == "errors" else ("x", "f")
    for rows in pages_of(session.access.store, info, text):
        totals.add(rows)
        found: Sequence[Any] = rows
        if selection.only is not None:
            found = [row for row in found if row.code.startswith(codes)]
        if selection.items is not None:
            found = [row for row in found if row.index in selection.items]
        if where is not None and facts is not None:
            found = [row for row in found if where.matches(facts(row))]
        if left is not None:
            found = found[:left]
            left -= len(found)
        if found:
            yield found
