"""The check `contains_any`: at least one of several texts is somewhere in the output."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.texts import begins, compared_texts, listed
from worker.validation.display import show


def contains_any(check: Check, subject: Subject) -> Score:
    """Looks for one of several texts.

    >>> contains_any(Check("contains_any", ["Paris", "Lutetia"]), Subject("Lutetia")).reason
    '"Lutetia" is in the output'
    """
    text, parts = compared_texts(check, subject)
    found = next(
        (part for part, compared in zip(check.argument, parts, strict=True) if compared in text), None
    )
    if found is not None:
        return yes(f"{show(found)} is in the output", found=found)
    return no(f"none of {listed(check.argument)} is in {begins(subject.text)}")
