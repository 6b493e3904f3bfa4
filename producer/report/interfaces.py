"""What a report, a count of results and a screen are, whatever the kind of the run."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from producer.documents import AnyRun, Counts, Summary
from producer.report.run_report import Failures
from shared.runs import RunInfo


class TurnText(Enum):
    """What rows of turns contain of their input; rows of other kinds always contain theirs."""

    NOT_READ = "not read"
    """Nothing: no report shows it, and to read it costs as much as to read the results."""
    WITHHELD = "withheld"
    """All that reports show but the message, of which only the length is known."""
    SHOWN = "shown"
    """All of it."""

    @classmethod
    def of_reports(cls, *, with_text: bool) -> "TurnText":
        """Returns what reports need."""
        return cls.SHOWN if with_text else cls.WITHHELD


ReadFile = Callable[[str], bytes | None]
"""Reads a file that the items of a run share, such as an image, by its name; None when there is none."""


class Report(Protocol):
    """Something that is written while the rows of a run go by.

    A writer is made with an open binary file and the run: see `report` in `producer.kind`.
    """

    def page(self, rows: Sequence[Any]) -> None:
        """Takes some rows, in input order."""

    def end(self, document: AnyRun) -> None:
        """Takes the document, after the last row."""


@runtime_checkable
class ReadsFiles(Protocol):
    """A report that shows files of the run."""

    def read_files(self, read: ReadFile) -> None:
        """Takes what reads them, before the first row."""


Paint = Callable[[str, str], str]
"""Colours a text, given a style: `bold`, `dim`, `red`, `green`, `yellow` or `cyan`."""


def unpainted(text: str, style: str) -> str:
    """Returns a text as it is, where colours are not wanted."""
    del style
    return text


class Details(Report, Protocol):
    """Shows single items between the figures of a run and its verdict."""

    def text(self, paint: Paint = unpainted) -> str:
        """Returns what was collected; empty when nothing is to be shown."""


class FailureCollector(Protocol):
    """Groups what failed in a run by its reason, in memory that does not grow with the run."""

    def page(self, rows: Sequence[Any]) -> None:
        """Takes some rows, in input order."""

    def failures(self) -> Failures:
        """Returns the groups, the most frequent reason first."""


class Screen(NamedTuple):
    """What a terminal shows of the items of a run."""

    columns: Sequence[str]
    """Headings of the table of results."""
    cells: Callable[[Sequence[Any]], list[list[str]]]
    """Makes the cells of some rows."""
    spare: Sequence[str] = ()
    """Columns that a narrow terminal does without, in this order."""
    names: Sequence[str] = ()
    """Columns that a narrow terminal cuts in the middle of their cells; the last column is cut at its end."""
    right: Sequence[str] = ()
    """Columns whose cells stand to the right."""
    failures: Callable[[RunInfo], FailureCollector] | None = None
    """Begins to group what failed; None where nothing has a reason."""
    details: Callable[[RunInfo, bool], Details] | None = None
    """Makes what is shown of single items after a run, given whether to show more than failures need."""


class Totals(Protocol):
    """Counts the rows of a run."""

    def add(self, page: Sequence[Any]) -> None:
        """Counts some rows."""

    def counts(self, total: int) -> Counts:
        """Returns rows by outcome, and the size of the run."""

    def summary(self, info: RunInfo) -> Summary:
        """Returns what was counted, with the source, the times and the settings of the run."""

    def misses(self) -> bool:
        """Returns whether a run without errors missed what it was to reach, so that it exits with 1."""
