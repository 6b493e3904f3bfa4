"""The check `no_refusal`: the model did not refuse to answer."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.refusal_signs import refusal_sign


def no_refusal(_: Check, subject: Subject) -> Score:
    """The opposite of `refusal`.

    >>> no_refusal(Check("no_refusal"), Subject("Paris")).value
    1.0
    """
    sign = refusal_sign(subject)
    return no(f"refused: {sign}") if sign else yes("no refusal found")
