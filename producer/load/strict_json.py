"""Parses JSON that other programs can read back: no NaN, and no key twice in one object."""

import json
from collections import Counter
from typing import Any, NoReturn

from producer.load.problems import shown


class NotJsonError(ValueError):
    """A value that Python's JSON takes and JSON does not have."""


def parse_json(text: str) -> Any:
    """Parses a document.

    Raises:
        ValueError: it is none; a `JSONDecodeError` knows the place.
        RecursionError: it is nested too deep.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    producer.load.strict_json.NotJsonError: the key 'a' stands twice in one object
    """
    return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)


def why_broken(error: ValueError | RecursionError) -> str:
    """Says in a few words why something is no JSON.

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
