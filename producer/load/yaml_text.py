"""Reads YAML as if it were JSON with a friendlier spelling: text, numbers, booleans, lists, objects.

Plain words are what YAML 1.2 and JSON agree on; `no`, `12:30:00`, `2026-01-01`, `007`, `0x1F` and `1_000`
stay text, and keys are always text. Built from the parser's events instead of its documents: nothing
recurses, depth and unfolded size are bounded whatever anchors do, and a key that stands twice is an error.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, NamedTuple

import yaml
from yaml.reader import ReaderError

from producer.text import shown
from shared.contracts.case_vocabulary import MAX_DEPTH
from shared.errors import WrongInput

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


_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Path = tuple[str | int, ...]


class WrittenPlace(NamedTuple):
    """A place of a document that is written out."""

    place: Path
    line: int
    alias_of: Path | None = None
    """Where the value is written, if an alias stands here."""


def events(text: str) -> Iterator[Any]:
    """Yields the parser's events; its errors as ours."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line, what, hint = explained(text, error)
        raise WrongInput(f"not valid YAML: {what}", hint, line=line) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"a character that YAML does not allow ({error.character:#06x})"
        raise WrongInput(what, "write it as an escape inside double quotes", line=line) from None


def line_of(text: str, path: Sequence[str | int]) -> int:
    r"""Finds the line where a place of a document stands, or the nearest that is written out.

    >>> line_of("a:\n  - b: 1\n  - c: 2\n", ("a", 1, "c"))
    3
    >>> line_of("a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n", ("c", "b"))
    2
    """
    return _nearest(text, tuple(path))[0]


def _nearest(text: str, path: Path) -> tuple[int, int]:
    """Finds a place, or the nearest around it that is written out; what an alias repeats is at its anchor.

    Returns:
        The line, and how many of the last parts of the path are not written.
    """
    best, merged = WrittenPlace((), 1), list[Path]()
    try:
        for written in places_of(text):
            place = written.place
            if place == path[: len(place)]:
                if len(place) > len(best.place):
                    best, merged = written, []
                elif written.alias_of is not None:
                    best = written._replace(line=best.line)
                if len(place) == len(path):
                    return best.line, 0
            elif (*best.place, "<<") in {place, place[:-1]}:
                merged.append(place)
    except WrongInput:
        pass  # JSON that is no YAML: the nearest place before that
    rest = path[len(best.place) :]
    inside = [best.alias_of] if best.alias_of is not None else merged
    for place in inside:
        line, missing = _nearest(text, (*place, *rest))
        if missing < len(rest):
            return line, missing
    return best.line, len(rest)


def lines_below(text: str, path: Sequence[str | int]) -> dict[int, int]:
    r"""Finds the lines of the members of a list, by their positions; none in JSON that is no YAML.

    >>> lines_below("a:\n  - b: 1\n  - c: 2\n", ("a",))
    {0: 2, 1: 3}
    """
    found, depth = dict[int, int](), len(path)
    try:
        for place, line, alias_of in places_of(text):
            if alias_of is not None and place == tuple(path[: len(place)]):
                return lines_below(text, (*alias_of, *path[len(place) :]))
            if len(place) == depth + 1 and place[:-1] == tuple(path) and isinstance(place[-1], int):
                found[place[-1]] = line
    except WrongInput:
        pass
    return found


def places_of(text: str) -> Iterator[WrittenPlace]:
    """Yields every written place of a document; that of an alias twice, the second time with its anchor."""
    path: list[str | int] = []
    anchors = dict[str | None, Path]()
    stack: list[Any] = []  # of lists the next index, of mappings the key that waits for its value
    for event in events(text):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            stack.pop()
            del path[-1:]
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        is_open = isinstance(event, yaml.CollectionStartEvent)
        if stack and isinstance(stack[-1], int):
            path.append(stack[-1])
            stack[-1] += 1
            yield WrittenPlace(tuple(path), line)
        elif stack and stack[-1] is None and not is_open:
            key = stack[-1] = str(getattr(event, "value", event.anchor))
            path.append(key)
            yield WrittenPlace(tuple(path), line)
            continue
        if stack and isinstance(stack[-1], str):
            stack[-1] = None
        if isinstance(event, yaml.AliasEvent):
            yield WrittenPlace(tuple(path), line, anchors.get(str(event.anchor)))
        else:
            anchors[event.anchor] = tuple(path)  # without an anchor under None, which no alias has
        if is_open:
            stack.append(None if isinstance(event, yaml.MappingStartEvent) else 0)
        else:
            del path[-1:]


MOST_VALUES: Final = 1_000_000
"""Values of a file with all its anchors unfolded; a bomb has billions."""
MOST_NESTED: Final = MAX_DEPTH + 12
"""Lists and mappings inside each other: an `expected` of the deepest kind, at its place in a file."""

_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}  # fmt: skip - one row a type
_TAGS: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = {f"{_TAGS}{name}" for name in ("int", "float", "bool", "null")}


class _Built(NamedTuple):
    """A finished value with what it weighs."""

    value: Any
    size: int
    height: int


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read."""

    value: Any
    line: int
    anchor: str | None
    size: int = 1
    height: int = 1
    key: str | None = None
    key_line: int = 0
    lines: dict[str, int] = field(default_factory=dict)
    merged: list[Any] = field(default_factory=list)

    @property
    def wants_key(self) -> bool:
        return isinstance(self.value, dict) and self.key is None


def parse_yaml(text: str) -> Any:
    r"""Reads one document.

    Raises:
        WrongInput: it is none, or breaks a bound.

    >>> parse_yaml("a: no\nb: [1, 1.5, 007, 12:30:00, null, '5']\n1: true")
    {'a': 'no', 'b': [1, 1.5, '007', '12:30:00', None, '5'], '1': True}
    """
    if text.lstrip("\ufeff \t\r\n")[:1] == "{":
        try:  # Python writes JSON with halves of surrogate pairs, which YAML does not know
            return json.loads(text, object_pairs_hook=_unique, parse_constant=str)
        except (ValueError, RecursionError):
            pass
    reader = _Reader()
    for event in events(text):
        reader.take(event)
    return reader.document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object of its pairs; a key that stands twice is left to the reader, which reports its line."""
    built = dict(pairs)
    if len(built) < len(pairs):
        raise ValueError
    return built


class _Reader:
    """Builds a document from its events."""

    def __init__(self) -> None:
        self.document: Any = None
        self._documents = 0
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Built] = {}
        self._size = 0

    def take(self, event: Any) -> None:
        """Takes the next event."""
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise WrongInput("a second document", "keep one document in a file", line=line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                self._alias(str(event.anchor), line)
            case _:
                pass

    def _open(self, event: Any, line: int) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_TAGS}{'map' if is_mapping else 'seq'}"):
            raise _bad_tag(event.tag, line)
        if self._stack and self._stack[-1].wants_key:
            raise WrongInput("a key that is a list or a mapping", "keys are text", line=line)
        if len(self._stack) >= MOST_NESTED:
            raise WrongInput(f"nested deeper than {MOST_NESTED}", "make it flatter", line=line)
        self._stack.append(_Open({} if is_mapping else [], line, event.anchor))
        self._count(1, line)

    def _close(self) -> None:
        done = self._stack.pop()
        for each in done.merged:
            done.value = {**each, **done.value}
        built = _Built(done.value, done.size, done.height)
        if done.anchor:
            self._anchors[done.anchor] = built
        self._put(built, done.line)

    def _scalar(self, event: Any, line: int) -> None:
        if self._stack and self._stack[-1].wants_key:
            self._key(event.value, line)
            if event.anchor:
                self._anchors[event.anchor] = _Built(event.value, 1, 0)
            return
        built = _Built(_scalar(event, line), 1, 0)
        if event.anchor:
            self._anchors[event.anchor] = built
        self._count(1, line)
        self._put(built, line)

    def _key(self, key: str, line: int) -> None:
        top = self._stack[-1]
        if key in top.lines:
            what = f"the key {shown(key)} stands twice, here and on line {top.lines[key]}"
            raise WrongInput(what, "keep one of them", line=line)
        top.key, top.key_line = key, line
        top.lines[key] = line

    def _alias(self, name: str, line: int) -> None:
        built = self._anchors.get(name)
        if built is None:
            if any(each.anchor == name for each in self._stack):
                what = f"the value of &{name} contains itself, as *{name}"
                raise WrongInput(what, f"write a value in place of *{name}", line=line)
            hint = f"write &{name} before the value, above this line"
            raise WrongInput(f"*{name} stands for nothing", hint, line=line)
        if self._stack and self._stack[-1].wants_key:
            if not isinstance(built.value, str):
                raise WrongInput(f"*{name} is a key, and no text", "keys are text", line=line)
            self._key(built.value, line)
            return
        if len(self._stack) + built.height > MOST_NESTED:
            raise WrongInput(f"nested deeper than {MOST_NESTED}", "make it flatter", line=line)
        self._count(built.size, line)
        self._put(built, line)

    def _count(self, values: int, line: int) -> None:
        self._size += values
        if self._size > MOST_VALUES:
            what = f"more than {MOST_VALUES:,} values, anchors unfolded"
            raise WrongInput(what, "move cases into a test_cases_file", line=line)

    def _put(self, built: _Built, line: int) -> None:
        """Puts a finished value where it belongs."""
        if not self._stack:
            self.document = built.value
            return
        top = self._stack[-1]
        top.size += built.size
        top.height = max(top.height, built.height + 1)
        if isinstance(top.value, list):
            top.value.append(built.value)
            return
        key, top.key = str(top.key), None
        if key == "<<":
            top.merged += _merged(built.value, line)
        else:
            top.value[key] = built.value


def _merged(value: Any, line: int) -> list[dict[str, Any]]:
    """The mappings that `<<` brings in; of two that have a key, the first one wins."""
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in found):
        raise WrongInput("<< merges mappings, and this is none", "write <<: *anchor", line=line)
    return found


def _scalar(event: Any, line: int) -> Any:
    """Reads a scalar as its spelling and its tag have it."""
    text: str = event.value
    is_plain = event.style is None or event.style == ""
    if event.tag in _PLAIN_TAGS:
        value = _plain(text, line)
        kinds = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}
        if not isinstance(value, kinds[event.tag.removeprefix(_TAGS)]):  # type: ignore[arg-type]  # a table of types
            raise WrongInput(f"{shown(text)} is not what its tag says", "leave the tag out", line=line)
        return value
    if event.tag not in (None, "!", f"{_TAGS}str"):
        raise _bad_tag(event.tag, line)
    return _plain(text, line) if is_plain and event.tag is None else text


def _plain(text: str, line: int) -> Any:
    """Reads a plain word."""
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return text
    try:
        number = int(text) if _INTEGER.fullmatch(text) else float(text)
        if isfinite(number):
            return number
    except (ValueError, OverflowError):  # Python reads no number of more than 4,300 digits
        pass
    raise WrongInput(f"{shown(text)} is too large for a number", "put it in quotes", line=line)


def _bad_tag(tag: str, line: int) -> WrongInput:
    """The error for a tag that makes something else than JSON's types."""
    return WrongInput(
        f"the tag {shown(tag)} is not taken", "leave it out: !!str is all that is needed", line=line
    )
