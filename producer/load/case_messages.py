"""What a model is sent for one case by one prompt: the system message, and the conversation after it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from producer.load.bench_cases import BenchCase
from producer.load.case_prompts import BenchPrompt, texts_in
from producer.load.template_engine import TemplateProblem
from producer.load.templates import render
from shared.contracts.prompts import SYSTEM_ROLES
from shared.errors import InputError


class Conversation(NamedTuple):
    """What is sent."""

    input: str
    """The text of the last message."""
    system: str
    """The system message; empty: none, or it is among the messages."""
    messages: Sequence[Mapping[str, Any]] | None = None
    """All but the system message; None: only `input`, as the user's message."""


def conversation(case: BenchCase, prompt: BenchPrompt | None, system_prompt: str) -> Conversation:
    """Renders what is sent.

    Args:
        case: with its variables.
        prompt: the templates; None: the case's input as it is.
        system_prompt: the bench's.

    Raises:
        InputError: a template cannot be rendered with the case's variables, or the case has no input.
    """
    entry = case.entry
    if entry.messages is not None:
        turns = [message.as_sent for message in entry.messages]
    elif prompt is not None and prompt.turns is not None:
        turns = [{**turn, "content": _rendered(case, prompt, turn["content"])} for turn in prompt.turns]
    elif entry.input is not None:
        return Conversation(entry.input, _system(case, prompt, system_prompt))
    else:
        raise _no_input(case, prompt)
    has_system = any(turn["role"] in SYSTEM_ROLES for turn in turns)
    system = "" if has_system and entry.messages is not None else _system(case, prompt, system_prompt)
    text = "\n".join(texts_in(turns[-1]["content"]))
    is_plain = len(turns) == 1 and turns[0].keys() == {"role", "content"} and turns[0]["content"] == text
    return Conversation(text, system, None if is_plain and turns[0]["role"] == "user" else turns)


def _system(case: BenchCase, prompt: BenchPrompt | None, system_prompt: str) -> str:
    """The system message: the case's, else the prompt's, else the bench's."""
    if case.entry.system_prompt is not None:
        return case.entry.system_prompt
    if prompt is not None and prompt.system is not None:
        return str(_rendered(case, prompt, prompt.system))
    return system_prompt


def _rendered(case: BenchCase, prompt: BenchPrompt, content: Any) -> Any:
    """Renders a text, or the texts among the parts of a message."""
    try:
        if isinstance(content, list):
            return [_part(part, case.values) for part in content]
        return render(content, case.values) if isinstance(content, str) else content
    except TemplateProblem as problem:
        raise case.place.error(f"prompt {prompt.id!r}: {problem.what}", problem.hint) from None


def _part(part: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Renders one part of a message."""
    text = part.get("text")
    return {**part, "text": render(text, values)} if isinstance(text, str) else part


def _no_input(case: BenchCase, prompt: BenchPrompt | None) -> InputError:
    """The error for a case that has nothing to ask."""
    why = "this key is required" if prompt is None else f"prompt {prompt.id!r} has no user message of its own"
    return case.place.at("input").error("is missing", why)
