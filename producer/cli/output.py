"""Decides who writes what: data to stdout, everything else to stderr, colours where they are wanted."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from io import BufferedWriter, TextIOWrapper
from shutil import get_terminal_size
from typing import IO, TYPE_CHECKING, Final, Literal

from producer.atomic_file import NamedFile
from producer.cli.colors import wants_color
from producer.cli.options.global_options import GlobalOptions

if TYPE_CHECKING:
    from msgspec import Struct

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
_CODES: Final[dict[Style, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}

LEAST_WIDTH: Final = 20
"""Cells that a folded sentence gets, however narrow the terminal is."""
STDOUT: Final = "standard output"
"""What errors of writing to stdout give as its file name."""


@contextmanager
def usable_streams() -> Iterator[None]:
    """Lets a whole program print, whatever its streams are.

    A closed stream and a character that the encoding of stdout lacks are no errors; those of writing name it.
    """
    with ExitStack() as stack:
        for descriptor in range(3):
            _occupy(descriptor)
        if sys.stderr is None:
            stack.enter_context(redirect_stderr(stack.enter_context(_nowhere())))
        before = sys.stdout
        try:
            descriptor = before.fileno()
        except (AttributeError, OSError):  # closed by the shell (`>&-`), or no file: a notebook's
            stack.enter_context(redirect_stdout(before or stack.enter_context(_nowhere())))
            yield
            return
        before.flush()
        # A character that latin-1 lacks must not end a run; its escape is readable, and valid in JSON.
        errors = "backslashreplace" if before.errors == "strict" else before.errors
        named = TextIOWrapper(
            BufferedWriter(NamedFile(descriptor, STDOUT)),
            encoding=before.encoding,
            errors=errors,
            line_buffering=bool(before.line_buffering),
        )
        with redirect_stdout(named):
            try:
                yield
            finally:
                drop_if_lost(sys.stdout)
                drop_if_lost(sys.stderr)


def _occupy(descriptor: int) -> None:
    """Opens a standard stream that the shell closed, or a file opened later would get its number."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number, and thus this one


def _nowhere() -> IO[str]:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - a device, no path of ours; callers close it


def is_lost(error: BaseException) -> bool:
    """Whether an error means that stdout cannot be written any more."""
    return isinstance(error, OSError) and error.filename == STDOUT


def drop_if_lost(stream: IO[str]) -> None:
    """Empties a stream; what it does not take is thrown away, or Python's own exit would fail."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        with suppress(OSError):
            stream.flush()


def printable(text: str) -> str:
    r"""Makes hostile text safe for a terminal: control characters become their escapes.

    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _can_redraw(environment: Mapping[str, str]) -> bool:
    """Returns whether stderr is a terminal that moves its cursor, outside of CI."""
    return sys.stderr.isatty() and not environment.get("CI") and environment.get("TERM") != "dumb"


class Output:
    """Writes the output of commands according to `-q`, `--json`, `--color` and the terminal."""

    def __init__(self, options: GlobalOptions) -> None:
        self.options = options
        self.color = wants_color(sys.stdout.isatty(), options.color, os.environ)
        self.error_color = wants_color(sys.stderr.isatty(), options.color, os.environ)
        self.live = _can_redraw(os.environ) and not (options.quiet or options.no_progress)
        """Whether a view that redraws itself is wanted; colours are no part of that decision."""

    @property
    def width(self) -> int | None:
        """Cells of a line of the terminal that reads stdout; None when no terminal does."""
        return get_terminal_size().columns if sys.stdout.isatty() else None

    def data(self, text: str) -> None:
        """Writes data to stdout, one line or many."""
        _write(sys.stdout, text)

    def document(self, document: "Struct", *, indent: int | None = None) -> None:
        """Writes a document to stdout, as JSON."""
        from producer.documents import as_json  # noqa: PLC0415 - start-up: `--help` needs no msgspec

        self.data(as_json(document, indent=indent))

    def note(self, text: str) -> None:
        """Writes a note to stderr, unless quiet."""
        if not self.options.quiet:
            _write_aside(text)

    def detail(self, text: str) -> None:
        """Writes a detail to stderr, with `-v` only."""
        if self.options.verbose and not self.options.quiet:
            _write_aside(self.paint(text, "dim", error=True))

    def warn(self, text: str) -> None:
        """Warns on stderr, also when quiet."""
        _write_aside(f"{self.paint('warning:', 'yellow', error=True)} {text}")

    def error(self, text: str, *, hint: str = "") -> None:
        """Writes an error to stderr, with a hint how to fix it."""
        self.message(f"{self.paint('error:', 'red', error=True)} {text}", hint=hint)

    def message(self, text: str, *, hint: str = "") -> None:
        """Writes a message to stderr, also when quiet, with a hint."""
        _write_aside(text)
        if hint:
            self.hint(hint)

    def hint(self, text: str) -> None:
        """Writes how to mend what was reported before, to stderr, also when quiet."""
        _write_aside(f"{self.paint('hint:', 'cyan', error=True)} {text}")

    def paint(self, text: str, *styles: Style, error: bool = False) -> str:
        """Colours text for stdout, or for stderr with `error`; plain where colours are not wanted."""
        if not styles or not (self.error_color if error else self.color):
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"

    def painted(self, text: str, *styles: str) -> str:
        """Colours text for stdout with styles as reports name them."""
        return self.paint(text, *(each for each in _CODES if each in styles))

    def folded(self, text: str, *, indent: int = 0) -> str:
        """Folds a sentence for stdout: by words where a terminal ends, in a file not at all.

        Args:
            text: one line, not painted yet.
            indent: cells before it; its further lines begin there.
        """
        if self.width is None or indent + len(text) <= self.width:
            return text
        from textwrap import wrap  # noqa: PLC0415 - start-up: only long lines need it

        width_left = max(LEAST_WIDTH, self.width - indent)
        return f"\n{' ' * indent}".join(wrap(text, width_left, break_on_hyphens=False))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Sequence[str] = (),
        spare: Sequence[str] = (),
        middle: Sequence[str] = (),
        least: int | None = None,
        tail: int = 0,
        marks: Sequence[Style] = (),
        style_of: Callable[[str, str], Style | None] | None = None,
    ) -> None:
        """Writes aligned columns to stdout; only a terminal cuts cells to its width.

        Args:
            columns: the headings.
            rows: one text per column; control characters are made harmless.
            right: headings whose cells stand to the right.
            spare: headings that a narrow terminal may do without: empty ones first, then in this order.
            middle: headings of names, which are the only cells to be cut, in this order and in their middle.
            least: cells that are left of those; None for the least at which a name can be recognised.
            tail: with `middle`, cells that the last column keeps, which is cut at its end before names are.
            marks: colours of the first cells, one per row, where these are single characters.
            style_of: returns the colour of a cell, given its heading and its text.
        """
        from producer.tables import LEAST_NAME, aligned_lines, drop_columns  # noqa: PLC0415 - start-up: needs a part of rich

        kept = least or LEAST_NAME
        cells = [[printable(cell) for cell in row] for row in rows]
        if spare and self.width is not None:
            columns, cells = drop_columns(
                columns, cells, spare=spare, width=self.width, middle=middle, least=kept, tail=tail
            )

        def painted(heading: str, cell: str) -> str:
            style = style_of(heading, cell.strip()) if style_of else None
            return self.paint(cell, style) if style else cell

        headings, *lines = aligned_lines(
            columns, cells, right=right, width=self.width, middle=middle, least=kept, tail=tail, paint=painted
        )
        if marks:
            lines = [self.paint(line[:1], style) + line[1:] for line, style in zip(lines, marks, strict=True)]
        self.data("\n".join([self.paint(headings, "dim"), *lines]))


def _write(stream: IO[str], text: str) -> None:
    """Writes text with one newline at its end, at once."""
    stream.write(text if text.endswith("\n") else text + "\n")
    stream.flush()


def _write_aside(text: str) -> None:
    """Writes text to stderr; a log on a full disk is no reason to end a run."""
    try:
        _write(sys.stderr, text)
    except BrokenPipeError:
        raise
    except OSError:
        return
