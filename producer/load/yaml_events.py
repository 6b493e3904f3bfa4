"""The events of a YAML text, its errors in our words, and the line where a place of the document stands."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml
from yaml.reader import ReaderError

from producer.load.yaml_mistakes import QUOTE, explained
from shared.errors import InputError

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Path = tuple[str | int, ...]


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
    """
    best, depth_of_best = 1, 0
    try:
        for place, line in _places(text):
            depth = len(place)
            if depth > depth_of_best and place == tuple(path[:depth]):
                best, depth_of_best = line, depth
                if depth == len(path):
                    break
    except YamlError:
        pass  # JSON that is no YAML: the nearest place before that
    return best


def lines_below(text: str, path: Sequence[str | int]) -> dict[int, int]:
    r"""Finds the lines of the members of a list, by their positions; none in JSON that is no YAML.

    >>> lines_below("a:\n  - b: 1\n  - c: 2\n", ("a",))
    {0: 2, 1: 3}
    """
    found, depth = dict[int, int](), len(path)
    try:
        for place, line in _places(text):
            if len(place) == depth + 1 and place[:-1] == tuple(path) and isinstance(place[-1], int):
                found[place[-1]] = line
    except YamlError:
        pass
    return found


def _places(text: str) -> Iterator[tuple[Path, int]]:
    """Yields every written place of a document with its line."""
    path: list[str | int] = []
    stack: list[Any] = []  # of lists the next index, of mappings the key that waits for its value
    for event in events(text):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            stack.pop()
            if path:
                path.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        is_open = isinstance(event, yaml.CollectionStartEvent)
        if stack and isinstance(stack[-1], int):
            path.append(stack[-1])
            stack[-1] += 1
            yield tuple(path), line
        elif stack and stack[-1] is None and not is_open:
            key = stack[-1] = str(getattr(event, "value", event.anchor))
            path.append(key)
            yield tuple(path), line
            continue
        if stack and isinstance(stack[-1], str):
            stack[-1] = None
        if is_open:
            stack.append(None if isinstance(event, yaml.MappingStartEvent) else 0)
        elif path:
            path.pop()
