"""The check `all`: each of its checks passes."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import (
    FAILED,
    Inner,
    Score,
    Subject,
    inner_scores,
    passes,
    skipped,
    undecided,
)


def all_of(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes the least score; checks that call a model are left out when another has a score of 0."""
    scores = inner_scores(check, subject, inner, settled_by=FAILED)
    counted = [(each, score) for each, score in scores if score.value is not None]
    failed = [f"{each.rendered}: {score.reason}" for each, score in counted if not score.passed]
    reason = f"{len(failed)} of {len(check.checks)} failed: {'; '.join(failed)}" if failed else "all passed"
    worst = Score(min((score.value or 0.0 for _, score in counted), default=1.0), reason, passed=not failed)
    if open_score := undecided(scores, is_settled=not passes(check, worst)):
        return open_score
    return worst if counted else skipped(f"none of {len(check.checks)} checks has anything to look at")
