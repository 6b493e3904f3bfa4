"""ROUGE-L: how much of a reference an output keeps, in order, as an F1 score between 0 and 1.

The number is that of the rouge-score package, bit for bit. Up to 100 tokens its own scorer finds it;
beyond, where the package needs seconds, its tokens go through a longest common subsequence that handles a
whole row of the table as the bits of one integer.

The package's tokenizer throws everything outside of a-z and 0-9 away, so that two equal Russian texts would
score 0. Texts with letters outside of ASCII are therefore cut into words by Unicode's rules, and the score
says so.
"""

import unicodedata
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from worker.validation.unicode_forms import normalized

MAX_PACKAGE_TOKENS: Final = 100
"""Longer pairs take the quick way to the same number."""
MAX_TOKENS: Final = 50_000
"""Tokens of either text that are compared; what comes after is left out, and the score says so."""

_SCRIPTS_WITHOUT_SPACES: Final = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u1000", "\u109f"),  # Myanmar
    ("\u1780", "\u17ff"),  # Khmer
    ("\u3040", "\u30ff"),  # Hiragana, Katakana
    ("\u3400", "\u9fff"),  # Han
    ("\uf900", "\ufaff"),  # Han, for compatibility
    ("\U00020000", "\U0003ffff"),  # Han, the rare ones
)

Tokenizer = Literal["rouge-score", "unicode"]


class RougeL(NamedTuple):
    """A score, and how it came about."""

    fmeasure: float
    """F1 of precision and recall."""
    tokenizer: Tokenizer
    """The tokenizer whose words were counted."""
    is_cut: bool = False
    """Whether a text was too long to be compared whole."""


def rouge_l(prediction: str, reference: str) -> RougeL:
    """Scores an output against a reference.

    >>> rouge_l("the cat sat", "The cat sat down.")
    RougeL(fmeasure=0.8571428571428571, tokenizer='rouge-score', is_cut=False)
    >>> rouge_l("Кошка спит.", "кошка спит")
    RougeL(fmeasure=1.0, tokenizer='unicode', is_cut=False)
    """
    if _has_other_letters(prediction) or _has_other_letters(reference):
        tokenizer: Tokenizer = "unicode"
        predicted, expected = unicode_words(prediction), unicode_words(reference)
    else:
        tokenizer = "rouge-score"
        predicted, expected = _package_words(prediction), _package_words(reference)
        if max(len(predicted), len(expected)) <= MAX_PACKAGE_TOKENS:
            score = _package_scorer().score(target=reference, prediction=prediction)
            return RougeL(float(score["rougeL"].fmeasure), tokenizer)
    is_cut = max(len(predicted), len(expected)) > MAX_TOKENS
    return RougeL(fmeasure(predicted[:MAX_TOKENS], expected[:MAX_TOKENS]), tokenizer, is_cut)


def fmeasure(predicted: list[str], expected: list[str]) -> float:
    """F1 of the longest common subsequence, computed in the order in which the package computes it.

    >>> fmeasure(["a", "b"], ["a", "c", "b"])
    0.8
    """
    if not predicted or not expected:
        return 0.0
    common = common_length(predicted, expected)
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def common_length(first: list[str], second: list[str]) -> int:
    """Length of the longest common subsequence (Hyyrö's bit-parallel way).

    >>> common_length(list("abcbdab"), list("bdcaba"))
    4
    """
    places: dict[str, int] = {}
    for index, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << index
    everything = (1 << len(first)) - 1
    row = everything
    for token in second:
        place = places.get(token)
        if place is not None:
            both = row & place
            row = ((row + both) | (row - both)) & everything
    return len(first) - row.bit_count()


def unicode_words(text: str) -> list[str]:
    """Cuts a text into words of letters, marks and digits; scripts without spaces into characters.

    >>> unicode_words("Café № 7, 東京タワー")
    ['café', 'no', '7', '東', '京', 'タ', 'ワ', 'ー']
    """
    words: list[str] = []
    word: list[str] = []
    for char in normalized("NFKC", text).lower():
        stands_alone = any(first <= char <= last for first, last in _SCRIPTS_WITHOUT_SPACES)
        is_letter = unicodedata.category(char)[0] in "LMN"
        if word and (stands_alone or not is_letter):
            words.append("".join(word))
            word = []
        if stands_alone and is_letter:
            words.append(char)
        elif is_letter:
            word.append(char)
    return [*words, "".join(word)] if word else words


def _has_other_letters(text: str) -> bool:
    """Whether there are letters that the package's tokenizer would lose."""
    return not text.isascii() and any(char.isalpha() and not char.isascii() for char in text)


def _package_words(text: str) -> list[str]:
    """The package's own tokens; this part of it is light."""
    from rouge_score.tokenize import tokenize  # noqa: PLC0415 - only cases with a reference need the package

    words: list[str] = tokenize(text, None)
    return words


@cache
def _package_scorer() -> Any:
    """The package's scorer, without stemming."""
    from rouge_score.rouge_scorer import (  # noqa: PLC0415 - 0.6 s and 50 MB: it brings nltk, absl and numpy
        RougeScorer,
    )

    return RougeScorer(["rougeL"], use_stemmer=False)
