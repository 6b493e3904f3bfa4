"""What a terminal shows of a run, by kind: the summary, and the table of results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.report import terminal
from producer.report.queries import terminal as queries
from shared.names import Kind


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
    failed: str
    """First letters of the codes of items that `--failed` lists."""


SCREENS: Final[Mapping[Kind, Screen]] = {
    Kind.TURNS: Screen(
        terminal.summary_text,
        terminal.COLUMNS,
        terminal.table_rows,
        frozenset({"message", "outcome"}),
        ("rule",),
        "x",
    ),
    Kind.QUERIES: Screen(
        queries.summary_text,
        queries.COLUMNS,
        queries.table_rows,
        frozenset({"confidence"}),
        ("latency",),
        "xf",
    ),
}
"""The kinds that this version shows."""
