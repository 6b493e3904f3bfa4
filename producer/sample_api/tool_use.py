"""How the sample models use tools: they call those that a prompt is about, with arguments from its words."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.sample_api.bench_answers import is_hasty

_WORDS: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_NAME: Final = re.compile(r"\b[A-ZÀ-Þ][\w'-]+(?: [A-ZÀ-Þ][\w'-]+)*")


class ToolCall(NamedTuple):
    """A call with which a model answers."""

    id: str
    name: str
    """Of the function."""
    arguments: str
    """In JSON."""


class _Function(NamedTuple):
    """A function that a model may call."""

    name: str
    parameters: Mapping[str, Any]
    """The schemas of its parameters."""
    required: Sequence[Any]
    """Names of those that it needs."""


def call_tools(model: str, body: Mapping[str, Any], prompt: str) -> list[ToolCall]:
    """Returns the calls with which a model answers; none where it answers in words.

    Args:
        model: a hasty one writes names in small letters and leaves out what is not required.
        body: what was sent.
        prompt: the text of its last message.

    >>> city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    >>> body = {"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": city}}]}
    >>> call_tools("m", body, "What is the weather in Paris?")
    [ToolCall(id='call_1', name='get_weather', arguments='{"city": "Paris"}')]
    >>> call_tools("m", body, "Hi")
    []
    """
    tools, choice = body.get("tools"), body.get("tool_choice", "auto")
    last = (body.get("messages") or [{}])[-1]
    if not isinstance(tools, list) or choice == "none" or last.get("role") == "tool":
        return []
    functions = [function for tool in tools if (function := _function(tool)) is not None]
    wanted = [function for function in functions if _words(function.name) & _words(prompt)]
    if isinstance(choice, dict):
        named = _function(choice)
        wanted = [function for function in functions if named is not None and function.name == named.name]
    elif choice == "required":
        wanted = wanted or functions[:1]
    return [
        ToolCall(
            f"call_{index + 1}",
            function.name,
            json.dumps(_arguments(model, function, prompt), ensure_ascii=False),
        )
        for index, function in enumerate(wanted)
    ]


def _function(tool: object) -> _Function | None:
    """Reads a tool, or the choice of one; None where it names no function."""
    match tool:
        case {"function": {"name": str(name), "parameters": {"properties": dict(properties)} as schema}}:
            return _Function(name, properties, schema.get("required") or ())
        case {"function": {"name": str(name)}}:
            return _Function(name, {}, ())
        case _:
            return None


def _words(text: str) -> set[str]:
    """The words of a text or of a name, without verbs that many tools begin with."""
    return {word.casefold() for word in _WORDS.findall(text)} - {"get", "find", "the", "a", "of", "in", "to"}


def _arguments(model: str, function: _Function, prompt: str) -> dict[str, Any]:
    """Finds a value for each parameter among the words of the prompt."""
    found = {
        name: _value(each, prompt) for name, each in function.parameters.items() if isinstance(each, dict)
    }
    if not is_hasty(model):
        return {name: value for name, value in found.items() if value is not None}
    return {
        name: value.lower() if isinstance(value, str) else value
        for name, value in found.items()
        if value is not None and name in function.required
    }


def _value(schema: Mapping[str, Any], prompt: str) -> Any:
    """A value of a type in the prompt; None where there is none."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        return next((each for each in choices if str(each).casefold() in prompt.casefold()), None)
    number = _NUMBER.search(prompt)
    match schema.get("type"):
        case "integer":
            return int(float(number[0])) if number else None
        case "number":
            return float(number[0]) if number else None
        case "string":
            names = _NAME.findall(prompt)
            return names[-1] if names else None
        case _:
            return None
