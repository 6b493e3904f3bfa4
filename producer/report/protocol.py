"""What a report and a count of results are, whatever the kind of the run."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Report(Protocol):
    """Something that is written while the rows of a run go by."""

    def page(self, rows: Sequence[Any]) -> None:
        """Takes some rows, in input order."""

    def end(self, document: Mapping[str, Any]) -> None:
        """Takes the document, after the last row."""


class Totals(Protocol):
    """Counts the rows of a run."""

    def add(self, page: Sequence[Any]) -> None:
        """Counts some rows."""

    def counts(self, total: int) -> dict[str, int]:
        """Returns rows by outcome, and the size of the run."""

    def summary(self) -> dict[str, Any]:
        """Returns what is told of a run of this kind."""

    def misses(self) -> bool:
        """Tells whether a gate of this kind was missed, errors not counted."""
