"""Recognises cases with criteria or checks that only a later version of the worker has."""

from collections.abc import Collection, Sequence
from typing import Final

from shared.contracts.cases import CRITERIA
from shared.contracts.checks import Check
from worker.validation.scoring import unknown_kinds

UNKNOWN_CRITERION: Final = "unknown_criterion"
UNKNOWN_CHECK: Final = "unknown_check"


def error_of_later_version(criteria: Collection[str], checks: Sequence[Check]) -> tuple[str, str] | None:
    """Finds what this version lacks to evaluate a case.

    Args:
        criteria: names of the criteria of the case.
        checks: its checks.

    Returns:
        Code and message of the case's error; None when nothing is lacking.

    >>> error_of_later_version(["label"], [Check("contains", "a")]) is None
    True
    """
    version, advice = "this version of the worker", "update all workers, then `proctor retry`"
    if unknown := sorted(set(criteria) - set(CRITERIA)):
        return UNKNOWN_CRITERION, f"{version} cannot check {', '.join(unknown)}; {advice}"
    if unknown := unknown_kinds(checks):
        return UNKNOWN_CHECK, f"{version} has no check {', '.join(unknown)}; {advice}"
    return None
