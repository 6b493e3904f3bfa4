"""The events of a YAML text, its errors in our words, and the line where a place of the document stands."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import yaml
from yaml.reader import ReaderError

from producer.load.yaml_mistakes import QUOTE, explained
from shared.errors import InputError

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Path = tuple[str | int, ...]


class _Written(NamedTuple):
    """A place of a document that is written out."""

    place: Path
    line: int
    alias_of: Path | None = None
    """Where the value is written, if an alias stands here."""


class YamlError(InputError):
    """The text is no YAML, or YAML of a kind that is not taken; `line` is the place."""

    def __init__(self, line: int, what: str, *, hint: str = QUOTE) -> None:
        super().__init__(what, hint=hint)
        self.line = line


def events(text: str) -> Iterator[Any]:
    """Yields the parser's events; its errors as ours."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line, what, hint = explained(text, error)
        raise YamlError(line, f"not valid YAML: {what}", hint=hint) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"a character that YAML does not allow ({error.character:#06x})"
        raise YamlError(line, what, hint="write it as an escape inside double quotes") from None


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
    best, merged = _Written((), 1), list[Path]()
    try:
        for written in _places(text):
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
    except YamlError:
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
        for place, line, alias_of in _places(text):
            if alias_of is not None and place == tuple(path[: len(place)]):
                return lines_below(text, (*alias_of, *path[len(place) :]))
            if len(place) == depth + 1 and place[:-1] == tuple(path) and isinstance(place[-1], int):
                found[place[-1]] = line
    except YamlError:
        pass
    return found


def _places(text: str) -> Iterator[_Written]:
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
            yield _Written(tuple(path), line)
        elif stack and stack[-1] is None and not is_open:
            key = stack[-1] = str(getattr(event, "value", event.anchor))
            path.append(key)
            yield _Written(tuple(path), line)
            continue
        if stack and isinstance(stack[-1], str):
            stack[-1] = None
        if isinstance(event, yaml.AliasEvent):
            yield _Written(tuple(path), line, anchors.get(str(event.anchor)))
        else:
            anchors[event.anchor] = tuple(path)  # without an anchor under None, which no alias has
        if is_open:
            stack.append(None if isinstance(event, yaml.MappingStartEvent) else 0)
        else:
            del path[-1:]
