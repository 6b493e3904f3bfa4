"""Takes over system messages that providers have: prompts are sent to some models with another one."""

from collections.abc import Mapping, Sequence
from typing import Final

from producer.convert.promptfoo.providers import name_of
from producer.convert.promptfoo.suite import Provider
from producer.convert.promptfoo.written import WrittenMessage, WrittenSystem, read
from shared.contracts.case_config import ModelEntry
from shared.contracts.prompts import SYSTEM_ROLES, Prompt

NEXT: Final = " for "


def system_of(provider: Provider) -> str:
    r"""Returns the system message of a provider; empty where it has none.

    >>> from producer.load.problems import Place
    >>> parts = {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    >>> system_of(Provider(Place(""), "google:g", config={"systemInstruction": parts}))
    'Be brief.\nBe kind.'
    """
    config = read(WrittenSystem, provider.config)
    written = config.text or config.instruction or config.snake
    written = written or read(WrittenSystem, config.generation).instruction
    if isinstance(written, dict):
        parts = read(WrittenSystem, written).parts
        texts = [read(WrittenMessage, each).text for each in (parts if isinstance(parts, list) else [parts])]
        return "\n".join(each for each in texts if isinstance(each, str))
    return written if isinstance(written, str) else ""


def with_systems(
    prompts: Sequence[Prompt], models: Sequence[str | ModelEntry], systems: Mapping[str, str]
) -> tuple[list[Prompt], list[str | ModelEntry]]:
    """Returns the prompts and models of a bench where some models have a system message of their own.

    Args:
        prompts: without system messages.
        models: those of the bench.
        systems: the system messages of those that have one, as templates, by their names.

    Returns:
        The prompts, with a further one for each that is sent to such a model; and the models, each with the
        names of its prompts.
    """
    usual = {
        each.id or f"prompt-{at}": {**each.model_dump(exclude_unset=True), "id": each.id or f"prompt-{at}"}
        for at, each in enumerate(prompts, 1)
    }
    made, asked = [Prompt(**each) for each in usual.values()], list[str | ModelEntry]()
    for model in models:
        name = name_of(model)
        own = {} if isinstance(model, str) else model.model_dump(exclude_unset=True, by_alias=True)
        sent = list(own.get("prompts") or usual)
        if name in systems:
            made += [
                Prompt(**{**usual[each], "id": f"{each}{NEXT}{name}", "system": systems[name]})
                for each in sent
            ]
            sent = [f"{each}{NEXT}{name}" for each in sent]
        asked.append(ModelEntry(**{"name": name, **own, "prompts": sent}))
    return made, asked


def has_system(prompt: Prompt) -> bool:
    """Returns whether a prompt has a system message, or may have one since it is code."""
    first = prompt.messages[0].role if prompt.messages else ""
    return prompt.system is not None or first in SYSTEM_ROLES or prompt.named is not None
