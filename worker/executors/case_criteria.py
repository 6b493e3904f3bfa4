"""What validation takes from an item: the case with its criteria, its checks, and the rules for them.

Also which of them only a later version of the worker has.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from shared.contracts.case_run import CasePayload, CaseRun
from shared.contracts.cases import CRITERIA
from shared.contracts.checks import Check, Transform
from worker.validation.check_verdict import Rules
from worker.validation.checks.table import CHECK_KINDS
from worker.validation.checks.walks import kinds_in

UNKNOWN_CRITERION: Final = "unknown_criterion"
UNKNOWN_CHECK: Final = "unknown_check"
_OF_CASES: Final = tuple(name for name in CRITERIA if name not in {"checks", "transform"})


def case_of(run: CaseRun, payload: CasePayload, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Puts together what the pipeline needs of a case, but for its checks."""
    criteria = {name: payload.criteria[name] for name in _OF_CASES if name in payload.criteria}
    of_run = {"schema": run.schema, "json_extraction": run.json_extraction}
    return {"input": payload.input, "vars": variables, "metadata": payload.metadata, **criteria, **of_run}


def checks_of(payload: CasePayload) -> tuple[Check, ...]:
    """The checks of a case as the pipeline takes them."""
    raw = payload.criteria.get("checks")
    return msgspec.convert(raw, tuple[Check, ...]) if raw else ()


def transforms_of(run: CaseRun, payload: CasePayload) -> tuple[Transform, ...]:
    """How an answer is changed before it is checked: first as its model says, then as its case does."""
    of_model, of_case = run.transforms.get(payload.model), payload.criteria.get("transform")
    given = (of_model, msgspec.convert(of_case, Transform) if of_case else None)
    return tuple(each for each in given if each is not None)


def rules_of(payload: CasePayload) -> Rules:
    """What a case says about its checks as a whole."""
    criteria = payload.criteria
    return Rules(criteria.get("at_least"), is_always=criteria.get("paid_checks") == "always")


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
    if unknown := sorted(kinds_in(checks) - CHECK_KINDS.keys()):
        return UNKNOWN_CHECK, f"{version} has no check {', '.join(unknown)}; {advice}"
    return None
