"""What the HTML report of a cases run shows of its settings: below the names of columns, and at its foot."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.report.cells import Size
from producer.report.html.rendering import cut
from shared.contracts.case_run import CaseRun
from shared.scrubbing import scrubbed
from shared.upstream.model_target import ModelTarget
from shared.upstream.protocol_names import OPENAI

Facts = Sequence[tuple[str, str]]
"""Names and texts."""
OF_PROVIDER: Final = "the provider's own endpoint"


class Popover(NamedTuple):
    """What a name in the head of the columns opens."""

    id: str
    title: str
    facts: Facts


def popover_of_model(run: CaseRun, model: str) -> str:
    """Returns the id of a model's popover; empty for a model that the run does not have."""
    return f"model-{list(run.models).index(model)}" if model in run.models else ""


def popover_of_prompt(run: CaseRun, prompt: str) -> str:
    """Returns the id of a prompt's popover; empty without prompts."""
    return f"prompt-{list(run.prompts).index(prompt)}" if prompt in run.prompts else ""


def popovers_of(run: CaseRun, limit: int) -> Iterator[Popover]:
    """Yields what each model and each prompt was sent with.

    Args:
        run: its settings.
        limit: characters of each template.
    """
    for model, target in run.models.items():
        facts = [("endpoint", place_of(target)), *_parameters(run, [model], run.prompts or [""])]
        if len(run.prompts) == 1:  # its id stands nowhere in the head
            facts += prompt_of(run, run.prompts[0], limit)
        yield Popover(popover_of_model(run, model), model, facts)
    for prompt in run.prompts if len(run.prompts) > 1 else ():
        facts = [*prompt_of(run, prompt, limit), *_parameters(run, list(run.models), [prompt])]
        yield Popover(popover_of_prompt(run, prompt), f"Prompt {prompt}", facts)


def settings_of(run: CaseRun, limit: int) -> list[tuple[str, str]]:
    """Lists models, endpoints, parameters, prompts and judges, for the foot of the page.

    Args:
        run: its settings.
        limit: characters of each template.
    """
    endpoints = [f"{model}: {place_of(target)}" for model, target in run.models.items() if target.api_base]
    judges = [f"{model} ({place_of(target)})" for model, target in run.judges.items()]
    prompts = [fact for prompt in run.prompts for fact in prompt_of(run, prompt, limit)]
    return [
        ("models", ", ".join(run.models)),
        ("endpoints", "\n".join(endpoints)),
        *_parameters(run, list(run.models), run.prompts or [""]),
        ("judges" if len(run.judges) > 1 else "judge", ", ".join(judges) or "none"),
        ("judge's parameters", _shown(run.judge_params)),
        *(prompts or [("system prompt", cut(run.system_prompt, limit).shown)]),
    ]


def prompt_of(run: CaseRun, prompt: str, limit: int) -> Iterator[tuple[str, str]]:
    """Yields the templates of a prompt, message by message; nothing of a run that did not keep them."""
    template = run.templates.get(prompt)
    if template is None:
        return
    system = run.system_prompt if template.system is None else template.system
    if system:
        yield f"prompt {prompt}, system", cut(system, limit).shown
    for message in template.messages or [{"role": "user", "content": "the input of the case"}]:
        content = message.get("content")
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        yield f"prompt {prompt}, {message.get('role', 'user')}", cut(text, limit).shown


def place_of(target: ModelTarget) -> str:
    """Names where a model is called, without a password, and how, where that is not in OpenAI's protocol."""
    if not target.api_base:
        return OF_PROVIDER
    how = "" if target.spoken == OPENAI else f" ({target.spoken})"
    return scrubbed(target.api_base, []) + how


def _parameters(run: CaseRun, models: Sequence[str], prompts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the options of calls: once where all calls share them, else by model and prompt."""
    found = {(model, prompt): _params_of(run, model, prompt) for model in models for prompt in prompts}
    texts = {pair: _shown(params) for pair, params in found.items()}
    if len(set(texts.values())) <= 1:
        yield from [("parameters", text) for text in [*texts.values()][:1]]
        return
    for (model, prompt), text in texts.items():
        names = (model if len(models) > 1 else "", prompt if len(prompts) > 1 else "")
        yield f"parameters of {' · '.join(filter(None, names))}", text


def _params_of(run: CaseRun, model: str, prompt: str) -> Mapping[str, Any]:
    """Returns the options of one call; null takes an option away."""
    own = (run.calls.get(model, {}).get(prompt, {})).get("params") or {}
    params = {"temperature": run.temperature, **own}
    return {name: value for name, value in params.items() if value is not None}


def _shown(params: Mapping[str, Any]) -> str:
    """Writes options one a line."""
    lines = [
        f"{name} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in params.items()
    ]
    return "\n".join(cut(scrubbed(line, []), Size.BODY).shown for line in lines)
