"""What is wrong with an input: its place, the words, and how to mend it; the collector of all problems."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from producer.load.strict_json import parse_json, why_broken
from producer.load.yaml_text import line_of
from producer.text import SHOWN_CHARS, count, plural, shown
from shared.errors import InputError, UsageError

T = TypeVar("T")
MOST_PROBLEMS: Final = 1_000
"""Problems after which an input is not read on."""
LINES_SHOWN: Final = 3
"""Lines that are named of equal problems."""


def path_text(location: Iterable[str | int]) -> str:
    """Writes a location inside a document.

    >>> path_text(("signals", "items", 8, "kind"))
    'signals.items[8].kind'
    """
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{_plain(part)}" if text else _plain(part)
    return text


Path: TypeAlias = tuple[str | int, ...]
"""Keys and positions inside a document."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """A place in a file. The line in a configuration is looked up only for an error."""

    file: str
    """Name of the file; of a query in an array, with its position."""
    text: str = ""
    """Content of the configuration, to look up lines; empty where `line` is known."""
    path: Path = ()
    """The place inside the document."""
    case: str = ""
    """Id of the case that stands there."""
    line: int = 0
    """Line in a data file; 0: not known, or to be looked up."""
    query: str = ""
    """Id of the query that stands there."""

    def __str__(self) -> str:
        line = self.found_line
        return self.file + (f":{line}" if line else "") + (f" ({self.query})" if self.query else "")

    @property
    def found_line(self) -> int:
        """The line; 0 if it is not known."""
        return line_of(self.text, self.path) if self.text else self.line

    def at(self, *path: str | int) -> "Place":
        r"""A place inside this one.

        >>> str(Place("a.yaml", "a:\n  b: 1\n", ("a",)).at("b"))
        'a.yaml:2'
        """
        return Place(self.file, self.text, (*self.path, *path), self.case, self.line, self.query)

    def error(self, what: str, hint: str = "") -> "PlacedError":
        """Makes the error for what is wrong here.

        >>> Place("cases.jsonl", line=3, case="fr").at("checks", 0).error("nothing to check").message
        "cases.jsonl:3: checks[0] (case 'fr'): nothing to check"
        """
        return PlacedError(Problem(self, what, hint))


class Problem(NamedTuple):
    """One thing that is wrong in an input."""

    place: Place
    """Place of what is wrong."""
    what: str
    """What is wrong, with the value."""
    hint: str = ""
    """How to fix it."""

    @property
    def alike(self) -> tuple[Path, str, str]:
        """What equal problems have in common: all but file, line, positions and ids."""
        return tuple(part for part in self.place.path if isinstance(part, str)), self.what, self.hint

    @property
    def message(self) -> str:
        """The problem with its place, on one line."""
        path = path_text(self.place.path) + (f" (case {shown(self.place.case)})" if self.place.case else "")
        return f"{self.place}: {path + ': ' if path else ''}{self.what}"


class PlacedError(InputError):
    """An input breaks its contract at a place that is known."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message, hint=problem.hint)
        self.problem = problem


class Problems:
    """Collects the problems of an input while it is read on, up to a bound."""

    def __init__(self) -> None:
        self.found: list[UsageError] = []
        self._first: UsageError | None = None

    def add(self, error: UsageError) -> None:
        """Adds a problem, or all that were collected with it.

        Raises:
            UsageError: the bound is reached.
        """
        self._first = self._first or error
        self.found += error.problems or [error]
        if len(self.found) >= MOST_PROBLEMS:
            self.raise_found()

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Returns what a function reads; None when it finds problems, which are added.

        >>> Problems().attempt(lambda: 1)
        1
        """
        try:
            return read()
        except UsageError as error:
            self.add(error)
            return None

    def raise_found(self) -> None:
        """Raises the first problem, with all of them in its `problems`.

        Raises:
            UsageError: there is one.
        """
        if self._first is not None:
            self._first.problems = tuple(self.found) if len(self.found) > 1 else ()
            raise self._first


def _plain(part: str) -> str:
    """A key as it stands; a strange one quoted, so that it cannot break the line."""
    return part if part and part.isprintable() and len(part) <= SHOWN_CHARS else shown(part)


def one_of(errors: Sequence[InputError], *, among: str = "") -> InputError:
    """Returns the first error with the number of the others; its `problems` are all of them."""
    first, others = errors[0], len(errors) - 1
    if not others:
        return first
    more = f" (and {others} more problem{'s' if others > 1 else ''}{among})"
    error = InputError(first.message + more, hint=first.hint)
    error.problems = tuple(errors)
    return error


MOST_CASES: Final = 100_000
"""Cases of a run."""
SHOWN_NAMES: Final = 8
"""Names in a hint."""


class InputRow(NamedTuple):
    """A value on its way to a model of the contract."""

    place: Place
    """File and line."""
    value: Any
    """What is there."""


def json_lines(name: str, lines: Iterable[str], problems: Problems, hint: str) -> Iterator[InputRow]:
    """Yields the values of JSON Lines; blank lines are skipped, and lines that hold none are problems.

    Args:
        name: of the file.
        lines: of it.
        problems: gets those of lines.
        hint: what a line should be.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            place = Place(name, line=number)
            try:
                value = parse_json(line)
            except (ValueError, RecursionError) as error:
                problems.add(place.error(why_broken(error), hint))
            else:
                yield InputRow(place, value)


def refuse_twice(names: Iterable[tuple[Place, str | None]], what: str) -> None:
    """Refuses a name that was given to two.

    Args:
        names: place and name of each; None where there is none.
        what: what has the names.

    Raises:
        InputError: a name stands twice.
    """
    places, problems = dict[str, Place](), Problems()
    for place, name in names:
        if name is not None:
            if name in places:
                text = f"{shown(name)} is the id of another {what}, at {places[name]}"
                here = Place(place.file, path=("id",), line=place.found_line)
                problems.add(here.error(text, f"give each {what} its own id"))
            places.setdefault(name, place)
    problems.raise_found()


def nearest(word: str, known: list[str]) -> str:
    """A hint: what was probably meant, else what there is.

    >>> nearest("is_jsn", ["is_json", "is_sql"])
    "did you mean 'is_json'?"
    """
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    some = ", ".join(known[:SHOWN_NAMES]) + (", …" if len(known) > SHOWN_NAMES else "")
    return f"there are: {some}" if known else "there are none"


def all_of(problems: Sequence[UsageError]) -> UsageError:
    """Makes one error of many: a line for each, with how to fix it; equal ones share a line."""
    groups = dict[object, list[UsageError]]()
    for each in problems:
        alike = each.problem.alike if isinstance(each, PlacedError) else (each.message, each.hint)
        groups.setdefault(alike, []).append(each)
    if len(groups) == 1:
        [same] = groups.values()
        return InputError(_line_of(same), hint=same[0].hint)
    lines = [f"{_line_of(same)}{same[0].hint and '; '}{same[0].hint}" for same in groups.values()]
    if len(problems) >= MOST_PROBLEMS:
        lines.append("there may be more: only so many are listed")
    return InputError("\n".join([plural(len(problems), "problem"), *lines]))


def _line_of(same: Sequence[UsageError]) -> str:
    r"""Writes equal problems as one line: the first in full, of the others the lines.

    >>> _line_of([Place("a.jsonl", line=line).at("id").error("is empty") for line in (3, 7, 8)])
    'a.jsonl:3: id: is empty (and 2 more: lines 7, 8)'
    """
    first, *others = same
    if not others:
        return first.message
    found = [each.problem.place.found_line for each in same if isinstance(each, PlacedError)]
    lines = [str(line) for line in list(dict.fromkeys(filter(None, found)))[1:]]
    some = ", ".join([*lines[:LINES_SHOWN], "…"] if len(lines) > LINES_SHOWN else lines)
    where = f": {'lines' if len(lines) > 1 else 'line'} {some}" if lines else ""
    return f"{first.message} (and {count(len(others))} more{where})"
