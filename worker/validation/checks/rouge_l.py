"""The checks `rouge_l` and `rouge_1`: how much of a reference text the output keeps."""

import re
from collections import Counter
from typing import Final

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject
from worker.validation.rouge import MAX_TOKENS
from worker.validation.rouge import rouge_l as rouge_score

_WORD: Final = re.compile(r"n't\b|'\w+|(?:(?!n't\b)\w)+|[^\w\s]")


def rouge_l(check: Check, subject: Subject) -> Score:
    """Takes ROUGE-L's F1, as for the `reference` of a case.

    >>> rouge_l(Check("rouge_l", "The cat sat down."), Subject("the cat sat")).reason
    'ROUGE-L 0.857'
    """
    found = rouge_score(subject.text, check.argument)
    note = ", of the beginning of long texts" if found.is_cut else ""
    return Score(found.fmeasure, f"ROUGE-L {found.fmeasure:.3f}{note}", {"tokenizer": found.tokenizer})


def rouge_1(check: Check, subject: Subject) -> Score:
    """Takes the F1 of words and signs that both texts have, in any order and whatever their letter case.

    >>> rouge_1(Check("rouge_1", "The cat sat down."), Subject("the cat sat")).reason
    'ROUGE-1 0.750'
    """
    expected, found = (_WORD.findall(text.lower())[:MAX_TOKENS] for text in (check.argument, subject.text))
    shared = (Counter(expected) & Counter(found)).total()
    score = 2 * shared / (len(expected) + len(found)) if shared else 0.0
    return Score(score, f"ROUGE-1 {score:.3f}")
