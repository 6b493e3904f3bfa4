"""Which paid check is asked next, and whether one still matters, pure.

Cheap ones come first. Without `at_least` of the case, paid checks are asked as long as all others passed;
with it, as long as their scores can change whether the weighted mean reaches it. A check without weight
decides nothing and comes last, when the case passes.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.contracts.checks import Check
from shared.thresholds import reaches
from worker.validation.case_verdict import CheckResult
from worker.validation.scoring import is_broken, verdict

FAILED_BEFORE: Final = "not asked: the case has failed already"
"""The reason of paid checks of a case that a stage has failed."""


class Rules(NamedTuple):
    """What a case says about its checks as a whole."""

    at_least: float | None = None
    """The weighted mean from which it passes; None: every check must pass."""
    is_always: bool = False
    """Whether all paid checks are asked (`paid_checks: always`)."""


def next_check(
    checks: Sequence[Check], rows: Sequence[CheckResult], prices: Sequence[float | None], rules: Rules
) -> int | None:
    """The position of the paid check to ask next; None when none matters any more.

    Args:
        checks: those of the case.
        rows: what is known of each so far.
        prices: what asking each may cost, in US dollars; None: not known.
        rules: of the case.

    >>> from worker.validation.scoring import open_row
    >>> checks = [Check("rubric", "Polite?"), Check("similar", "Paris"), Check("contains", "Paris")]
    >>> rows = [open_row(checks[0]), open_row(checks[1]), CheckResult("c", "contains", 1.0, True, "")]
    >>> next_check(checks, rows, [0.01, 0.0001, None], Rules())
    1
    """
    unasked = [at for at, row in enumerate(rows) if row.is_open]
    if not rules.is_always:
        unasked = [at for at in unasked if _matters(checks[at], checks, rows, rules)]
    return min(unasked, key=lambda at: _cost(checks[at], prices[at], at), default=None)


def close(rows: Sequence[CheckResult], rules: Rules) -> list[CheckResult]:
    """Gives the checks that were not asked their reason.

    >>> from worker.validation.scoring import open_row
    >>> failed = CheckResult("c", "contains", 0.0, False, "")
    >>> close([failed, open_row(Check("rubric", "Polite?"))], Rules())[1].reason
    'not asked: another check failed'
    """
    why = "another check failed" if rules.at_least is None else "its score cannot change the outcome"
    return skip_open(rows, f"not asked: {why}")


def skip_open(rows: Sequence[CheckResult], reason: str) -> list[CheckResult]:
    """Gives the checks that were not asked a reason."""
    return [row._replace(reason=reason, is_open=False) if row.is_open else row for row in rows]


def _matters(check: Check, checks: Sequence[Check], rows: Sequence[CheckResult], rules: Rules) -> bool:
    """Whether the score of an open check can change the outcome, or is wanted for itself."""
    passes, _ = verdict(rows, rules.at_least)
    if rules.at_least is None:
        return passes
    if any(map(is_broken, rows)):
        return False
    known = [(row.score, row.weight) for row in rows if row.score is not None]
    weight = sum(each for _, each in known)
    total = sum(score * each for score, each in known)
    missing = sum(each.weight for each, row in zip(checks, rows, strict=True) if row.is_open)
    if not missing:
        return passes
    worst, best = total / (weight + missing), (total + missing) / (weight + missing)
    if reaches(worst, rules.at_least):
        return check.weight == 0
    return check.weight > 0 and reaches(best, rules.at_least)


def _cost(check: Check, price: float | None, at: int) -> tuple[bool, bool, float, bool, int]:
    """Orders checks: those that decide first, then by price if it is known, then embeddings before judges."""
    return check.weight == 0, price is None, price or 0.0, check.check != "similar", at
