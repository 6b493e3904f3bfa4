"""Draws tables and panels with lines around them, for people at a terminal."""

from collections.abc import Collection, Iterable, Sequence
from io import StringIO
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

WIDTH: Final = 120
"""Where nobody knows how wide the terminal is."""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = (), wide: str = ""
) -> str:
    """Draws a table.

    Args:
        columns: the headings.
        rows: one text per column, safe to print.
        right: headings whose cells stand to the right.
        wide: the column that gives way where the terminal is narrow; its text goes on in the next line.

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


def _drawn(what: Any) -> str:
    """Draws into a text."""
    console = _console()
    console.print(what, markup=False, highlight=False)
    file = console.file
    assert isinstance(file, StringIO)  # noqa: S101 - made two lines below
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415 - start-up, as above

    width = get_terminal_size((WIDTH, 24)).columns
    return Console(file=StringIO(), width=width, no_color=True, color_system=None, legacy_windows=False)
