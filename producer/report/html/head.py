"""Writes what a page says of a run beside its rows: verdict and figures above them, tables below."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from producer.report.figures import Cell, ConfidenceInterval, Figure, Name, ShownIn, Table
from producer.report.html.rendering import fill
from producer.report.html.viewer import TEMPLATE, Page
from producer.report.run_report import RunReport
from shared import __version__
from shared.runs import RunInfo

UNCHECKED: Final = "n"
"""Tone of a run that passed because nothing was checked."""


class DrawnCell(NamedTuple):
    """A cell of a table as the template draws it."""

    text: str
    key: float | None = None
    """By which its column is sorted."""
    note: str = ""
    interval: ConfidenceInterval | None = None
    """Drawn as a bar."""
    link: Name | None = None
    tone: str = ""
    is_number: bool = True


def page_of(report: RunReport, info: RunInfo, folder: str) -> Page:
    """Returns what a page begins with.

    Args:
        report: of the run.
        info: the run.
        folder: of the page.
    """
    verdict, run = report.verdict, report.run
    has_passed = verdict.tone == "p"
    return Page(
        run.kind,
        report.name,
        run.run_id,
        UNCHECKED if has_passed and not report.is_checked else verdict.tone,
        verdict.heading,
        verdict.clauses,
        [report.headline, *map(str, report.lines_in(ShownIn.PAGE)), _submitted(info), info.source],
        report.badge,
        [
            *((table.link, f"#{table.anchor}") for table in report.tables_in(ShownIn.PAGE) if table.link),
            ("About", "#about"),
        ],
        folder,
    )


def tables(shown: Iterable[Table]) -> bytes:
    """Writes tables."""
    return fill(
        TEMPLATE, "tables", [(table, [list(map(_drawn, row)) for row in table.rows]) for table in shown]
    )


def charts(drawn: Sequence[tuple[str, object, str]]) -> bytes:
    """Writes charts: for each its name, the drawing and a note."""
    return fill(TEMPLATE, "charts", drawn) if drawn else b""


def facts_of(report: RunReport, info: RunInfo, settings: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Lists what was run and with which settings, to reproduce or check it; empty ones are left out.

    Args:
        report: of the run.
        info: the run.
        settings: of its kind.
    """
    facts = [
        ("run", f"{info.run} ({report.run.state})"),
        ("description", info.description),
        ("input", info.source),
        ("submitted", _submitted(info)),
        *settings,
        ("every result, whole", f"proctor results {info.run} --format jsonl"),
        ("written by", f"Proctor {__version__}, document version {report.run.schema_version}"),
    ]
    return [(name, value) for name, value in facts if value]


def _submitted(info: RunInfo) -> str:
    return f"{datetime.fromtimestamp(info.created_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _drawn(cell: Cell) -> DrawnCell:
    """Returns how a cell is drawn."""
    match cell:
        case Figure():
            return DrawnCell(str(cell), cell.key, cell.note)
        case ConfidenceInterval() if cell.is_share:
            return DrawnCell(str(cell), cell.key, f"{cell}, n = {cell.n:,}", interval=cell)
        case ConfidenceInterval():
            return DrawnCell(str(cell), cell.key)
        case Name():
            return DrawnCell(cell.text, link=cell if cell.facet else None, tone=cell.tone, is_number=False)
        case str():
            return DrawnCell(cell, is_number=False)
