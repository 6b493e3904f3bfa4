"""Normal forms of Unicode in bounded time: of texts that a model may have written to take long."""

from typing import Final, Literal
from unicodedata import combining, normalize

MAX_MARKS: Final = 256
"""Combining marks on one character; Python sorts them in the square of their number. Words have up to 30."""


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    r"""A text in a normal form; one with hundreds of marks on a character stays as it is.

    >>> normalized("NFC", "Cafe\u0301") == "Caf\u00e9"
    True
    >>> len(normalized("NFC", "e" + "\u0315\u0301" * 500_000))
    1000001
    """
    return text if text.isascii() or _has_long_runs(text) else normalize(form, text)


def _has_long_runs(text: str) -> bool:
    """Whether a character has too many marks."""
    run = 0
    for char in text:
        run = run + 1 if combining(char) else 0
        if run > MAX_MARKS:
            return True
    return False
