"""What checks make of the verdict of the stages, which come first, and whose finding stands."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from shared.contracts.case_vocabulary import CaseStatus
from shared.contracts.checks import finding
from worker.validation.case_verdict import CHECKS, CheckResult, ValidationResult
from worker.validation.scoring import is_broken, verdict

MAX_SHOWN_CHECKS: Final = 5
"""Failed checks that a message names."""
MAX_SHOWN_CHARS: Final = 500
"""Characters of a check's reason in a message; its row has all of it."""


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
