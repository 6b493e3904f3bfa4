"""Draws tables and panels with lines around them, for people at a terminal."""

from collections.abc import Collection, Iterable, Sequence
from io import StringIO
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

WIDTH: Final = 120
"""Where nobody knows how wide the terminal is."""
LEAST: Final = 8
"""Fewest characters a line of the column that gives way may have; below that, a row is told in words."""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = (), wide: str = ""
) -> str:
    """Draws a table.

    Args:
        columns: the headings.
        rows: one text per column, safe to print.
        right: headings whose cells stand to the right.
        wide: the column that gives way where the terminal is narrow; its text goes on in the next line, and
            where there is no room even for that, each row is told without lines around it.

    >>> print(table(("Model", "Cost"), [("a", "$0.10")], right=["Cost"]))
    ┌───────┬───────┐
    │ Model │  Cost │
    ├───────┼───────┤
    │ a     │ $0.10 │
    └───────┴───────┘
    """
    from rich.box import SQUARE  # noqa: PLC0415 - start-up: 30 ms that only these tables need
    from rich.table import Table  # noqa: PLC0415 - same
    from rich.text import Text  # noqa: PLC0415 - same

    rows = list(rows)
    width = _width()
    if wide and not _fits(columns, rows, wide, width):
        return "\n".join(line for row in rows for line in _told(columns, row, width))
    drawn = Table(box=SQUARE, header_style="", show_edge=True)
    for name in columns:
        drawn.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=bool(wide) and name != wide,
            overflow="fold" if name == wide else "ellipsis",
            ratio=None,
        )
    for row in rows:
        drawn.add_row(*map(Text, row))
    return _drawn(drawn)


def panel(text: str) -> str:
    """Draws a box around a line.

    >>> print(panel("Hi"))
    ╭────╮
    │ Hi │
    ╰────╯
    """
    from rich.box import ROUNDED  # noqa: PLC0415 - start-up, as above
    from rich.panel import Panel  # noqa: PLC0415 - same

    return _drawn(Panel.fit(text, box=ROUNDED))


def _fits(columns: Sequence[str], rows: Sequence[Sequence[str]], wide: str, width: int) -> bool:
    """Says whether all other columns have room in full, and the one that gives way some.

    >>> _fits(("Model", "Cost"), [("openai/gpt-4o", "$0.10")], "Model", 20)
    True
    >>> _fits(("Model", "Cost"), [("openai/gpt-4o", "$0.10")], "Model", 19)
    False
    """
    from rich.cells import cell_len  # noqa: PLC0415 - start-up, as above

    widths = {name: max(map(cell_len, cells)) for name, *cells in zip(columns, columns, *rows, strict=True)}
    widths[wide] = min(widths[wide], LEAST)
    return sum(widths.values()) + 3 * len(columns) + 1 <= width


def _told(columns: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """Tells a row in words: its first cell, and below it the others with their headings.

    >>> _told(("Model", "Passed", "Cost"), ("a", "3", "$0.10"), 20)
    ['a', '  Passed 3', '  Cost $0.10']
    """
    lines = [row[0]]
    for name, cell in zip(columns[1:], row[1:], strict=True):
        part = f"{name} {cell}"
        longer = f"{lines[-1]} · {part}"
        if len(lines) > 1 and len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(f"  {part}")
    return lines


def _drawn(what: Any) -> str:
    """Draws into a text."""
    console = _console()
    console.print(what, markup=False, highlight=False)
    file = console.file
    assert isinstance(file, StringIO)  # noqa: S101 - made two lines below
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415 - start-up, as above

    return Console(file=StringIO(), width=_width(), no_color=True, color_system=None, legacy_windows=False)


def _width() -> int:
    """Characters in a line of the terminal."""
    return get_terminal_size((WIDTH, 24)).columns
