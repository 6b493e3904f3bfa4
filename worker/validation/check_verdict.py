"""What checks make of a case: its verdict, and which paid check is asked next, if one still matters; pure.

Stages come first, and their finding stands. Cheap checks are asked first. Without `at_least` of the case,
paid checks are asked as long as all others passed; with it, as long as their scores can change whether the
weighted mean reaches it. A check without weight decides nothing and comes last, when the case passes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from shared.contracts.case_vocabulary import CaseStatus
from shared.contracts.checks import Check, finding
from shared.thresholds import reaches
from worker.validation.case_verdict import CHECKS, CheckResult, ValidationResult
from worker.validation.checks.kind import AsksEmbeddings
from worker.validation.checks.table import CHECK_KINDS

MAX_SHOWN_CHECKS: Final = 5
"""Failed checks that a message names."""
MAX_SHOWN_CHARS: Final = 500
"""Characters of a check's reason in a message; its row has all of it."""
FAILED_BEFORE: Final = "not asked: the case has failed already"
"""The reason of paid checks of a case that a stage has failed."""


def with_checks(
    result: ValidationResult, at_least: float | None = None, rows: Sequence[CheckResult] | None = None
) -> ValidationResult:
    """Decides a case by its checks, after everything else has been decided.

    Args:
        result: the verdict of the stages, and of judges if they were asked.
        at_least: the mean score from which the case passes; None: every check must pass.
        rows: all checks, paid ones included; None: those of the result.

    >>> from worker.validation.pipeline import before_judge
    >>> result = before_judge({"checks": [{"contains": "Paris"}]}, "Rome")
    >>> with_checks(result).status, with_checks(result).decided_by, with_checks(result).score
    (<CaseStatus.FAILED_CHECKS: 'failed_checks'>, 'checks', 0.0)
    """
    rows = result.checks if rows is None else tuple(rows)
    if not rows:
        return result
    passed, score = verdict(rows, at_least)
    checks = tuple(rows)
    if not result.passed or score is None:  # without a score no check has decided anything
        return replace(result, checks=checks, score=score)
    if passed:
        return replace(result, checks=checks, score=score, decided_by=CHECKS)
    return replace(
        result,
        checks=checks,
        score=score,
        passed=False,
        status=CaseStatus.FAILED_CHECKS,
        decided_by=CHECKS,
        message=_message(rows, score, at_least),
        used_fuzzy_match=False,
    )


def _message(rows: Sequence[CheckResult], score: float | None, at_least: float | None) -> str:
    """Names which checks failed, and why."""
    broken = [row for row in rows if is_broken(row)]
    failed = (
        broken
        if broken and at_least is not None
        else [row for row in rows if row.passed is False and row.weight > 0]
    )
    named = [
        finding(row.name, row.reason[:MAX_SHOWN_CHARS], row.score, row.at_least)
        for row in failed[:MAX_SHOWN_CHECKS]
    ]
    if len(failed) > len(named):
        named.append(f"and {len(failed) - len(named)} more")
    if failed is broken:
        counted = "the check" if len(rows) == 1 else f"{len(broken)} of {len(rows)} checks"
        return f"{counted} could not be evaluated: {'; '.join(named)}"
    mean = "" if at_least is None else f"mean score {score or 0:.2f} < {at_least:g}; "
    counted = "" if len(rows) == 1 else f"{len(failed)} of {len(rows)} checks failed: "
    return f"{mean}{counted}{'; '.join(named)}"


def verdict(rows: Sequence[CheckResult], at_least: float | None = None) -> tuple[bool, float | None]:
    """Whether a case passes, and the weighted mean of the scores.

    Args:
        rows: its checks; those without a score do not count.
        at_least: the mean from which the case passes, if each check could be evaluated; None: every check
            must pass.

    >>> rows = [CheckResult("a", "contains", 1.0, True, ""), CheckResult("b", "contains", 0.0, False, "")]
    >>> verdict(rows), verdict(rows, 0.5), verdict([])
    ((False, 0.5), (True, 0.5), (True, None))
    """
    counted = [row for row in rows if row.score is not None and row.weight > 0]
    mean = mean_score(counted)
    if at_least is None or mean is None:
        return all(row.passed for row in counted), mean
    return reaches(mean, at_least) and not any(map(is_broken, counted)), mean


def is_broken(row: CheckResult) -> bool:
    """Whether a check that decides could not be evaluated."""
    return "error" in row.detail and row.weight > 0


def mean_score(rows: Sequence[CheckResult]) -> float | None:
    """The weighted mean of scores; None without any."""
    scored = [(row.score, row.weight) for row in rows if row.score is not None and row.weight > 0]
    total = sum(weight for _, weight in scored)
    return sum(score * weight for score, weight in scored) / total if scored else None


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
    is_judged = not isinstance(CHECK_KINDS[check.check].asks, AsksEmbeddings)
    return check.weight == 0, price is None, price or 0.0, is_judged, at
