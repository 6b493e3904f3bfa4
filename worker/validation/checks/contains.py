"""The check `contains`: a text is somewhere in the output."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.texts import begins, comparable
from worker.validation.display import show


def contains(check: Check, subject: Subject) -> Score:
    """Looks for one text.

    >>> contains(Check("contains", "Paris"), Subject("It is Paris.")).value
    1.0
    >>> contains(Check("contains", "Paris"), Subject("It is Rome.")).reason
    '"Paris" is nowhere in the output, which begins: It is Rome.'
    """
    if comparable(check.argument, check) in comparable(subject.text, check):
        return yes(f"{show(check.argument)} is in the output")
    return no(f"{show(check.argument)} is nowhere in {begins(subject.text)}")
