"""The check `bleu`: how many phrases of a reference text the output has, up to four words long."""

import re
from collections import Counter
from math import exp, log
from typing import Annotated, Final

from pydantic import Field

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject
from worker.validation.checks.texts import PartOfText

LONGEST_PHRASE: Final = 4
MAX_WORDS: Final = 20_000
"""Words of either text that are compared; the score says when there were more."""
MAX_REFERENCES: Final = 20
References = PartOfText | Annotated[list[PartOfText], Field(min_length=1, max_length=MAX_REFERENCES)]
"""One text, or several of which the output may be like any."""

_WORD: Final = re.compile(r"\w+|[^\w\s]")


def bleu(check: Check, subject: Subject) -> Score:
    """Takes BLEU-4 of words and punctuation; counts of longer phrases are smoothed by adding 1.

    >>> bleu(Check("bleu", "The cat sat on the mat."), Subject("The cat sat on a mat.")).reason
    'BLEU 0.592'
    """
    references = check.argument if isinstance(check.argument, list) else [check.argument]
    found = _words(subject.text)
    wanted = [_words(reference) for reference in references]
    score = bleu_score(found[:MAX_WORDS], [words[:MAX_WORDS] for words in wanted])
    is_cut = max(map(len, [found, *wanted])) > MAX_WORDS
    note = f", of the first {MAX_WORDS:,} words" if is_cut else ""
    return Score(score, f"BLEU {score:.3f}{note}")


def bleu_score(found: list[str], references: list[list[str]]) -> float:
    """BLEU of one sentence: the geometric mean of the shares of its phrases that a reference has too.

    >>> bleu_score("a b c d".split(), ["a b c d".split()]), bleu_score(["x"], [["a"]])
    (1.0, 0.0)
    """
    longest = min(LONGEST_PHRASE, len(found))
    logs = 0.0
    for size in range(1, longest + 1):
        ours, most = _phrases(found, size), Counter[tuple[str, ...]]()
        for reference in references:
            most |= _phrases(reference, size)
        shared, total = (ours & most).total(), ours.total()
        if size > 1:  # one phrase that is missing would make the whole score 0
            shared, total = shared + 1, total + 1
        if not shared:
            return 0.0
        logs += log(shared / total)
    if not longest:
        return 0.0
    nearest = min((abs(len(reference) - len(found)), len(reference)) for reference in references)[1]
    penalty = 1.0 if len(found) >= nearest else exp(1 - nearest / len(found))
    return penalty * exp(logs / longest)


def _words(text: str) -> list[str]:
    """Words and signs."""
    return [match.group() for match, _ in zip(_WORD.finditer(text), range(MAX_WORDS + 1), strict=False)]


def _phrases(words: list[str], size: int) -> Counter[tuple[str, ...]]:
    """Counts the runs of so many words."""
    return Counter(zip(*(words[start:] for start in range(size)), strict=False))
