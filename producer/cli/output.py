"""Decides who writes what: data to stdout, everything else to stderr, colours where they are wanted."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from shutil import get_terminal_size
from typing import IO, Final, Literal

from producer.cli.options import GlobalOptions

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
_CODES: Final[dict[Style, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}

LEAST_ROOM: Final = 20
"""Cells that a folded sentence gets, however narrow the terminal is."""


def printable(text: str) -> str:
    r"""Makes hostile text safe for a terminal: control characters become their escapes.

    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def wants_color(
    stream_is_terminal: bool,  # noqa: FBT001 - the one fact that the answer is about
    mode: str,
    environment: Mapping[str, str],
) -> bool:
    """Tells whether to colour: the flag first, then `NO_COLOR`, `FORCE_COLOR`, `CI` and the terminal.

    >>> wants_color(True, "auto", {"NO_COLOR": "1"}), wants_color(True, "auto", {"TERM": "xterm"})
    (False, True)
    """
    if mode != "auto":
        return mode == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return stream_is_terminal and not environment.get("CI") and environment.get("TERM") != "dumb"


class Output:
    """The one way by which commands write; knows `-q`, `--json`, `--color` and the terminals."""

    def __init__(self, options: GlobalOptions) -> None:
        self.options = options
        self.color = wants_color(sys.stdout.isatty(), options.color, os.environ)
        self.error_color = wants_color(sys.stderr.isatty(), options.color, os.environ)
        plain = options.quiet or options.no_progress or not self.error_color
        self.live = sys.stderr.isatty() and not plain and not os.environ.get("CI")
        """Whether a view that redraws itself is wanted."""

    @property
    def width(self) -> int | None:
        """Cells of a line of the terminal that reads stdout; None when no terminal does."""
        return get_terminal_size().columns if sys.stdout.isatty() else None

    def data(self, text: str) -> None:
        """Writes data to stdout, one line or many."""
        _write(sys.stdout, text)

    def note(self, text: str) -> None:
        """Tells something worth knowing on stderr, unless quiet."""
        if not self.options.quiet:
            _write(sys.stderr, text)

    def detail(self, text: str) -> None:
        """Tells something that only `-v` wants to know."""
        if self.options.verbose and not self.options.quiet:
            _write(sys.stderr, self.paint(text, "dim", error=True))

    def warn(self, text: str) -> None:
        """Warns on stderr, also when quiet."""
        _write(sys.stderr, f"{self.paint('warning:', 'yellow', error=True)} {text}")

    def error(self, text: str, *, hint: str = "") -> None:
        """Tells a failure on stderr: what happened, then how to mend it."""
        self.tell(f"{self.paint('error:', 'red', error=True)} {text}", hint=hint)

    def tell(self, text: str, *, hint: str = "") -> None:
        """Tells something on stderr, also when quiet, and what to do about it."""
        _write(sys.stderr, text)
        if hint:
            _write(sys.stderr, f"{self.paint('hint:', 'cyan', error=True)} {hint}")

    def paint(self, text: str, *styles: Style, error: bool = False) -> str:
        """Colours text for stdout, or for stderr with `error`; plain where colours are not wanted."""
        if not styles or not (self.error_color if error else self.color):
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"

    def folded(self, text: str, *, indent: int = 0) -> str:
        """Folds a sentence for stdout: by words where a terminal ends, in a file not at all.

        Args:
            text: one line, not painted yet.
            indent: cells before it; its further lines begin there.
        """
        if self.width is None or indent + len(text) <= self.width:
            return text
        from textwrap import wrap  # noqa: PLC0415 - start-up: only long lines need it

        room = max(LEAST_ROOM, self.width - indent)
        return f"\n{' ' * indent}".join(wrap(text, room, break_on_hyphens=False))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Sequence[str] = (),
        spare: Sequence[str] = (),
    ) -> None:
        """Writes aligned columns to stdout; only a terminal cuts cells to its width.

        Args:
            columns: the headings.
            rows: one text per column; control characters are made harmless.
            right: headings whose cells stand to the right.
            spare: headings that a narrow terminal may do without: empty ones first, then in this order.
        """
        from producer.cli.tables import table_lines, without_spare  # noqa: PLC0415 - start-up: needs a part of rich

        cells = [[printable(cell) for cell in row] for row in rows]
        if spare and self.width is not None:
            columns, cells = without_spare(columns, cells, spare=spare, width=self.width)
        headings, *lines = table_lines(columns, cells, right=right, width=self.width)
        self.data("\n".join([self.paint(headings, "dim"), *lines]))


def _write(stream: IO[str], text: str) -> None:
    """Writes text with one newline at its end, at once."""
    stream.write(text if text.endswith("\n") else text + "\n")
    stream.flush()
