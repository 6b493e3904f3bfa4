"""The check `any`: at least one of its checks passes."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import PASSED, Inner, Score, Subject, inner_scores, skipped


def any_of(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes the greatest score; checks that call a model are left out when another has a score of 1."""
    counted = inner_scores(check, subject, inner, settled_by=PASSED)
    if not counted:
        return skipped(f"none of {len(check.checks)} checks has anything to look at")
    passed = next((f"{each.label}: {score.reason}" for each, score in counted if score.passed), "")
    reason = passed or "none passed: " + "; ".join(f"{each.label}: {score.reason}" for each, score in counted)
    return Score(max(score.value or 0.0 for _, score in counted), reason, passed=bool(passed))
