"""Merges the options of calls that bench, models and prompts have, once for each model and prompt."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from producer.load.case_prompts import BenchPrompt
from shared.contracts.call_options import TEMPERATURE, Headers, Params, merge, merge_headers, sent
from shared.contracts.case_config import BenchConfig, ModelConfig

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
        levels = [(each.params.given, headers_of(each.params, each.headers)) for each in (config, own)]
        for name, of_prompt in above.items():
            call = _call([*levels, *of_prompt])
            if fixed_temperature:
                call["params"].pop(TEMPERATURE, None)
            if any(call.values()):
                found.setdefault(model, {})[name] = {key: value for key, value in call.items() if value}
    return found


def _call(levels: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]) -> dict[str, dict[str, Any]]:
    """Merges all levels."""
    params = sent(merge(*(params for params, _ in levels)))
    return {"params": params, "headers": merge_headers(*(headers for _, headers in levels))}


def headers_of(params: Params, headers: Headers) -> dict[str, str]:
    """The headers that are written inside of `params`, or beside them."""
    return merge_headers(params.headers or {}, headers)
