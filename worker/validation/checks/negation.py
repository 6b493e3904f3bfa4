"""The check `not`: its check does not pass."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import FAILED, Inner, Score, Subject


def negation(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes 1 less the score; a check that could not be evaluated has not failed, so it passes nothing."""
    found = inner.score(check.checks[0], subject)
    if found.value is None:
        return found
    if found.error:
        return found._replace(value=FAILED, passed=False)
    return Score(1 - found.value, found.reason, found.detail, passed=not found.passed)
