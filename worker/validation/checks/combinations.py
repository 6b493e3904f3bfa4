"""The checks `all`, `any`, `mean` and `not`: checks of checks."""

from functools import partial
from typing import Final

from shared.contracts.checks import Check
from worker.validation.checks.kind import (
    FAILED,
    MANY_CHECKS,
    ONE_CHECK,
    PASSED,
    Held,
    Inner,
    Label,
    Nested,
    Score,
    Subject,
    inner_scores,
    join_list,
    passes,
    skipped,
    split_list,
    undecided,
)


def all_of(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes the least score; checks that call a model are left out when another has a score of 0."""
    scores = inner_scores(check, subject, inner, settled_by=FAILED)
    counted = [(each, score) for each, score in scores if score.value is not None]
    failed = [f"{inner.name(each)}: {score.reason}" for each, score in counted if not score.passed]
    reason = f"{len(failed)} of {len(check.checks)} failed: {'; '.join(failed)}" if failed else "all passed"
    worst = Score(min((score.value or 0.0 for _, score in counted), default=1.0), reason, passed=not failed)
    if open_score := undecided(scores, inner, is_settled=not passes(check, worst)):
        return open_score
    return worst if counted else skipped(f"none of {len(check.checks)} checks has anything to look at")


ALL: Final = Nested(all_of, partial(split_list, "all"), join_list, {**MANY_CHECKS, "minItems": 1})


def any_of(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes the greatest score; checks that call a model are left out when another has a score of 1."""
    scores = inner_scores(check, subject, inner, settled_by=PASSED)
    counted = [(each, score) for each, score in scores if score.value is not None]
    passed = next((f"{inner.name(each)}: {score.reason}" for each, score in counted if score.passed), "")
    reason = passed or "none passed: " + "; ".join(
        f"{inner.name(each)}: {score.reason}" for each, score in counted
    )
    best = Score(max((score.value or 0.0 for _, score in counted), default=0.0), reason, passed=bool(passed))
    if open_score := undecided(scores, inner, is_settled=bool(passes(check, best))):
        return open_score
    return best if counted else skipped(f"none of {len(check.checks)} checks has anything to look at")


ANY: Final = Nested(any_of, partial(split_list, "any"), join_list, {**MANY_CHECKS, "minItems": 1})


NEVER: Final = -1.0
"""A score that no check has: no other settles a mean."""


def mean_of(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes the mean of the scores by the weights of the checks."""
    scores = inner_scores(check, subject, inner, settled_by=NEVER)
    if open_score := undecided(scores, inner, is_settled=False):
        return open_score
    counted = [(1.0 if each.weight is None else each.weight, score) for each, score in scores]
    weighed = [(weight, score.value) for weight, score in counted if score.value is not None and weight]
    if not weighed:
        return skipped(f"none of {len(check.checks)} checks has anything to look at")
    mean = sum(weight * value for weight, value in weighed) / sum(weight for weight, _ in weighed)
    failed = [f"{inner.name(each)}: {score.reason}" for each, score in scores if score.value == FAILED]
    return Score(mean, f"mean of {len(weighed)} scores {mean:.3f}" + "".join(f"; {each}" for each in failed))


MEAN: Final = Nested(mean_of, partial(split_list, "mean"), join_list, {**MANY_CHECKS, "minItems": 1})


def negation(check: Check, subject: Subject, inner: Inner) -> Score:
    """Takes 1 less the score; a check that could not be evaluated has not failed, so it passes nothing."""
    found = inner.score(check.checks[0], subject)
    if found.value is None:
        return found
    if found.error:
        return found._replace(value=FAILED, passed=False)
    return Score(1 - found.value, found.reason, found.detail, passed=not found.passed)


def not_title(check: Check, label: Label) -> str:
    """Names what must not pass."""
    return f"not {label(check.checks[0])}"


NOT: Final = Nested(
    negation,
    split=lambda value: (None, [Held((), value)]),
    join=lambda _, checks: checks[0],
    schema=ONE_CHECK,
    is_negation=True,
)
