"""What makes the results of two runs differ, kind by kind: their settings, and what items were asked."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from producer.aggregate.compared_items import Known
from producer.report.comparison.setting_differences import Hidden, Placed, settings_at
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_hashes import hash_of
from shared.contracts.case_run import GIT_KEY, CaseRun, Template
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.contracts.turn_vocabulary import SIGNALS_ONCE
from shared.runs import RunInfo, TurnRow
from shared.upstream.http_mapping import HttpMapping
from shared.upstream.model_target import ModelTarget, is_function
from shared.upstream.protocol_names import OPENAI

PROMPT: Final = "prompt"
"""Name of the setting that has the templates of the prompts."""
RECORDED: Final = "recorded outputs"
"""Name of the setting that says whether answers were recorded."""
USUAL_PLACE: Final = "the provider's own"
"""Endpoint of a model without one of its own."""
CRITERIA_OF_QUERY: Final = (
    "is_oos",
    "expected_docs",
    "must_contain",
    "must_not_contain",
    "oos_decline_signals",
)
FUNCTION: Final = "a function of Python"
"""The endpoint of a run whose application, or check, was served for the time of the run."""
OWN_NAMES: Final = frozenset({"clientRequestId"})
"""Keys of a turn that decide nothing."""
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


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
    judging = {**run.check_models, **run.judges}
    return {
        "system prompt": run.system_prompt,
        "models": list(run.models),
        **({} if run.recorded else {"endpoint": _endpoints(run.models)}),
        "prompts": list(run.prompts),
        PROMPT: Placed(
            {("", name): _template(each) for name, each in run.templates.items()}, names_place=True
        ),
        "temperature": run.temperature,
        "params": _calls(run, "params"),
        "headers": _calls(run, "headers"),
        "judges": list(run.judges),
        "models of checks": list(run.check_models),
        "judge endpoint": _endpoints(judging),
        "judge params": _options(run.judge_params),
        "judge headers": Placed({(model, ""): _hidden(each.headers) for model, each in judging.items()}),
        "schema": run.schema,
        "validators": run.validators.source if run.validators else None,
        "JSON extraction": run.json_extraction,
        "repeats": run.repeat
        if run.quorum is None
        else f"{run.quorum.needed} of {run.quorum.times} must pass",
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
        "mapping": None if run.http is None else _mapping(run.http),
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


def query_inputs(_info: RunInfo) -> Callable[[ItemRow], Known]:
    """Returns what reads of a query its text, and what a good answer contains."""

    def read(row: ItemRow) -> Known:
        query = _decode(row.payload)
        return Known(
            hash_of(query.get("query")), hash_of([query.get(name) or None for name in CRITERIA_OF_QUERY])
        )

    return read


def turn_inputs(_info: RunInfo) -> Callable[[TurnRow], Known | None]:
    """Returns what reads of a turn the whole line of the input, which decides."""

    def read(row: TurnRow) -> Known | None:
        if not row.payload:
            return None
        line = {name: value for name, value in _decode(row.payload).items() if name not in OWN_NAMES}
        return Known(hash_of(line), hash_of("judged by rules"))

    return read


def configuration_within(configuration: Mapping[str, Any], by: str, name: str) -> dict[str, Any]:
    """Returns the settings of one model or one prompt of a run.

    Args:
        configuration: the run's.
        by: `model` or `prompt`.
        name: of it.
    """
    own = settings_at(configuration, by, name)
    named = {setting: value for setting, value in own.items() if setting not in {"models", "prompts"}}
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
    return Placed({(model, ""): _endpoint(each) for model, each in targets.items()})


def _endpoint(target: ModelTarget) -> dict[str, Any]:
    """Returns where a model is called and how it is spoken to; headers of a mapping may carry secrets."""
    if target.http is not None:
        return {"": target.api_base, "http": _mapping(target.http)}
    spoken = target.spoken if target.api_base else OPENAI
    place = FUNCTION if is_function(target.api_base) else target.api_base or USUAL_PLACE
    return {"": place} | ({} if spoken == OPENAI else {"protocol": spoken})


def _mapping(mapping: HttpMapping) -> str:
    """Writes a mapping with the names of its headers alone."""
    names = dict.fromkeys(mapping.request.headers, "")
    request = msgspec.structs.replace(mapping.request, headers=names)
    return msgspec.json.encode(msgspec.structs.replace(mapping, request=request, session=None)).decode()


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
