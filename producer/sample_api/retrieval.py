"""Finds the sections that a query is about by its words: BM25, and how much of the query they cover.

No embeddings and no model: the same query finds the same sections on every machine. Words that the knowledge
base does not have count as the rarest of all, so that a query about something else covers little of itself.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from producer.sample_api.knowledge import Passage

_K1: Final = 1.2
_B: Final = 0.6
_HEADING_WEIGHT: Final = 2
"""A word in a heading counts as often as this."""

_STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """a about after all also an and any are as at be been but by can could did do does for
        from get give had has have how i if in into is it its just let long many me much must my
        need not of on one or our please should so some tell than that the their them then there
        they this to too up us was we what when where which who why will with would you your""",
    )
)
_SUFFIXES: Final = ("ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "e", "y")
_SHORTEST_STEM: Final = 3


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that fits a query."""

    chunk: Passage
    """The section."""
    score: float
    """BM25."""
    coverage: float
    """How much of the query's weight its words carry, 0 to 1."""


class Index:
    """A searchable knowledge base."""

    def __init__(self, chunks: Sequence[Passage]) -> None:
        self.chunks = chunks
        self._counts = [Counter(_terms(chunk)) for chunk in chunks]
        self._lengths = [counts.total() for counts in self._counts]
        self._mean_length = sum(self._lengths) / len(chunks)
        frequencies = Counter(term for counts in self._counts for term in counts)
        self._weights = {term: self._weight(frequency) for term, frequency in frequencies.items()}
        self._unknown = self._weight(0)

    def search(self, query: str, *, top: int = 5) -> list[Hit]:
        """Returns the best sections, best first; of equals the earlier one."""
        terms = list(dict.fromkeys(words(query)))
        whole = sum(self._weights.get(term, self._unknown) for term in terms)
        hits = [hit for position in range(len(self.chunks)) if (hit := self._hit(position, terms, whole))]
        hits.sort(key=lambda hit: -hit.score)
        return hits[:top]

    def _hit(self, position: int, terms: Sequence[str], whole: float) -> Hit | None:
        """Scores one section; None when it shares no word with the query."""
        counts = self._counts[position]
        shared = [term for term in terms if term in counts]
        if not shared:
            return None
        norm = _K1 * (1 - _B + _B * self._lengths[position] / self._mean_length)
        score = sum(self._weights[term] * counts[term] * (_K1 + 1) / (counts[term] + norm) for term in shared)
        coverage = sum(self._weights[term] for term in shared) / whole
        return Hit(self.chunks[position], score, coverage)

    def _weight(self, frequency: int) -> float:
        """Returns a word's weight: the rarer, the heavier."""
        return log(1 + (len(self.chunks) - frequency + 0.5) / (frequency + 0.5))


def words(text: str) -> list[str]:
    """Returns the stems of the words that mean something.

    >>> words("How do I cancel the bookings?")
    ['cancel', 'book']
    """
    return [stem(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in _STOP_WORDS]


def stem(word: str) -> str:
    """Cuts one common ending, so that containers are a container.

    >>> stem("declarations"), stem("refused"), stem("vgm")
    ('declar', 'refus', 'vgm')
    """
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word


def _terms(chunk: Passage) -> Iterable[str]:
    """Yields the words of a section, headings more than once."""
    yield from words(f"{chunk.title} {chunk.section}") * _HEADING_WEIGHT
    yield from words(chunk.text)
