"""Explains mistakes of YAML in the words of people who write it: which lines disagree, and how."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

SHOWN_CHARS: Final = 40
QUOTE: Final = "quote what holds ': ', '#' or a special sign at its start; indent with spaces"
_ALIGN: Final = "align both lines, or indent the nested one further"
_CLOSING: Final = {"sequence": ("[", "]"), "mapping": ("{", "}")}


class Mistake(NamedTuple):
    """One mistake."""

    line: int
    """From 1."""
    what: str
    hint: str = QUOTE


class _Line(NamedTuple):
    """A line that is not blank."""

    number: int
    """From 1."""
    text: str

    @property
    def indent(self) -> int:
        """Columns before its first sign."""
        return len(self.text) - len(self.text.lstrip(" "))

    @property
    def content(self) -> int:
        """Columns before what follows the signs of list items."""
        return len(self.text) - len(self.text.lstrip(" -"))

    @property
    def is_item(self) -> bool:
        """Whether it begins an item of a list."""
        return self.text.lstrip(" ").startswith("- ")


def explained(text: str, error: Any) -> Mistake:
    """Explains an error of the YAML parser.

    Args:
        text: the whole text.
        error: as the parser raised it, with marks of the problem and of what it is part of.
    """
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    if mark is None:
        return Mistake(1, str(error.problem or "broken"))
    lines, number = text.splitlines(), mark.line + 1
    here = lines[mark.line] if mark.line < len(lines) else ""
    problem, part = str(error.problem or error.context or "broken"), str(error.context or "")
    if here[mark.column : mark.column + 1] == "\t" or "tab character" in problem:
        return Mistake(number, "a tab: YAML is indented with spaces", "replace it with spaces")
    if "cannot start any token" in problem:
        what = f"a value cannot begin with {here[mark.column : mark.column + 1]}"
        return Mistake(number, what, "put the value in quotes")
    if "quoted scalar" in part and "end of stream" in problem:
        return Mistake(context.line + 1, "the quotation mark is not closed", "write another one at its end")
    for word, (opening, closing) in _CLOSING.items():
        if part == f"while parsing a flow {word}":
            what = f"the {opening} of line {context.line + 1} is not closed before {_shown(here)}"
            return Mistake(number, what, f"write {closing}, or a comma between its parts")
    return _misaligned(lines, mark, problem) or Mistake(number, problem)


def _misaligned(lines: Sequence[str], mark: Any, problem: str) -> Mistake | None:
    """Names the two lines of which one is indented wrongly; None where that is not the mistake."""
    if mark.line >= len(lines):
        return None
    here = _Line(mark.line + 1, lines[mark.line])
    if "mapping values are not allowed" in problem:
        if ": " in here.text[: mark.column]:
            return Mistake(here.number, "a second ': ' in a line", "put the value in quotes")
    elif not problem.startswith("did not find expected") or mark.column != here.indent:
        return None
    before = next((line for line in _above(lines, mark.line) if _column(line, here) != here.indent), None)
    if before is None:
        return None
    what = f"{_shown(here.text)} is indented by {here.indent}, and {_shown(before.text)} on line"
    return Mistake(here.number, f"{what} {before.number} by {_column(before, here)}", _ALIGN)


def _above(lines: Sequence[str], at: int) -> Iterator[_Line]:
    """Yields the lines above one that are neither blank nor comments, the nearest first."""
    for number in range(at, 0, -1):
        text = lines[number - 1]
        if text.strip() and not text.lstrip().startswith("#"):
            yield _Line(number, text)


def _column(line: _Line, other: _Line) -> int:
    """Where a line begins that is compared with another one: a key of a list item begins behind its sign."""
    return line.indent if other.is_item or not line.is_item else line.content


def _shown(text: str) -> str:
    """Quotes a line.

    >>> _shown("   - a ")
    '`- a`'
    """
    words = text.strip()
    return f"`{words}`" if len(words) <= SHOWN_CHARS else f"`{words[:SHOWN_CHARS]}…`"
