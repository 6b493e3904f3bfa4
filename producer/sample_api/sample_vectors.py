"""Embeddings of the sample API: the same text has the same vector, and texts that share words are near."""

import math
import re
from typing import Final
from zlib import crc32

DIMENSIONS: Final = 256
COMMON: Final = frozenset(
    {"a", "an", "and", "are", "as", "at", "is", "it", "in", "of", "on", "the", "that", "this", "to", "was"}
)
"""Words that say little."""
COMMON_WEIGHT: Final = 0.2
PART_WEIGHT: Final = 0.3
"""Of three letters in a row, so that forms of one word are near."""
_WORDS: Final = re.compile(r"[^\W_]+")


def vector_of(text: str) -> list[float]:
    """Embeds a text.

    >>> one, two = vector_of("The capital is Paris."), vector_of("Paris is the capital")
    >>> round(sum(a * b for a, b in zip(one, two)), 2)
    1.0
    >>> other = vector_of("Trains leave at noon")
    >>> abs(sum(a * b for a, b in zip(one, other))) < 0.3
    True
    """
    vector = [0.0] * DIMENSIONS
    for word in _WORDS.findall(text.casefold()):
        weight = COMMON_WEIGHT if word in COMMON else 1.0
        _add(vector, word, weight)
        if len(word) > len("the"):
            for start in range(len(word) - 2):
                _add(vector, f"#{word[start : start + 3]}", weight * PART_WEIGHT)
    length = math.hypot(*vector)
    if not length:
        _add(vector, text, 1.0)
        length = 1.0
    return [round(number / length, 6) for number in vector]


def _add(vector: list[float], feature: str, weight: float) -> None:
    """Adds a feature at the place that its hash says."""
    digest = crc32(feature.encode(errors="surrogatepass"))
    vector[digest % DIMENSIONS] += weight if digest & 0x1000 else -weight
