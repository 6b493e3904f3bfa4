"""How values are shown to people in verdicts: short, printable, and never longer than a line or two."""

import json
from typing import Any, Final
from unicodedata import normalize

MAX_SHOWN_CHARS: Final = 120
"""Characters of a value inside a message."""
MAX_CONTEXT_CHARS: Final = 20
"""Characters that are shown before the place where two texts differ."""


def show(value: Any, limit: int = MAX_SHOWN_CHARS) -> str:
    """Writes a JSON value as JSON, cut to a length.

    >>> show({"a": [1, True, None]})
    '{"a": [1, true, null]}'
    >>> show("long " * 100, limit=20)
    '"long long long long… (502 characters)'
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return cut(text, limit)


def show_pair(one: Any, other: Any) -> tuple[str, str]:
    r"""Writes two different values so that people see the difference.

    Characters that look alike are escaped; long texts that begin alike are shown from where they differ.

    >>> show_pair("caf\u00e9", "cafe\u0301")
    ('"caf\\u00e9"', '"cafe\\u0301"')
    >>> show_pair("a" * 200, "a" * 199 + "b")[1]
    '"…aaaaaaaaaaaaaaaaaaaab"'
    """
    if show(one) == show(other) and isinstance(one, str) and isinstance(other, str):
        pairs = enumerate(zip(one, other, strict=False))
        at = next((at for at, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))
        start = max(0, at - MAX_CONTEXT_CHARS)
        one, other = (f"…{text[start:]}" if start else text for text in (one, other))
    shown = show(one), show(other)
    if normalize("NFKC", shown[0]) != normalize("NFKC", shown[1]):
        return shown
    return cut(json.dumps(one)), cut(json.dumps(other))


def cut(text: str, limit: int = MAX_SHOWN_CHARS) -> str:
    r"""Cuts a text and says how long it was; what cannot be printed or stored is escaped.

    >>> cut("one\ntwo\ud800")
    'one\\ntwo\\ud800'
    """
    length = len(text)
    head = escape_control(text[:limit])
    return head if length <= limit else f"{head.rstrip()}… ({length:,} characters)"


def escape_control(text: str) -> str:
    r"""Escapes control characters, line ends and halves of surrogate pairs.

    >>> escape_control("café \x1b[31m")
    'café \\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def escape_surrogates(text: str, limit: int | None = None) -> str:
    r"""The text as it can be written to files and servers: halves of surrogate pairs are escaped.

    >>> escape_surrogates("a\ud800b\n")
    'a\\ud800b\n'
    """
    text = text if limit is None else text[:limit]
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
