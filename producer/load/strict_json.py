"""Parses JSON that other programs can read back: no NaN, and no key twice in one object."""

import json
from collections import Counter, deque
from typing import Any, Final, NoReturn

from msgspec import DecodeError
from msgspec.json import Decoder, Encoder

from producer.text import shown

_COLON: Final = b":"
_ESCAPES: Final = (b"\\u003a", b"\\u003A")
"""Other spellings of a colon in a text."""
_decode: Final = Decoder().decode
_encode: Final = Encoder().encode


class NotJsonError(ValueError):
    """A value that Python's JSON takes and JSON does not have."""


def parse_json(text: str) -> Any:
    """Parses a document.

    Raises:
        ValueError: it is none; a `JSONDecodeError` has the position.
        RecursionError: it is nested too deep.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    producer.load.strict_json.NotJsonError: the key 'a' stands twice in one object
    """
    return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)


def may_repeat_keys(raw: bytes, encoded: bytes) -> bool:
    """Returns whether a JSON text may contain a key twice in one object; False is certain, and cheap.

    A parser keeps one value of each key, so what it has read and written again has fewer colons than the
    text, unless escapes hide some: those of keys are gone, those within values stand on both sides.

    Args:
        raw: the text, or several.
        encoded: the same, decoded and encoded again without white space.

    >>> may_repeat_keys(b'{"a": 1}', b'{"a":1}'), may_repeat_keys(b'{"a": 1, "a": 2}', b'{"a":2}')
    (False, True)
    """
    if raw.count(_COLON) != encoded.count(_COLON):
        return True
    return _ESCAPES[0][:-1] in raw and any(escape in raw for escape in _ESCAPES)


def repeated_key(raw: bytes) -> tuple[str | int, ...] | None:
    """Returns the place of the first key that stands twice in one object, the outermost first.

    Args:
        raw: valid JSON.

    >>> repeated_key(b'{"a": [{"b": 1, "b": 1}]}'), repeated_key(b'{"a": {"a": 1}}')
    (('a', 0, 'b'), None)
    """
    try:
        if not may_repeat_keys(raw, _encode(_decode(raw))):
            return None
    except (DecodeError, RecursionError):
        pass  # a number that no program keeps, or too deep: looked at below
    read = json.loads(raw, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
    todo = deque[tuple[tuple[str | int, ...], Any]]([((), read)])
    while todo:
        place, value = todo.popleft()
        seen = set[str]()
        for name, inner in value if isinstance(value, _Pairs) else enumerate(value):
            if name in seen:
                return (*place, name)
            if isinstance(name, str):
                seen.add(name)
            if isinstance(inner, list):
                todo.append(((*place, name), inner))
    return None


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object as they stand in the text."""


def why_broken(error: ValueError | RecursionError) -> str:
    """Returns a short message on why something is not JSON.

    >>> why_broken(RecursionError())
    'nested too deep'
    """
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "nested too deep"
    return f"not valid JSON: {error}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object of its pairs; of a key that stands twice, one value would be lost."""
    built = dict(pairs)
    if len(built) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, times in counts.items() if times > 1)
        raise NotJsonError(f"the key {shown(twice)} stands twice in one object")
    return built


def _no_constant(word: str) -> NoReturn:
    """Refuses NaN and the infinities."""
    raise NotJsonError(f"{word} is no JSON value")
