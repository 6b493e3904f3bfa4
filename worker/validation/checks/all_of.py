"""The check `all`: each of its checks passes."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import FAILED, Inner, Score, Subject, inner_scores, skipped


def all_of(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes the least score; checks that call a model are left out when another has a score of 0."""
    counted = inner_scores(check, subject, inner, settled_by=FAILED)
    if not counted:
        return skipped(f"none of {len(check.checks)} checks has anything to look at")
    failed = [f"{each.label}: {score.reason}" for each, score in counted if not score.passed]
    reason = f"{len(failed)} of {len(check.checks)} failed: {'; '.join(failed)}" if failed else "all passed"
    return Score(min(score.value or 0.0 for _, score in counted), reason, passed=not failed)
