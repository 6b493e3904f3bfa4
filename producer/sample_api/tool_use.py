"""How the sample models use tools: they call those that a prompt is about, with arguments from its words."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from producer.sample_api.bench_answers import is_hasty

_WORDS: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_NAME: Final = re.compile(r"\b[A-ZÀ-Þ][\w'-]+(?: [A-ZÀ-Þ][\w'-]+)*")


def call_tools(model: str, body: Mapping[str, Any], prompt: str) -> list[dict[str, Any]]:
    """Returns the calls with which a model answers; none where it answers in words.

    Args:
        model: a hasty one writes names in small letters and leaves out what is not required.
        body: what was sent.
        prompt: the text of its last message.

    >>> city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    >>> body = {"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": city}}]}
    >>> call_tools("m", body, "What is the weather in Paris?")[0]["function"]
    {'name': 'get_weather', 'arguments': '{"city": "Paris"}'}
    >>> call_tools("m", body, "Hi")
    []
    """
    tools, choice = body.get("tools"), body.get("tool_choice", "auto")
    last = (body.get("messages") or [{}])[-1]
    if not isinstance(tools, list) or choice == "none" or last.get("role") == "tool":
        return []
    functions = [tool["function"] for tool in tools if isinstance(tool, dict) and _has_name(tool)]
    wanted = [function for function in functions if _words(function["name"]) & _words(prompt)]
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        wanted = [function for function in functions if function["name"] == name]
    elif choice == "required":
        wanted = wanted or functions[:1]
    return [
        {
            "id": f"call_{index + 1}",
            "type": "function",
            "function": {
                "name": function["name"],
                "arguments": json.dumps(_arguments(model, function, prompt), ensure_ascii=False),
            },
        }
        for index, function in enumerate(wanted)
    ]


def _has_name(tool: Mapping[str, Any]) -> bool:
    function = tool.get("function")
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _words(text: str) -> set[str]:
    """The words of a text or of a name, without verbs that many tools begin with."""
    return {word.casefold() for word in _WORDS.findall(text)} - {"get", "find", "the", "a", "of", "in", "to"}


def _arguments(model: str, function: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    """Finds a value for each parameter among the words of the prompt."""
    schema = function.get("parameters")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict):
        return {}
    found = {name: _value(each, prompt) for name, each in properties.items() if isinstance(each, dict)}
    if not is_hasty(model):
        return {name: value for name, value in found.items() if value is not None}
    required = schema.get("required") or []
    return {
        name: value.lower() if isinstance(value, str) else value
        for name, value in found.items()
        if value is not None and name in required
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
