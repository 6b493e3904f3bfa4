"""The check `max_cost`: the answer cost at most this many US dollars."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject
from worker.validation.checks.recorded_figures import at_most


def max_cost(check: Check, subject: Subject) -> Score:
    """Compares the price of the call, judges and other checks not included.

    >>> from worker.validation.checks.kind import Answer
    >>> max_cost(Check("max_cost", 0.001), Subject("Hi", Answer(cost_usd=0.00025))).reason
    'the call cost 0.00025 US dollars, expected at most 0.001'
    """
    return at_most(subject.answer.cost_usd, check.argument, "the call cost {} US dollars")
