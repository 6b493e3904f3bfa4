"""Tables and panels for terminals: aligned columns for lists, boxes for summaries.

Widths are those of `rich.cells`, so that wide characters line up; nothing else of rich is loaded.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from shutil import get_terminal_size
from typing import Final

from rich.cells import cell_len, chop_cells, set_cell_size

GAP: Final = "  "
"""Between the columns of a list."""
NEVER_CUT: Final = 20
"""Columns of a list as narrow as this keep their cells whole: ids, words, numbers."""
LEAST_NAME: Final = 10
"""A name is cut down to this."""
LEAST_MODEL: Final = 16
"""The names of models, prompts and checks are cut down to this, so that they stay distinguishable."""
NARROW: Final = 72
"""A terminal narrower than this gets tables of figures whole or in words, with nothing cut or dropped."""
NO_FIGURE: Final = frozenset({"", "-"})
"""Cells that hold no figure."""
LAST_LEAST: Final = 7
"""The last column of a list may be cut down to this."""
LEAST_WRAPPED: Final = 16
"""Fewest characters in a line of the column that wraps in a box; below that, rows are drawn without boxes."""
UNKNOWN_WIDTH: Final = 120
"""Characters in a line where the width of the terminal is not known."""


def aligned_lines(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[str] = (),
    width: int | None = None,
    middle: Sequence[str] = (),
    least: int = LEAST_NAME,
    tail: int = 0,
    paint: Callable[[str, str], str] | None = None,
) -> list[str]:
    """Returns a table as aligned lines, the headings first; where there is no room, the widest cells are cut.

    Args:
        columns: the headings.
        rows: one text per column, without control characters.
        right: headings of columns that are aligned to the right.
        width: cells of a line; None for as many as it takes.
        middle: headings of columns that are cut instead, in this order, and in the middle of their cells.
        least: cells that are left of those.
        tail: with `middle`, cells that are left of the last column, which is cut first, and at its end; fewer
            where the names leave no room. 0 leaves it whole.
        paint: colours a cell that has its final width, given its heading.

    >>> aligned_lines(("NAME", "N"), [("one", "1"), ("three", "33")], right=["N"])
    ['NAME    N', 'one     1', 'three  33']
    """
    lines = [columns, *rows]
    widths = _natural_widths(lines)
    if width is not None:
        available = width - len(GAP) * (len(columns) - 1)
        flexible = [columns.index(name) for name in middle if name in columns]
        if flexible:
            if tail:
                widths[-1] = min(widths[-1], max(tail, widths[-1] - (sum(widths) - available)))
            _shrink_names(widths, flexible, available, least)
            if tail:
                widths[-1] = max(LAST_LEAST, min(widths[-1], widths[-1] - (sum(widths) - available)))
        else:
            _shrink(widths, available)
    heading, *body = [
        [
            _fitted(cut_middle(cell, size) if name in middle else cell, size, to_right=name in right)
            for name, cell, size in zip(columns, line, widths, strict=True)
        ]
        for line in lines
    ]
    for line in body:
        line[-1] = line[-1].rstrip()
        if paint:
            line[:] = [paint(name, cell) for name, cell in zip(columns, line, strict=True)]
    return [GAP.join(line).rstrip() for line in (heading, *body)]


def fitted_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    names: int = 1,
    spare: Sequence[str] = (),
    paint: Callable[[str, str], str] | None = None,
) -> list[str]:
    """Returns a table of figures that fits the terminal: columns without a figure are left out.

    Where there is no room, names are cut in their middle, then columns are dropped; where there is still
    none, each row is written as its name and, below it, all its figures with their headings.

    Args:
        columns: the headings, those of names first.
        rows: one text per column, safe to print.
        names: how many columns have names; the others are aligned to the right.
        spare: headings that a narrow terminal does without, in this order.
        paint: colours a cell that has its final width, given its heading.

    >>> fitted_table(("Model", "Passed", "Score"), [("a", "3 of 4", "-")])
    ['Model  Passed', 'a      3 of 4']
    """
    kept = [at for at in range(len(columns)) if at < names or any(row[at] not in NO_FIGURE for row in rows)]
    shown, cells = [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]
    width = terminal_width()
    spared, middle = (spare, shown[:names]) if width >= NARROW else ((), ())

    def drawn(left: Sequence[int], paint: Callable[[str, str], str] | None = None) -> list[str]:
        return aligned_lines(
            [shown[at] for at in left],
            [[row[at] for at in left] for row in cells],
            right=shown[names:],
            width=width if middle else None,
            middle=middle,
            least=LEAST_MODEL,
            paint=paint,
        )

    for dropped in range(len(spared) + 1):
        left = [at for at, name in enumerate(shown) if name not in spared[:dropped]]
        if max(map(cell_len, drawn(left))) <= width:
            return drawn(left, paint)
    return [part for row in cells for part in _unboxed(shown, row, width)]


def drop_columns(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    spare: Sequence[str],
    width: int,
    middle: Sequence[str] = (),
    least: int = LEAST_NAME,
    tail: int = 0,
) -> tuple[list[str], list[list[str]]]:
    """Drops columns until a list is no wider than a terminal, even where cells must be cut for it.

    Args:
        columns: the headings.
        rows: one text per column.
        spare: headings that may be dropped: empty ones first, then in this order.
        width: cells of a line.
        middle: headings of columns that are cut in their middle; only the first of them is, to spare others.
        least: see `aligned_lines`.
        tail: see `aligned_lines`.

    >>> drop_columns(("NAME", "NOTE", "N"), [("one", "", "1")], spare=["N", "NOTE"], width=7)
    (['NAME', 'N'], [['one', '1']])
    """
    kept = list(range(len(columns)))
    empty = [name for name in spare if not any(row[columns.index(name)] for row in rows)]
    for name in dict.fromkeys([*empty, *spare]):
        shown = [[row[number] for number in kept] for row in rows]
        lines = aligned_lines(
            [columns[number] for number in kept],
            shown,
            width=width,
            middle=middle[:1],
            least=least,
            tail=tail,
        )
        if max(map(cell_len, lines)) <= width:
            break
        kept.remove(columns.index(name))
    return [columns[number] for number in kept], [[row[number] for number in kept] for row in rows]


def boxed_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, wraps: str, right: Collection[str] = ()
) -> str:
    """Draws a table with lines around its cells.

    Args:
        columns: the headings.
        rows: one text per column, safe to print.
        wraps: the heading of the column whose text continues in the next line where the terminal is narrow;
            where there is no room even for that, the first column is cut in the middle of its cells, and
            last of all each row is written without lines around it.
        right: headings of columns that are aligned to the right.

    >>> print(boxed_table(("Model", "Cost"), [("a", "$0.10")], wraps="Model", right=["Cost"]))
    ┌───────┬───────┐
    │ Model │  Cost │
    ├───────┼───────┤
    │ a     │ $0.10 │
    └───────┴───────┘
    """
    lines = [columns, *rows]
    widths = _natural_widths(lines)
    at = columns.index(wraps)
    available = terminal_width() - (3 * len(columns) + 1) - (sum(widths) - widths[at])
    if at and available < LEAST_WRAPPED:
        cut = min(widths[0] - LEAST_MODEL, LEAST_WRAPPED - available)
        if cut > 0:
            widths[0], available = widths[0] - cut, available + cut
            lines = [(cut_middle(first, widths[0]), *rest) for first, *rest in lines]
    if available < min(widths[at], LEAST_WRAPPED):
        return "\n".join(part for row in rows for part in _unboxed(columns, row, terminal_width()))
    widths[at] = min(widths[at], available)

    def rule(left: str, middle: str, end: str) -> str:
        return left + middle.join("─" * (size + 2) for size in widths) + end

    def row(cells: Sequence[str]) -> list[str]:
        texts = [[cell] for cell in cells]
        texts[at] = _wrapped(cells[at], widths[at])
        return [
            "│ "
            + " │ ".join(
                _fitted(text[number] if number < len(text) else "", size, to_right=name in right)
                for name, text, size in zip(columns, texts, widths, strict=True)
            )
            + " │"
            for number in range(max(map(len, texts)))
        ]

    heading, *body = map(row, lines)
    drawn = [rule("┌", "┬", "┐"), *heading, rule("├", "┼", "┤"), *(line for cells in body for line in cells)]
    return "\n".join([*drawn, rule("└", "┴", "┘")])


def panel(text: str) -> str:
    """Draws a box around a line, which wraps where the terminal is narrow.

    >>> print(panel("Hi"))
    ╭────╮
    │ Hi │
    ╰────╯
    """
    lines = _wrapped(text, terminal_width() - 4)
    size = max(map(cell_len, lines))
    middle = [f"│ {_fitted(line, size)} │" for line in lines]
    return "\n".join([f"╭{'─' * (size + 2)}╮", *middle, f"╰{'─' * (size + 2)}╯"])


def terminal_width() -> int:
    """Returns the characters in a line of the terminal."""
    return get_terminal_size((UNKNOWN_WIDTH, 24)).columns


def hanging(text: str, indent: str = "    ") -> str:
    """Wraps a line at the width of the terminal, and indents what follows; whole where there is no terminal.

    >>> hanging("one line")
    'one line'
    """
    width = get_terminal_size((0, 0)).columns
    lines = _wrapped(text, width - len(indent)) if width > len(indent) else [text]
    return f"\n{indent}".join(lines)


def _natural_widths(lines: Sequence[Sequence[str]]) -> list[int]:
    """Returns the width of each column with no cell cut."""
    return [max(cell_len(line[number]) for line in lines) for number in range(len(lines[0]))]


def _shrink(widths: list[int], available: int) -> None:
    """Makes the widest columns narrower until all fit, or all are at their least."""
    while sum(widths) > available:
        widest = max(widths)
        if widest <= NEVER_CUT:
            # Nothing is long: what stands last is the least important.
            widths[-1] = max(LAST_LEAST, widths[-1] - (sum(widths) - available))
            return
        # Down to the next widest, or by what is missing; the last of equals is cut first.
        number = len(widths) - 1 - widths[::-1].index(widest)
        others = [width for width in widths if width < widest]
        floor = max(NEVER_CUT, max(others, default=NEVER_CUT))
        share = -(-(sum(widths) - available) // widths.count(widest))
        widths[number] = max(floor, widest - share) if floor < widest else widest - 1


def _shrink_names(widths: list[int], flexible: Sequence[int], available: int, least: int) -> None:
    """Makes columns of names narrower, one after the other, until all columns fit."""
    for number in flexible:
        over = sum(widths) - available
        if over > 0:
            widths[number] = min(widths[number], max(least, widths[number] - over))


def cut_middle(text: str, size: int) -> str:
    """Cuts a name in its middle: the beginnings and the ends of names differ.

    >>> cut_middle("claude-haiku-4-5", 10), cut_middle("short", 10)
    ('claud…-4-5', 'short')
    """
    if cell_len(text) <= size:
        return text
    left = set_cell_size(text, size // 2).rstrip()
    right = set_cell_size(text[::-1], size - 1 - size // 2)[::-1].lstrip()
    return f"{left}…{right}"


def _fitted(cell: str, size: int, *, to_right: bool = False) -> str:
    """Pads a cell with blanks, or cuts it with an ellipsis."""
    length = cell_len(cell)
    if length > size:
        return set_cell_size(cell, size - 1) + "…"
    blanks = " " * (size - length)
    return blanks + cell if to_right else cell + blanks


def _wrapped(text: str, width: int) -> list[str]:
    """Breaks a text between words, and words that are longer than a line anywhere.

    >>> _wrapped("one two extraordinary", 8)
    ['one two', 'extraord', 'inary']
    """
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines += chop_cells(word, width)
    return lines if lines[0] or len(lines) == 1 else lines[1:]


def _unboxed(columns: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """Writes a row as its first cell, and below it the others with their headings; none without a figure.

    >>> _unboxed(("Model", "Passed", "Cost"), ("a", "3", "$0.10"), 20)
    ['a', '  Passed 3', '  Cost $0.10']
    """
    lines = [row[0]]
    for name, cell in zip(columns[1:], row[1:], strict=True):
        if cell in NO_FIGURE:
            continue
        part = f"{name} {cell}"
        longer = f"{lines[-1]} · {part}"
        if len(lines) > 1 and len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(f"  {part}")
    return lines
