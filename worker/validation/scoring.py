"""Scores of checks and what follows from them for a case, pure.

run_deterministic(checks, subject)     a row for each check; paid ones are not asked yet
verdict(rows, at_least)                whether the case passes, and its score
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from shared.contracts.checks import Check
from worker.validation.checks.kind import PASSED, Score, Subject, no, skipped
from worker.validation.checks.table import KINDS
from worker.validation.display import escape_surrogates

MAX_REASON_CHARS: Final = 4_000
"""Characters of a reason that are kept."""
NOT_ASKED: Final = "not asked yet"
"""The reason of a paid check that was not asked yet."""


class CheckResult(NamedTuple):
    """What became of one check."""

    name: str
    """What people call it."""
    check: str
    """Its kind."""
    score: float | None
    """From 0 to 1; None: not asked, or nothing to look at."""
    passed: bool | None
    """Whether it passed; None without a score."""
    reason: str
    """What was expected, and what was found."""
    cost_usd: float | None = None
    """What asking cost; None: nothing was asked, or the price is not known."""
    detail: Mapping[str, Any] = {}
    """For programs."""
    weight: float = 1.0
    """How much the score counts."""

    def as_document(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "name": self.name,
            "check": self.check,
            "score": self.score,
            "passed": self.passed,
            "reason": escape_surrogates(self.reason, MAX_REASON_CHARS),
            "cost_usd": self.cost_usd,
            "detail": dict(self.detail),
        }


def run_deterministic(checks: Sequence[Check], subject: Subject) -> list[CheckResult]:
    """Evaluates the checks that call no model; the others get a row that says that they were not asked.

    Raises:
        CheckUnusableError: a pattern or function cannot be run, whatever the output.

    >>> rows = run_deterministic([Check("contains", "Paris"), Check("contains", "Rome")], Subject("Paris"))
    >>> [(row.name, row.score, row.passed) for row in rows]
    [('contains: Paris', 1.0, True), ('contains: Rome', 0.0, False)]
    """
    return [
        result_of(check, skipped(NOT_ASKED) if is_paid(check) else evaluate(check, subject))
        for check in checks
    ]


def evaluate(check: Check, subject: Subject) -> Score:
    """Finds the score of one check; of a combination from those of its inner checks."""
    kind = KINDS[check.check]
    if kind.combine is not None:
        return kind.combine(check, [_with_verdict(inner, evaluate(inner, subject)) for inner in check.checks])
    if kind.run is None:
        return no(f"{check.check} cannot be evaluated here")
    return kind.run(check, subject)


def is_paid(check: Check) -> bool:
    """Whether a check calls a model, itself or by an inner check."""
    return KINDS[check.check].is_paid or any(is_paid(inner) for inner in check.checks)


def result_of(check: Check, score: Score, cost_usd: float | None = None) -> CheckResult:
    """Makes the row of a check."""
    return CheckResult(
        check.label,
        check.check,
        score.value,
        passes(check, score),
        score.reason,
        cost_usd,
        score.detail,
        check.weight,
    )


def passes(check: Check, score: Score) -> bool | None:
    """Whether a check passes with a score.

    >>> passes(Check("rouge_l", "a", at_least=0.5), Score(0.5, ""))
    True
    """
    if score.value is None:
        return None
    if check.at_least is not None:
        return score.value >= check.at_least
    return score.value >= PASSED if score.passed is None else score.passed


def verdict(rows: Sequence[CheckResult], at_least: float | None = None) -> tuple[bool, float | None]:
    """Whether a case passes, and the weighted mean of the scores.

    Args:
        rows: its checks; those without a score do not count.
        at_least: the mean from which the case passes; None: every check must pass.

    >>> rows = [CheckResult("a", "contains", 1.0, True, ""), CheckResult("b", "contains", 0.0, False, "")]
    >>> verdict(rows), verdict(rows, 0.5), verdict([])
    ((False, 0.5), (True, 0.5), (True, None))
    """
    counted = [row for row in rows if row.score is not None and row.weight > 0]
    mean = mean_score(counted)
    if at_least is None or mean is None:
        return all(row.passed for row in counted), mean
    return mean >= at_least, mean


def mean_score(rows: Sequence[CheckResult]) -> float | None:
    """The weighted mean of scores; None without any."""
    scored = [(row.score, row.weight) for row in rows if row.score is not None and row.weight > 0]
    total = sum(weight for _, weight in scored)
    return sum(score * weight for score, weight in scored) / total if scored else None


def _with_verdict(check: Check, score: Score) -> Score:
    """The score of an inner check, with whether that check passes."""
    return score._replace(passed=passes(check, score))
