"""What a terminal shows of a run, by kind: the summary, and the table of results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from producer.report.cases import terminal as cases
from producer.report.cases.details import FailureDetails, FreeformDetails
from producer.report.protocol import Report
from producer.report.queries import terminal as queries
from producer.report.turns import terminal
from shared.contracts.case_run import FREEFORM, SNAPSHOT_KEY
from shared.kinds import CASES, QUERIES, TURNS, Kind
from shared.runs import RunInfo


class Details(Report, Protocol):
    """Tells of single items, beside the summary."""

    def text(self) -> str:
        """Writes what was collected; empty when nothing is to be shown."""


class Screen(NamedTuple):
    """How a kind is shown."""

    summary: Callable[[Mapping[str, Any]], str]
    """Writes a document for people: a line that names the run, a headline, and more."""
    columns: Sequence[str]
    """Headings of the table of results."""
    cells: Callable[[Sequence[Any]], list[list[str]]]
    """Makes the cells of some rows."""
    wide_only: frozenset[str]
    """Columns that a narrow terminal does without."""
    right: Sequence[str]
    """Columns whose cells stand to the right."""
    details: "Callable[[RunInfo, bool], Details] | None" = None
    """Makes what tells of single items after a run; is told whether to tell more."""


SCREENS: Final[Mapping[Kind, Screen]] = {
    TURNS: Screen(
        terminal.summary_text,
        terminal.COLUMNS,
        terminal.table_rows,
        frozenset({"message", "outcome"}),
        ("rule",),
    ),
    QUERIES: Screen(
        queries.summary_text,
        queries.COLUMNS,
        queries.table_rows,
        frozenset({"confidence"}),
        ("latency",),
    ),
    CASES: Screen(
        cases.summary_text,
        cases.COLUMNS,
        cases.table_rows,
        frozenset({"cost"}),
        ("latency", "cost"),
        lambda info, is_verbose: _case_details(info, is_verbose=is_verbose),
    ),
}
"""The kinds that this version shows."""


def _case_details(info: RunInfo, *, is_verbose: bool) -> Details:
    """Tells of outputs where nothing is checked, else of failures."""
    is_freeform = info.snapshot[SNAPSHOT_KEY]["mode"] == FREEFORM
    return FreeformDetails() if is_freeform else FailureDetails(is_verbose=is_verbose)
