"""OpenAI's chat completions, which most servers speak, and Azure's, which differ in address and key."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from shared.upstream.protocol_names import served_name
from shared.upstream.usage import NO_USAGE, Usage, count
from worker.upstream.chat import ModelRequest, messages_of, options_of
from worker.upstream.completion import NOTHING, HttpCall, Piece, WireProtocol, word
from worker.upstream.tool_calls import CallPiece, arguments_text, unreadable

CHAT_PATH: Final = "/chat/completions"
AZURE_VERSION: Final = "2024-10-21"
"""The version of Azure's interface where the address names none: the last stable one before `/openai/v1`."""


def request(asked: ModelRequest, key: str) -> HttpCall:
    """Makes the request of a call.

    >>> from shared.upstream.model_target import ModelTarget
    >>> call = request(ModelRequest(ModelTarget("openai/mine", "http://h"), "", "Hi", temperature=0), "k")
    >>> call.body, call.headers
    ({'model': 'mine', 'messages': [{'role': 'user', 'content': 'Hi'}], 'temperature': 0}, \
{'Authorization': 'Bearer k'})
    """
    return HttpCall(CHAT_PATH, _body(asked), {"Authorization": f"Bearer {key}"} if key else {})


def azure_request(asked: ModelRequest, key: str) -> HttpCall:
    """Makes the request of a call to a deployment at Azure.

    >>> from shared.upstream.model_target import ModelTarget
    >>> target = ModelTarget("azure/gpt", "https://x.openai.azure.com")
    >>> azure_request(ModelRequest(target, "", "Hi"), "k").path
    '/openai/deployments/gpt/chat/completions?api-version=2024-10-21'
    """
    place = azure_path(asked.target.api_base, served_name(asked.model), CHAT_PATH)
    return HttpCall(place, _body(asked), {"api-key": key} if key else {})


def azure_path(api_base: str, deployment: str, path: str) -> str:
    """Returns what follows the address of a deployment; what the address has already is not repeated.

    >>> azure_path("https://x.openai.azure.com/openai/deployments/gpt?api-version=1", "gpt", CHAT_PATH)
    '/chat/completions'
    """
    parts = urlsplit(api_base)
    before = "" if "/deployments/" in parts.path else f"/deployments/{deployment}"
    first = "/openai" if before and not parts.path.rstrip("/").endswith("/openai") else ""
    is_said = "api-version" in dict(parse_qsl(parts.query))
    return f"{first}{before}{path}" + ("" if is_said else f"?api-version={AZURE_VERSION}")


def _body(asked: ModelRequest) -> dict[str, Any]:
    """Makes the body of a request."""
    body = {**options_of(asked), "model": served_name(asked.model), "messages": messages_of(asked)}
    if asked.temperature is not None:
        body["temperature"] = asked.temperature
    if asked.is_streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def read_reply(reply: Any) -> Piece:
    """Reads a whole reply.

    >>> found = read_reply({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
    >>> found.text, found.finish_reason
    ('Hi', 'stop')
    """
    choice = _first_choice(reply)
    if choice is None:
        return NOTHING
    message = choice.get("message")
    calls = [piece._replace(is_whole=True) for piece in _calls_in(message)]
    return _message(message)._replace(
        calls=calls,
        finish_reason=word(choice.get("finish_reason")),
        usage=read_usage(reply.get("usage"), reply.get("service_tier")),
    )


def read_event(event: Any) -> Piece:
    """Reads a piece of an answer."""
    usage, choice = read_usage(event.get("usage"), event.get("service_tier")), _first_choice(event)
    if choice is None:
        return NOTHING._replace(usage=usage)
    delta = choice.get("delta")
    content = delta.get("content") if isinstance(delta, dict) else None
    if content is not None and not isinstance(content, str | list):
        raise unreadable("an event of the reply has no text where it should be")
    return _message(delta)._replace(
        calls=_calls_in(delta), finish_reason=word(choice.get("finish_reason")), usage=usage
    )


def read_usage(usage: Any, service_tier: Any = None) -> Usage:
    """Reads how many tokens were used.

    Args:
        usage: in OpenAI's form, or in that of litellm and of servers which put their own counts beside it.
        service_tier: which the reply has beside it.

    >>> read_usage({"prompt_tokens": 3, "completion_tokens": 0}).total_tokens
    3
    >>> read_usage({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}).cached_input_tokens
    8
    >>> beside = {"completion_tokens_details": {"reasoning_tokens": 90}, "total_tokens": 132}
    >>> read_usage({"prompt_tokens": 32, "completion_tokens": 10, **beside}).output_tokens
    100
    """
    tier = word(service_tier)
    if not isinstance(usage, dict):
        return Usage(service_tier=tier) if tier else NO_USAGE
    asked, said = inner(usage, "prompt_tokens_details"), inner(usage, "completion_tokens_details")
    question, answer = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    thought, total = count(said.get("reasoning_tokens")), count(usage.get("total_tokens"))
    if question is not None and answer is not None and thought and total == question + answer + thought:
        answer += thought  # xAI counts it beside the answer
    return Usage(
        question,
        answer,
        _first_count(
            asked.get("cached_tokens"),
            usage.get("cache_read_input_tokens"),
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
        ),
        _first_count(asked.get("cache_write_tokens"), usage.get("cache_creation_input_tokens")),
        thought,
        tier,
    )


def inner(value: Any, name: str) -> Mapping[str, Any]:
    """Returns an object inside of another; empty where there is none.

    >>> inner({"a": {"b": 1}}, "a"), inner([], "a")
    ({'b': 1}, {})
    """
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _first_count(*values: Any) -> int | None:
    """The first that is a number of tokens."""
    return next((known for value in values if (known := count(value)) is not None), None)


def _first_choice(reply: Any) -> Mapping[str, Any] | None:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


def _message(message: Any) -> Piece:
    """Finds the texts of a message, or of a piece of one.

    >>> _message({"content": [{"type": "text", "text": "Hi"}]}).text
    'Hi'
    >>> _message({"content": None, "refusal": "No."}).refusal
    'No.'
    """
    if not isinstance(message, dict):
        return Piece()
    refused = message.get("refusal")
    refusal = refused if isinstance(refused, str) else ""
    thought = message.get("reasoning_content") or message.get("reasoning")
    reasoning = thought if isinstance(thought, str) else ""
    content = message.get("content")
    if isinstance(content, list):
        reasoning += "".join(_part(part, "thinking") for part in content)
        refusal = refusal or "".join(_part(part, "refusal") for part in content)
        texts = [_part(part, "text") for part in content if _is_text(part)]
        return Piece("".join(texts) if texts else None, reasoning, refusal)
    return Piece(content if isinstance(content, str) else None, reasoning, refusal)


def _is_text(part: Any) -> bool:
    """Whether a part of a message is a text, be it empty."""
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str | list)


def _part(part: Any, kind: str) -> str:
    """The text of a part of a message, if it is of a kind."""
    if not isinstance(part, dict) or part.get("type") != kind:
        return ""
    found = part.get(kind)
    if isinstance(found, list):
        return "".join(_part(inside, "text") for inside in found)
    return found if isinstance(found, str) else ""


def _calls_in(message: Any) -> list[CallPiece]:
    """Reads the calls in a message, or in a piece of one.

    >>> _calls_in({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]})
    [CallPiece(name='f', arguments='{"a": 1}', call_id='c', at=None, is_whole=False)]
    >>> _calls_in({"content": "Hi", "tool_calls": None})
    []
    """
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not calls:
        return []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise unreadable("the reply calls tools, but not in a list of calls")
    return [_call(call) for call in calls]


def _call(call: Mapping[str, Any]) -> CallPiece:
    """Reads one call, or a piece of one, which may have no function."""
    function, given, index = call.get("function"), call.get("id"), call.get("index")
    if function is not None and not isinstance(function, dict):
        raise unreadable("the reply calls a tool that is no function")
    name = (function or {}).get("name")
    return CallPiece(
        name if isinstance(name, str) else "",
        arguments_text((function or {}).get("arguments")),
        given if isinstance(given, str) else "",
        index if isinstance(index, int) else None,
    )


OPENAI_CHAT: Final = WireProtocol(request, read_reply, read_event)
AZURE_CHAT: Final = OPENAI_CHAT._replace(request=azure_request)
