"""The check `refusal`: the model refused to answer."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.refusal_signs import refusal_sign


def refusal(_: Check, subject: Subject) -> Score:
    r"""Looks for the provider's field, then for the usual words of a refusal.

    >>> refusal(Check("refusal"), Subject("I'm sorry, but I can't help with that.")).reason
    'refused: the output has the words "I\'m sorry, but I can\'t"'
    """
    sign = refusal_sign(subject)
    return yes(f"refused: {sign}") if sign else no("no refusal found")
