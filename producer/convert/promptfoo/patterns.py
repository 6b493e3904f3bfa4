r"""Translates regular expressions of JavaScript into Python's, which mean the same with MULTILINE.

>>> to_python(r"^(?<year>\d{4})$")
'\\A(?P<year>\\d{4})\\Z'
"""

import re
from typing import Final

from shared.errors import WrongInput

_PART: Final = re.compile(
    r"\\u\{[0-9a-fA-F]+\}|\\[uxc][0-9a-fA-F]{2,4}|\\k<\w+>|\\.|\[\^?\]?|\]|\(\?<(?![=!])|\^|\$|.", re.DOTALL
)
_ASCII: Final = re.compile(r"\\[wWbB]")
_SPACE: Final = re.compile(r"\\[sS]")
_FLAGS: Final = re.compile(r"\(\?[aiLmsux-]+[:)]")


def to_python(pattern: str) -> str:
    """Translates a pattern without flags.

    Raises:
        WrongInput: Python has no such pattern, or JavaScript has not.
    """
    if found := _FLAGS.match(pattern):
        raise WrongInput(f"{found[0]} is no pattern of JavaScript: the assertion always fails there")
    parts, in_class = list[str](), False
    for part in _PART.findall(pattern):
        parts.append(_in_class(part) if in_class else _outside(part))
        in_class = (part.startswith("[") and not part.endswith("]")) or (in_class and part != "]")
    translated = "".join(parts)
    if _ASCII.search(pattern) and not _SPACE.search(pattern):
        translated = f"(?a){translated}"
    try:
        re.compile(translated, re.MULTILINE)
    except re.error as error:
        raise WrongInput(f"its pattern is none of Python's: {error}") from None
    return translated


def _in_class(part: str) -> str:
    """A part within brackets."""
    if part.startswith("["):
        return f"\\{part}"
    return r"\b" if part == r"\b" else _escape(part)


def _outside(part: str) -> str:
    """A part outside of brackets."""
    fixed = {"^": r"\A", "$": r"\Z", "[]": "(?!)", "[^]": r"[\s\S]", "(?<": "(?P<"}
    if part.startswith(r"\k<"):
        return f"(?P={part[3:-1]})"
    return fixed.get(part, _escape(part))


def _escape(part: str) -> str:
    """An escape: those that Python does not know stand for themselves."""
    if len(part) == 2 and part[0] == "\\" and part[1].isalpha() and part[1] not in "bBdDsSwWnrtfv0":  # noqa: PLR2004 - two signs
        return part[1]
    return part[1] if part == r"\/" else part
