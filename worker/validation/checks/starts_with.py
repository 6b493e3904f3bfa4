"""The check `starts_with`: the output begins with a text."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.texts import begins, comparable
from worker.validation.display import show


def starts_with(check: Check, subject: Subject) -> Score:
    """Compares the beginning; leading white space counts unless `normalize` is set.

    >>> starts_with(Check("starts_with", "Yes"), Subject("Yes, of course.")).value
    1.0
    """
    if comparable(subject.text, check).startswith(comparable(check.argument, check)):
        return yes(f"the output starts with {show(check.argument)}")
    return no(f"{show(check.argument)} is not the start of {begins(subject.text)}")
