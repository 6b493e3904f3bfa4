"""Reads YAML as if it were JSON with a friendlier spelling: text, numbers, booleans, lists, objects.

Plain words are what YAML 1.2 and JSON agree on; `no`, `12:30:00`, `2026-01-01`, `007`, `0x1F` and `1_000`
stay text, and keys are always text. Built from the parser's events instead of its documents: nothing
recurses, depth and unfolded size are bounded whatever anchors do, and a key that stands twice is an error.
"""

import json
import re
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, NamedTuple

import yaml

from producer.load.problems import shown
from producer.load.yaml_events import YamlError, events
from shared.contracts.case_vocabulary import MAX_DEPTH

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
        YamlError: it is none, or breaks a bound.

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
                    raise YamlError(line, "a second document", hint="keep one document in a file")
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
            raise YamlError(line, "a key that is a list or a mapping", hint="keys are text")
        if len(self._stack) >= MOST_NESTED:
            raise YamlError(line, f"nested deeper than {MOST_NESTED}", hint="make it flatter")
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
            raise YamlError(line, what, hint="keep one of them")
        top.key, top.key_line = key, line
        top.lines[key] = line

    def _alias(self, name: str, line: int) -> None:
        built = self._anchors.get(name)
        if built is None:
            if any(each.anchor == name for each in self._stack):
                what = f"the value of &{name} contains itself, as *{name}"
                raise YamlError(line, what, hint=f"write a value in place of *{name}")
            hint = f"write &{name} before the value, above this line"
            raise YamlError(line, f"*{name} stands for nothing", hint=hint)
        if self._stack and self._stack[-1].wants_key:
            if not isinstance(built.value, str):
                raise YamlError(line, f"*{name} is a key, and no text", hint="keys are text")
            self._key(built.value, line)
            return
        if len(self._stack) + built.height > MOST_NESTED:
            raise YamlError(line, f"nested deeper than {MOST_NESTED}", hint="make it flatter")
        self._count(built.size, line)
        self._put(built, line)

    def _count(self, values: int, line: int) -> None:
        self._size += values
        if self._size > MOST_VALUES:
            what = f"more than {MOST_VALUES:,} values, anchors unfolded"
            raise YamlError(line, what, hint="move cases into a test_cases_file")

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
        raise YamlError(line, "<< merges mappings, and this is none", hint="write <<: *anchor")
    return found


def _scalar(event: Any, line: int) -> Any:
    """Reads a scalar as its spelling and its tag have it."""
    text: str = event.value
    is_plain = event.style is None or event.style == ""
    if event.tag in _PLAIN_TAGS:
        value = _plain(text, line)
        kinds = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}
        if not isinstance(value, kinds[event.tag.removeprefix(_TAGS)]):  # type: ignore[arg-type]  # a table of types
            raise YamlError(line, f"{shown(text)} is not what its tag says", hint="leave the tag out")
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
    raise YamlError(line, f"{shown(text)} is too large for a number", hint="put it in quotes")


def _bad_tag(tag: str, line: int) -> YamlError:
    """The error for a tag that makes something else than JSON's types."""
    return YamlError(
        line, f"the tag {shown(tag)} is not taken", hint="leave it out: !!str is all that is needed"
    )
