"""The check `one_of`: the output is one of several texts."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.texts import compared_texts, listed
from worker.validation.display import show


def one_of(check: Check, subject: Subject) -> Score:
    """Compares the whole text with each of a list.

    >>> one_of(Check("one_of", ["yes", "no"]), Subject("maybe")).reason
    'expected one of "yes", "no", found "maybe"'
    """
    text, choices = compared_texts(check, subject)
    if text in choices:
        return yes(f"it is {show(check.argument[choices.index(text)])}")
    return no(f"expected one of {listed(check.argument)}, found {show(subject.text)}")
