"""Merges options and headers of calls: those of bench, model and prompt; needs nothing but Python."""

from collections.abc import Mapping
from functools import reduce
from typing import Any, Final

TEMPERATURE: Final = "temperature"


def merge(*levels: Mapping[str, Any]) -> dict[str, Any]:
    """Merges options, later levels over earlier ones: maps by key, lists and all else as a whole.

    A map of another `type` replaces: half of a JSON schema means nothing in a format that is none.

    >>> merge({"a": 1, "b": {"x": 1, "y": [1]}}, {"b": {"y": [2]}}, {"a": None})
    {'a': None, 'b': {'x': 1, 'y': [2]}}
    >>> merge({"a": {"type": "json_schema", "json_schema": {}}}, {"a": {"type": "text"}})
    {'a': {'type': 'text'}}
    """
    return reduce(_merged, levels, {})


def merge_headers(*levels: Mapping[str, str]) -> dict[str, str]:
    """Merges headers, whose names have no case, later levels over earlier ones.

    >>> merge_headers({"X-Team": "a", "X-Run": "1"}, {"x-team": "b"})
    {'x-team': 'b', 'X-Run': '1'}
    """
    return dict({name.lower(): (name, value) for level in levels for name, value in level.items()}.values())


def split_temperature(options: Mapping[str, Any], usual: float) -> tuple[float | None, dict[str, Any]]:
    """Parts merged options into the temperature and the others.

    Args:
        options: as `sent` returns them.
        usual: the temperature where they have none; null among them means that none is sent.

    >>> split_temperature({"seed": 1}, 0.1), split_temperature({"temperature": None}, 0.1)
    ((0.1, {'seed': 1}), (None, {}))
    """
    others = {name: value for name, value in options.items() if name != TEMPERATURE}
    return options.get(TEMPERATURE, usual), others


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two levels."""
    both = {
        name: _merged(below[name], value)
        for name, value in above.items()
        if isinstance(value, Mapping)
        and isinstance(below.get(name), Mapping)
        and _is_alike(below[name], value)
    }
    return {**below, **above, **both}


def _is_alike(below: Mapping[str, Any], above: Mapping[str, Any]) -> bool:
    """Whether two maps are of one type."""
    return bool(above.get("type", below.get("type")) == below.get("type"))


def sent(merged: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out what null has taken back, but for a temperature: without one the run's is sent.

    >>> sent({"seed": None, "temperature": None, "top_p": 0.5})
    {'temperature': None, 'top_p': 0.5}
    """
    return {name: value for name, value in merged.items() if value is not None or name == TEMPERATURE}
