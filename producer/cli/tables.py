"""Aligns cells in columns, as wide as they need; where a terminal is narrower, long texts give way first."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

GAP: Final = "  "
NEVER_CUT: Final = 20
"""Columns as narrow as this keep their cells whole: ids, words, numbers."""
LAST_LEAST: Final = 7
"""The last column may be cut down to this."""


def table_lines(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[str] = (),
    width: int | None = None,
) -> list[str]:
    """Returns a table as lines, the headings first.

    Args:
        columns: the headings.
        rows: one text per column, without control characters.
        right: headings whose cells stand to the right.
        width: cells of a line; None for as many as it takes.

    >>> table_lines(("NAME", "N"), [("one", "1"), ("three", "33")], right=["N"])
    ['NAME    N', 'one     1', 'three  33']
    """
    lines = [columns, *rows]
    widths = [max(cell_len(line[number]) for line in lines) for number in range(len(columns))]
    if width is not None:
        _shrink(widths, width - len(GAP) * (len(columns) - 1))
    return [
        GAP.join(
            _fitted(cell, size, to_right=name in right)
            for name, cell, size in zip(columns, line, widths, strict=True)
        ).rstrip()
        for line in lines
    ]


def without_spare(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, spare: Sequence[str], width: int
) -> tuple[list[str], list[list[str]]]:
    """Leaves columns out until a table is no wider than a terminal, even where cells must be cut for it.

    Args:
        columns: the headings.
        rows: one text per column.
        spare: headings that may be left out: empty ones first, then in this order.
        width: cells of a line.

    >>> without_spare(("NAME", "NOTE", "N"), [("one", "", "1")], spare=["N", "NOTE"], width=7)
    (['NAME', 'N'], [['one', '1']])
    """
    kept = list(range(len(columns)))
    empty = [name for name in spare if not any(row[columns.index(name)] for row in rows)]
    for name in dict.fromkeys([*empty, *spare]):
        shown = [[row[number] for number in kept] for row in rows]
        lines = table_lines([columns[number] for number in kept], shown, width=width)
        if max(map(cell_len, lines)) <= width:
            break
        kept.remove(columns.index(name))
    return [columns[number] for number in kept], [[row[number] for number in kept] for row in rows]


def _shrink(widths: list[int], room: int) -> None:
    """Makes the widest columns narrower until all fit, or none can give more."""
    while sum(widths) > room:
        widest = max(widths)
        if widest <= NEVER_CUT:
            # Nothing is long: what stands last is the least important.
            widths[-1] = max(LAST_LEAST, widths[-1] - (sum(widths) - room))
            return
        # Down to the next widest, or by what is missing; the last of equals gives first.
        number = len(widths) - 1 - widths[::-1].index(widest)
        others = [width for width in widths if width < widest]
        floor = max(NEVER_CUT, max(others, default=NEVER_CUT))
        share = -(-(sum(widths) - room) // widths.count(widest))
        widths[number] = max(floor, widest - share) if floor < widest else widest - 1


def _fitted(cell: str, size: int, *, to_right: bool) -> str:
    """Fills a cell up with blanks, or cuts it with an ellipsis."""
    length = cell_len(cell)
    if length > size:
        return set_cell_size(cell, size - 1) + "…"
    blanks = " " * (size - length)
    return blanks + cell if to_right else cell + blanks
