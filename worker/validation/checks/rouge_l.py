"""The check `rouge_l`: how much of a reference text the output keeps, in order."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject
from worker.validation.rouge import rouge_l as rouge_score


def rouge_l(check: Check, subject: Subject) -> Score:
    """Takes ROUGE-L's F1, as for the `reference` of a case.

    >>> rouge_l(Check("rouge_l", "The cat sat down."), Subject("the cat sat")).reason
    'ROUGE-L 0.857'
    """
    found = rouge_score(subject.text, check.argument)
    note = ", of the beginning of long texts" if found.is_cut else ""
    return Score(found.fmeasure, f"ROUGE-L {found.fmeasure:.3f}{note}", {"tokenizer": found.tokenizer})
