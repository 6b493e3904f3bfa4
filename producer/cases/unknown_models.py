"""Refuses models without a provider and without an `api_base` before anything is sent."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from producer.cases.checks import places_of_model
from producer.load.problems import Problems, path_text
from producer.text import shown
from shared.errors import InputError, UsageError
from shared.upstream.model_names import has_provider, nearest_listed, suggested_names
from shared.upstream.model_target import ModelTarget
from shared.upstream.protocol_names import misfit

if TYPE_CHECKING:
    from producer.cases.load import PlannedRun
    from producer.options import CaseChoice

BY_OPTION: Final = "give --api-base URL"
BY_FILE: Final = "set its api_base in model_configs"
_ROOT_KEYS: Final = {
    "models",
    "judge_model",
    "judge_models",
    "embedding_model",
    "config",
    "default_checks",
    "pairwise",
}
"""What can name a model in a configuration, beside its cases."""


def unknown_model(target: ModelTarget, where: str, remedy: str = BY_OPTION) -> UsageError | None:
    """Returns the error for a model that nobody serves; None for one with an `api_base`, or a known provider.

    Args:
        target: the model.
        where: the option or the place in a file.
        remedy: how to name its API instead.

    >>> print(unknown_model(ModelTarget("nosuch"), "--model"))
    --model: no provider is known for 'nosuch'
    >>> unknown_model(ModelTarget("nosuch"), "--model").hint
    'write the provider first, e.g. openai/nosuch; for an API of your own, give --api-base URL'
    >>> unknown_model(ModelTarget("opnai/o3"), "--model").hint
    "did you mean 'openai/o3'? For an API of your own, give --api-base URL"
    """
    return None if _is_served(target) else _error(target.model, where, remedy)


def _is_served(target: ModelTarget) -> bool:
    return bool(target.api_base) or target.is_echo or has_provider(target.model)


def _error(model: str, where: str, remedy: str) -> UsageError:
    """Makes the error for a model whose provider is not known."""
    meant = " or ".join(map(repr, suggested_names(model)))
    own = f"or an API of your own, {remedy}"
    name = model.rpartition("/")[2]
    hint = (
        f"did you mean {meant}? F{own}" if meant else f"write the provider first, e.g. openai/{name}; f{own}"
    )
    kind = UsageError if where.startswith("--") else InputError
    return kind(f"{where}: no provider is known for {shown(model)}", hint=hint)


def refuse_unknown_models(plan: "PlannedRun", choice: "CaseChoice") -> None:
    """Refuses a run of cases that asks a model that nobody serves, as model under test, judge or in a check.

    Args:
        plan: the run.
        choice: what the command line says.

    Raises:
        UsageError: there is one; all of them are in its `problems`.
    """
    run, problems = plan.run, Problems()
    under_test = {} if run.recorded else run.models
    refused = set[str]()
    for asked in (under_test, run.judges if plan.facts.has_expected else {}, run.check_models):
        remedy = f"{BY_OPTION} or {BY_FILE}" if asked is under_test else BY_FILE
        for model, target in asked.items():
            if model not in refused and not _is_served(target):
                refused.add(model)
                problems.add(_error(target.model, _where(plan, choice, model), remedy))
    problems.raise_found()


def doubtful_models(plan: "PlannedRun", choice: "CaseChoice") -> Iterator[str]:
    """Warns of models that are called almost as a listed one, and of protocols that a place does not speak.

    Args:
        plan: the run.
        choice: what the command line says.
    """
    run = plan.run
    asked = {**({} if run.recorded else run.models), **run.judges, **run.check_models}
    for model, target in asked.items():
        near = "" if target.api_base else nearest_listed(target.model)
        if near:
            where = _where(plan, choice, model)
            yield f"{where}: {shown(model)} is in no list of models; did you mean {near!r}?"
        what = "" if target.http else misfit(model, target.api_base, target.protocol)
        if what:
            yield f"{_where(plan, choice, model)}: {shown(model)} {what}"


def _where(plan: "PlannedRun", choice: "CaseChoice", model: str) -> str:
    """Returns the option or the place that names a model."""
    if model in choice.models:
        return "--model"
    judging = choice.settings
    if judging is not None and "judge_model" in judging.model_fields_set and model in judging.judges:
        return "--judge"
    root = plan.bench.root
    named = plan.bench.config.model_dump(exclude_unset=True, include=_ROOT_KEYS)
    place = next(places_of_model(named, root, model), None) or plan.bench.cases.asked.get(model)
    return root.file if place is None else f"{place}: {path_text(place.path)}"
