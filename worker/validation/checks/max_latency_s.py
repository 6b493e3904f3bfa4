"""The check `max_latency_s`: the answer took at most this many seconds."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject
from worker.validation.checks.recorded_figures import at_most


def max_latency_s(check: Check, subject: Subject) -> Score:
    """Compares the time of the call; of a cached answer, when it was first given.

    >>> from worker.validation.checks.kind import Answer
    >>> max_latency_s(Check("max_latency_s", 5), Subject("Hi", Answer(latency_s=1.25))).reason
    'the call took 1.25 s, expected at most 5'
    """
    return at_most(subject.answer.latency_s, check.argument, "the call took {} s")
