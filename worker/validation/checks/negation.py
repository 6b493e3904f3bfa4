"""The check `not`: its check does not pass."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Inner, Score, Subject


def negation(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes 1 less the score."""
    found = inner.score(check.checks[0], subject)
    if found.value is None:
        return found
    return Score(1 - found.value, found.reason, found.detail, passed=not found.passed)
