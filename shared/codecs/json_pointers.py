"""JSON pointers (RFC 6901): where a value stands in a document."""

from typing import Any


def at(value: Any, pointer: str, default: Any = None) -> Any:
    """Follows a JSON pointer; `default` where it leads nowhere.

    >>> at({"a": [{"b/c": 5}]}, "/a/0/b~1c"), at({"a": []}, "/a/0"), at({"a": 1}, "")
    (5, None, {'a': 1})
    """
    if pointer and not pointer.startswith("/"):
        return default
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and _is_index(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return default
    return value


def _is_index(text: str) -> bool:
    """Returns whether a step names a position in a list: digits, few, without leading zeros."""
    canonical = text == "0" or not text.startswith("0")
    return text.isascii() and text.isdigit() and canonical and len(text) < len("1000000000")
