"""The settings of a run that make its results differ from another's, by the names that a comparison shows."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from producer.report.comparison.setting_differences import Hidden, Placed
from shared.contracts.case_hashes import hash_of
from shared.contracts.case_run import GIT_KEY, CaseRun, Template
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.contracts.turn_vocabulary import SIGNALS_ONCE
from shared.runs import RunInfo
from shared.upstream.model_target import ModelTarget

PROMPT: Final = "prompt"
"""Name of the setting that has the templates of the prompts."""
RECORDED: Final = "recorded outputs"
"""Name of the setting that says whether answers were recorded."""
USUAL_PLACE: Final = "the provider's own"
"""Endpoint of a model without one of its own."""


def turn_configuration(info: RunInfo) -> dict[str, Any]:
    """Returns what makes the results of turns differ; a namespace where other runs share it."""
    live = LiveRun.from_snapshot(info.snapshot)
    settings = {
        "summary policy": info.snapshot.get("summary_policy"),
        "signals": "each once" if info.snapshot.get(SIGNALS_ONCE) else None,
        "namespace": None if info.namespace == info.run else info.namespace,
    }
    if live is None:
        return settings
    return settings | {
        "model": live.target.model,
        "live": live.live.value,
        "endpoint": live.target.api_base or USUAL_PLACE,
        "temperature": live.temperature,
        "time limit": f"{live.target.timeout_s:g} s",
        "cost cap": live.max_cost,
    }


def case_configuration(info: RunInfo) -> dict[str, Any]:
    """Returns what makes the results of cases differ; headers may carry secrets, so not their values."""
    run = CaseRun.from_snapshot(info.snapshot)
    called = {} if run.recorded else {"endpoint": _endpoints(run.models)}
    return {
        "system prompt": run.system_prompt,
        "models": list(run.models),
        **called,
        "prompts": list(run.prompts),
        PROMPT: Placed(
            {("", name): _template(each) for name, each in run.templates.items()}, names_place=True
        ),
        "temperature": run.temperature,
        "params": _calls(run, "params"),
        "headers": _calls(run, "headers"),
        "judges": list(run.judges),
        "judge endpoint": _endpoints({**run.check_models, **run.judges}),
        "judge params": _options(run.judge_params),
        "judge headers": Placed(
            {
                (model, ""): _hidden(target.headers)
                for model, target in {**run.judges, **run.check_models}.items()
                if target.headers
            }
        ),
        "schema": run.schema,
        "validators": run.validators.source if run.validators else None,
        "JSON extraction": run.json_extraction,
        "repeats": run.repeat,
        RECORDED: run.recorded,
        "streaming": run.stream,
        "time limit": f"{run.timeout_s:g} s",
        "cost cap": run.max_cost,
        "stop at the first failure": run.fail_fast,
        "prices": Placed({(model, ""): msgspec.to_builtins(each) for model, each in run.prices.items()}),
        "commit": ((info.snapshot.get(GIT_KEY) or {}).get("commit_hash") or "")[:12] or None,
    }


def query_configuration(info: RunInfo) -> dict[str, Any]:
    """Returns what makes the results of queries differ; headers may carry secrets, so not their values."""
    run = QueryRun.from_snapshot(info.snapshot)
    return {
        "API": run.api_url,
        "request": f"{run.method} {run.path}",
        "place of the query": run.query_at,
        "places in the reply": _options(run.places),
        "headers": _options(_hidden(run.headers)),
        "bearer token": run.bearer_env or None,
        "repeats": run.repeat,
        "time limit": f"{run.timeout_s:g} s",
        "retries": run.retry_errors,
        "baselines": run.version,
        "apostrophes": "folded" if run.fold_apostrophes else None,
        "chosen queries": run.chosen or None,
        "concurrency": run.concurrency,
    }


def configuration_within(configuration: Mapping[str, Any], by: str, name: str) -> dict[str, Any]:
    """Returns the settings of one model or one prompt of a run.

    Args:
        configuration: the run's.
        by: `model` or `prompt`.
        name: of it.

    >>> whole = {"models": ["m", "n"], "params": Placed({("m", ""): {"seed": 1}, ("n", ""): {"seed": 2}})}
    >>> configuration_within(whole, "model", "n")["params"].values
    {('', ''): {'seed': 2}}
    """
    at = 0 if by == "model" else 1
    named = {
        setting: value.within(at, name) if isinstance(value, Placed) else value
        for setting, value in configuration.items()
        if setting not in {"models", "prompts"}
    }
    has_templates = by == "prompt" and PROMPT in named and named[PROMPT].values
    return named if has_templates else {by: name} | named


def _template(template: Template) -> dict[str, Any]:
    """Returns the parts of a prompt."""
    if template.messages is None or template.user is not None:
        return {"system": template.system, "user": template.user}
    return {"system": template.system, "messages": template.messages}


def _options(values: Mapping[str, Any]) -> Placed:
    """Takes options that all models share, so that they are compared one by one."""
    return Placed({("", ""): values})


def _endpoints(targets: Mapping[str, ModelTarget]) -> Placed:
    return Placed({(model, ""): {"": each.api_base or USUAL_PLACE} for model, each in targets.items()})


def _calls(run: CaseRun, part: str) -> Placed:
    """Returns the options, or the names of the headers, of calls by model and prompt."""
    found = {
        (model, prompt): run.calls.get(model, {}).get(prompt, {}).get(part, {})
        for model in run.models
        for prompt in run.prompts or ("",)
    }
    return Placed({place: _hidden(each) if part == "headers" else each for place, each in found.items()})


def _hidden(headers: Mapping[str, str]) -> dict[str, Hidden]:
    return {name: Hidden(hash_of(value).hex()) for name, value in headers.items()}
