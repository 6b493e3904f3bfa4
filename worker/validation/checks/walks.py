"""Looks through checks and those that they hold: what they need, and what they lack."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from shared.contracts.checks import Check, Transform
from shared.errors import WrongInput
from worker.validation.checks.graded import with_context
from worker.validation.checks.kind import AsksEmbeddings
from worker.validation.checks.table import CHECK_KINDS


def kinds_in(checks: Iterable[Check]) -> set[str]:
    """Names the kinds of checks, and of those that they hold.

    >>> sorted(kinds_in([Check("contains", "a"), Check("not", checks=(Check("refusal"),))]))
    ['contains', 'not', 'refusal']
    """
    found = {check.check for check in checks}
    for check in checks:
        if check.checks:
            found |= kinds_in(check.checks)
    return found


def is_paid(check: Check) -> bool:
    """Whether a check calls a model, itself or by an inner check."""
    return CHECK_KINDS[check.check].asks is not None or (
        bool(check.checks) and any(map(is_paid, check.checks))
    )


def transforms_of(check: Check) -> list[Transform]:
    """How a check changes the output before it looks at it, or makes a part of its argument of it."""
    made = CHECK_KINDS[check.check].transform
    return [each for each in (check.transform, made and made(check)) if each is not None]


def with_transforms(check: Check, ready: Callable[[Transform, str], Transform]) -> Check:
    """Changes the transforms of a check, and of those that it holds.

    Args:
        check: may hold others.
        ready: receives one and the key that it is written under.
    """
    inner = tuple(with_transforms(each, ready) for each in check.checks)
    transform = check.transform and ready(check.transform, "transform")
    argument, made = check.argument, CHECK_KINDS[check.check].transform
    if made is not None and (written := made(check)) is not None:
        argument = with_context(argument, msgspec.to_builtins(ready(written, "context")))
    if (transform, argument, inner) == (check.transform, check.argument, check.checks):
        return check
    return msgspec.structs.replace(check, argument=argument, transform=transform, checks=inner)


def needs_sandbox(checks: Iterable[Check]) -> bool:
    """Whether any check runs what people wrote: patterns, functions or JavaScript."""
    return any(
        CHECK_KINDS[check.check].needs_sandbox
        or any(each.runs_code for each in transforms_of(check))
        or (bool(check.checks) and needs_sandbox(check.checks))
        for check in checks
    )


def calls_functions(checks: Iterable[Check]) -> bool:
    """Whether any check calls a function of the validators file."""
    return any(
        CHECK_KINDS[check.check].calls_function
        or any(each.python is not None for each in transforms_of(check))
        or (bool(check.checks) and calls_functions(check.checks))
        for check in checks
    )


def with_models(check: Check, embedding: str | None, judges: Sequence[str]) -> Check:
    """Adds the default models to checks that ask a model and name none.

    Args:
        check: may hold others.
        embedding: the model of those that ask for embeddings; None: there is no default.
        judges: those of checks that ask judges.

    Raises:
        WrongInput: a check has no model, and there is no default; its path is empty.

    >>> with_models(Check("rubric", "Polite?"), None, ["a"]).models
    ['a']
    """
    kind, options = CHECK_KINDS[check.check], check.options
    if kind.asks is not None and not check.models:
        is_embedded = isinstance(kind.asks, AsksEmbeddings)
        models = [embedding] if is_embedded and embedding else [] if is_embedded else list(judges)
        if not models:
            key = "embedding_model" if is_embedded else "judge_model"
            what = f"{kind.name} asks a model, and none is named"
            raise WrongInput(what, f"add model to the check, or {key} to config")
        options = {**options, **({"model": models[0]} if len(models) == 1 else {"models": models})}
    inner = tuple(with_models(each, embedding, judges) for each in check.checks)
    if options is check.options and inner == check.checks:
        return check
    return msgspec.structs.replace(check, options=options, checks=inner)
