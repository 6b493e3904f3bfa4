"""Ollama's own chat: `POST /api/chat`, streamed as lines of JSON."""

from collections.abc import Mapping
from typing import Any, Final

from shared.upstream.prices import ANSWER_LIMITS
from shared.upstream.protocol_names import served_name
from shared.upstream.usage import Usage, count
from worker.upstream.chat import ModelRequest
from worker.upstream.completion import NOTHING, HttpCall, Piece, WireProtocol, word
from worker.upstream.protocols.conversation import (
    Said,
    conversation_of,
    json_schema_of,
    refused_choice,
    stops_of,
    written_options,
)
from worker.upstream.protocols.openai_chat import inner
from worker.upstream.tool_calls import CallPiece, arguments_text

NAME: Final = "ollama"
_OPTIONS: Final = ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty")
"""Options with the same name."""


def request(asked: ModelRequest, key: str) -> HttpCall:
    """Makes the request of a call.

    >>> from shared.upstream.model_target import ModelTarget
    >>> call = request(ModelRequest(ModelTarget("ollama/llama3", "http://h:11434"), "", "Hi"), "")
    >>> call.path, call.body
    ('/api/chat', {'model': 'llama3', 'messages': [{'role': 'user', 'content': 'Hi'}], 'stream': False})
    """
    said = conversation_of(asked)
    system = [{"role": "system", "content": said.system_text}] if said.system else []
    body = {
        **written_options(asked, NAME, _WRITERS),
        "model": served_name(asked.model, NAME),
        "messages": [*system, *(_message(asked, turn) for turn in said.turns)],
        "stream": asked.is_streamed,
    }
    path = "/chat" if asked.target.api_base.rstrip("/").endswith("/api") else "/api/chat"
    return HttpCall(path, body, {"Authorization": f"Bearer {key}"} if key else {})


def _message(asked: ModelRequest, turn: Said) -> dict[str, Any]:
    """Writes a message."""
    images = [part.data for part in turn.parts if part.url]
    if None in images:
        raise refused_choice(asked.model, f"the protocol {NAME} takes no images by their address")
    calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in turn.calls]
    return (
        {"role": turn.role, "content": turn.text}
        | ({"images": [data for _, data in filter(None, images)]} if images else {})
        | ({"tool_calls": calls} if calls else {})
        | ({"tool_name": turn.name} if turn.role == "tool" and turn.name else {})
    )


def _option(name: str) -> Any:
    """A writer of an option that only has another name."""
    return lambda value: {"options": {name: value}}


def _form(value: Any) -> dict[str, Any]:
    """Writes `response_format`."""
    return {} if value.get("type") == "text" else {"format": json_schema_of(value) or "json"}


_WRITERS: Final = {
    **dict.fromkeys(ANSWER_LIMITS, _option("num_predict")),
    **{name: _option(name) for name in _OPTIONS},
    "stop": lambda value: {"options": {"stop": stops_of(value)}},
    "logprobs": lambda value: {"logprobs": value},
    "reasoning_effort": lambda value: {"think": value},
    "response_format": _form,
    "tools": lambda value: {"tools": value},
}


def read_reply(reply: Any) -> Piece:
    """Reads a whole reply, or a line of one, which has the same form.

    >>> said = {"message": {"role": "assistant", "content": "Hi"}, "done": True, "done_reason": "stop"}
    >>> found = read_reply(said)
    >>> found.text, found.ends_itself, found.is_end
    ('Hi', True, True)
    """
    message = reply.get("message") if isinstance(reply, dict) else None
    if not isinstance(message, dict):
        return NOTHING
    content, thought, found = message.get("content"), message.get("thinking"), message.get("tool_calls")
    calls = [_call(call) for call in (found if isinstance(found, list) else ())]
    is_end, reason = reply.get("done") is True, word(reply.get("done_reason"))
    ends_itself = is_end and reason in {"stop", ""}
    return Piece(
        content if isinstance(content, str) and (content or not calls) else None,
        thought if isinstance(thought, str) else "",
        calls=calls,
        finish_reason="" if ends_itself else reason,
        usage=Usage(count(reply.get("prompt_eval_count")), count(reply.get("eval_count"))),
        ends_itself=ends_itself,
        is_end=is_end,
    )


def _call(call: Any) -> CallPiece:
    """Reads a call of a tool, which is never cut."""
    function: Mapping[str, Any] = inner(call, "function")
    arguments = arguments_text(function.get("arguments") or {})
    call_id = word(call.get("id")) if isinstance(call, dict) else ""
    return CallPiece(word(function.get("name")), arguments, call_id, is_whole=True)


OLLAMA: Final = WireProtocol(request, read_reply, read_reply, has_lines=True)
