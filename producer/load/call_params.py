"""Merges the options of calls that bench, models and prompts have, once for each model and prompt."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from producer.load.case_prompts import BenchPrompt
from shared.contracts.call_options import TEMPERATURE, Params, merge, sent
from shared.contracts.case_config import BenchConfig, ModelConfig

HEADERS: Final = "headers"
_NOTHING: Final = ModelConfig()


def merged_calls(
    config: BenchConfig,
    models: Sequence[str],
    prompts: Sequence[BenchPrompt],
    *,
    fixed_temperature: bool,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Merges `params` and `headers`: the bench's, above them the model's, above them the prompt's.

    Args:
        config: the bench.
        models: the models under test.
        prompts: its prompts; none: cases are sent as they are.
        fixed_temperature: whether the command line says the temperature, which goes before all others.

    Returns:
        By model and prompt id (`""` without prompts); what has no options is left out.
    """
    above = {prompt.id: [(prompt.params, prompt.headers)] for prompt in prompts} or {"": []}
    found = dict[str, dict[str, dict[str, Any]]]()
    for model in models:
        own = config.model_configs.get(model, _NOTHING)
        levels = [(params_of(each), headers_of(each.params, each.headers)) for each in (config, own)]
        for name, of_prompt in above.items():
            call = _call([*levels, *of_prompt])
            if fixed_temperature:
                call["params"].pop(TEMPERATURE, None)
            if any(call.values()):
                found.setdefault(model, {})[name] = {key: value for key, value in call.items() if value}
    return found


def params_of(said: BenchConfig | ModelConfig) -> dict[str, Any]:
    """The options that are written, headers aside."""
    return {name: value for name, value in said.params.given.items() if name != HEADERS}


def headers_of(params: Params, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are written in either place."""
    return {**(params.headers or {}), **headers}


def _call(levels: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]) -> dict[str, dict[str, Any]]:
    """Merges all levels; names of headers are compared without regard to case."""
    by_name = {name.lower(): (name, value) for _, headers in levels for name, value in headers.items()}
    return {"params": sent(merge(*(params for params, _ in levels))), "headers": dict(by_name.values())}
