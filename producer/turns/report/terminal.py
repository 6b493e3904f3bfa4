"""What a terminal shows of the items of a turns run: the table of results."""

from collections.abc import Sequence
from typing import Final

from producer.report.cells import Size, plain
from producer.report.interfaces import Screen
from producer.turns.report.opened_rows import opened
from shared.runs import TurnRow

COLUMNS: Final = ("item", "thread", "message", "outcome", "decision", "rule", "freeze", "summary", "why")
"""Of the table of results."""


def table_rows(rows: Sequence[TurnRow]) -> list[list[str]]:
    """Returns results as cells of a table with `COLUMNS`, safe to print."""
    return [[row.item_id, *(plain(text, Size.CELL) for text in row.cells)] for row in opened(rows)]


SCREEN: Final = Screen(
    COLUMNS,
    table_rows,
    spare=("message", "outcome", "item"),
    names=("thread", "message"),
    right=("rule",),
)
"""What a terminal shows of the items of a turns run."""
