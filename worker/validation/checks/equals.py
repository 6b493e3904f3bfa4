"""The check `equals`: the output is this text, or the selected JSON value is this value."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.texts import comparable
from worker.validation.display import show_pair


def equals(check: Check, subject: Subject) -> Score:
    """Compares the whole text.

    >>> equals(Check("equals", "Paris", options={"ignore_case": True}), Subject("PARIS")).value
    1.0
    >>> equals(Check("equals", "Paris"), Subject("Rome")).reason
    'expected "Paris", found "Rome"'
    """
    if comparable(check.argument, check) == comparable(subject.text, check):
        return yes("equal to the expected text")
    expected, found = show_pair(check.argument, subject.text)
    return no(f"expected {expected}, found {found}")
