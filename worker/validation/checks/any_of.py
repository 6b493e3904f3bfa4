"""The check `any`: at least one of its checks passes."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import PASSED, Inner, Score, Subject, skipped


def any_of(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes the greatest score; checks that call a model are left out when another has a score of 1."""
    scores: list[tuple[Check, Score]] = []
    for each in sorted(check.checks, key=lambda each: inner.is_open(each, subject)):
        if inner.is_open(each, subject) and any(score.value == PASSED for _, score in scores):
            break
        scores.append((each, inner.score(each, subject)))
    counted = [(each, score) for each, score in scores if score.value is not None]
    if not counted:
        return skipped(f"none of {len(check.checks)} checks has anything to look at")
    passed = next((f"{each.label}: {score.reason}" for each, score in counted if score.passed), "")
    reason = passed or "none passed: " + "; ".join(f"{each.label}: {score.reason}" for each, score in counted)
    return Score(max(score.value or 0.0 for _, score in counted), reason, passed=bool(passed))
