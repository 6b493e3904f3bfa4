r"""Makes hostile text safe for one cell of a table: one line, bounded, without meaning in the target format.

>>> markdown("a|b\n<script>`x`", 100)
'a\\|b &lt;script&gt;\\`x\\`'
>>> csv_cell("=1+1"), csv_cell(3), csv_cell(None)
("'=1+1", 3, '')
"""

import csv
from collections.abc import Iterable, Sequence
from enum import IntEnum
from io import StringIO
from typing import Any, Final

ELLIPSIS: Final = "..."


class Size(IntEnum):
    """How many characters are shown of a text that somebody else wrote."""

    CELL = 60
    """In a table of a terminal."""
    NAME = 80
    """A name or an id, which people recognise by its beginning."""
    LINE = 160
    """One line beside others: a question, or why an item failed in a table."""
    REASON = 300
    """A reason, where there is room for two lines of it."""
    TEXT = 500
    """An answer or an error in a list of failures."""
    BODY = 4_000
    """What is folded, or only programs read."""
    WHOLE = 20_000
    """What a page shows when all of a text is asked for."""


_MARKDOWN: Final = str.maketrans(
    {sign: f"\\{sign}" for sign in "\\|`*[]"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
"""Everything that starts code, strong text, a link, an image, HTML or the next cell."""
_FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - spreadsheets take the full-width forms too
_CONTROLS: Final = {
    number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160)) if chr(number) not in "\t\n\r"
}
"""What a terminal that shows the file would obey, written out."""
_ODD_STARTS: Final = ("\t", "\r", "\n")


def plain(text: Any, limit: int | None = None) -> str:
    r"""Returns text as one line of printable characters; longer text is cut, and says so.

    Escape sequences, directional marks and half surrogate pairs go: a terminal or a viewer would obey them.

    >>> plain("one\n two\x1b[2J\u202e", 100), plain("abcdef", 3), plain(None)
    ('one two[2J', 'abc...', '')
    """
    if not isinstance(text, str):
        return ""
    most = len(text) if limit is None else limit
    head = text[: 20 * most]  # an answer of a megabyte is not worth walking for one line of it
    line = "".join(sign for sign in " ".join(head.split()) if sign.isprintable())
    is_cut = len(line) > most or len(head) < len(text)
    return line[:most] + ELLIPSIS if is_cut else line


def markdown(text: Any, limit: int | None = None) -> str:
    """Returns text for a cell of a Markdown table, cut before it is escaped."""
    return plain(text, limit).translate(_MARKDOWN)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Writes a Markdown table, whose cells are escaped already.

    >>> markdown_table(["a", "b"], [["1", "2"]])
    '| a | b |\n| --- | --- |\n| 1 | 2 |'
    """
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ["---"] * len(columns), *rows))


def csv_cell(value: Any) -> Any:
    r"""Returns a value for a spreadsheet; text that a spreadsheet would run gets an apostrophe in front.

    Control characters are written out, except for tabs and ends of lines.

    >>> csv_cell("\x1b[2J one\ttwo\x9b")
    '\\x1b[2J one\ttwo\\x9b'

    Numbers and truth values are the program's own and stay what they are; null is an empty cell.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        text = value.replace("\0", "").translate(_CONTROLS).encode(errors="backslashreplace").decode()
        runs = text.lstrip().startswith(_FORMULA) or text.startswith(_ODD_STARTS)
        return f"'{text}" if runs else text
    return value


def csv_lines(rows: Iterable[Sequence[Any]]) -> bytes:
    r"""Writes lines of a CSV file as spreadsheets and RFC 4180 have them, each cell made safe.

    >>> csv_lines([["a", "=1+1"], [None, 2]])
    b"a,'=1+1\r\n,2\r\n"
    """
    text = StringIO(newline="")
    csv.writer(text).writerows([csv_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode()
