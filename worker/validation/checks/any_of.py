"""The check `any`: at least one of its checks passes."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import (
    PASSED,
    Inner,
    Score,
    Subject,
    inner_scores,
    passes,
    skipped,
    undecided,
)


def any_of(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes the greatest score; checks that call a model are left out when another has a score of 1."""
    scores = inner_scores(check, subject, inner, settled_by=PASSED)
    counted = [(each, score) for each, score in scores if score.value is not None]
    passed = next((f"{each.rendered}: {score.reason}" for each, score in counted if score.passed), "")
    reason = passed or "none passed: " + "; ".join(
        f"{each.rendered}: {score.reason}" for each, score in counted
    )
    best = Score(max((score.value or 0.0 for _, score in counted), default=0.0), reason, passed=bool(passed))
    if open_score := undecided(scores, is_settled=bool(passes(check, best))):
        return open_score
    return best if counted else skipped(f"none of {len(check.checks)} checks has anything to look at")
