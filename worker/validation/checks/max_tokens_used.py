"""The check `max_tokens_used`: prompt and answer together have at most this many tokens."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject
from worker.validation.checks.recorded_figures import at_most


def max_tokens_used(check: Check, subject: Subject) -> Score:
    """Compares the tokens that the provider counted.

    >>> from worker.validation.checks.kind import Answer
    >>> max_tokens_used(Check("max_tokens_used", 100), Subject("Hi", Answer(tokens=120))).reason
    'the call used 120 tokens, expected at most 100'
    """
    return at_most(subject.answer.tokens, check.argument, "the call used {} tokens")
