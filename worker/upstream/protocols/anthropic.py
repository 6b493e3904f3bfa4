"""Anthropic's messages: `POST /v1/messages`."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from shared.contracts.case_vocabulary import CONTENT_FILTER
from shared.upstream.prices import ANSWER_LIMITS
from shared.upstream.protocol_names import served_name
from shared.upstream.usage import NO_USAGE, Usage, count
from worker.upstream.chat import ModelRequest
from worker.upstream.completion import NOTHING, HttpCall, Piece, WireProtocol, word
from worker.upstream.protocols.conversation import (
    MessagePart,
    Said,
    chosen_tool,
    conversation_of,
    json_schema_of,
    refused_choice,
    stops_of,
    tools_of,
    written_options,
)
from worker.upstream.protocols.openai_chat import inner
from worker.upstream.tool_calls import CallPiece, arguments_text

NAME: Final = "anthropic"
VERSION: Final = "2023-06-01"
"""Version of the protocol; there is only one."""
MOST_TOKENS: Final = 4_096
"""Limit of answer tokens if the request has none; the protocol requires one."""
_ENDS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": CONTENT_FILTER,
}
"""Finish reasons, translated to OpenAI's."""
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "any"}


def request(asked: ModelRequest, key: str) -> HttpCall:
    """Builds the request of a call.

    >>> from shared.upstream.model_target import ModelTarget
    >>> call = request(ModelRequest(ModelTarget("anthropic/claude", "http://h"), "", "Hi"), "k")
    >>> call.path, call.headers["x-api-key"], call.body["max_tokens"]
    ('/v1/messages', 'k', 4096)
    """
    said = conversation_of(asked)
    body: dict[str, Any] = {
        "max_tokens": MOST_TOKENS,
        **written_options(asked, NAME, _WRITERS | {"response_format": lambda value: _form(asked, value)}),
        "model": served_name(asked.model, NAME),
        "messages": _merged(said.turns),
    }
    if any(part.cache for part in said.system):
        body["system"] = [_block(part) for part in said.system]
    elif said.system:
        body["system"] = said.system_text
    if asked.is_streamed:
        body["stream"] = True
    path = "/messages" if asked.target.api_base.rstrip("/").endswith("/v1") else "/v1/messages"
    return HttpCall(path, body, {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {}))


def _merged(turns: Iterable[Said]) -> list[dict[str, Any]]:
    """Writes messages, merging consecutive ones of a role, as the protocol requires for tool results."""
    written = list[dict[str, Any]]()
    for turn in turns:
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = _blocks(turn)
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        else:
            written.append({"role": role, "content": blocks})
    return written


def _blocks(turn: Said) -> list[dict[str, Any]]:
    """Writes the content of a message."""
    blocks = [_block(part) for part in turn.parts]
    if turn.role == "tool":
        return [{"type": "tool_result", "tool_use_id": turn.answers, "content": blocks}]
    calls = [
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.arguments}
        for call in turn.calls
    ]
    return blocks + calls


def _block(part: MessagePart) -> dict[str, Any]:
    """Writes a text or an image."""
    block: dict[str, Any] = {"type": "text", "text": part.text}
    if part.url:
        data = part.data
        source = (
            {"type": "url", "url": part.url}
            if data is None
            else {"type": "base64", "media_type": data[0], "data": data[1]}
        )
        block = {"type": "image", "source": source}
    return block | ({"cache_control": part.cache} if part.cache else {})


def _tools(value: Any) -> dict[str, Any]:
    """Writes `tools`."""
    return {
        "tools": [
            {"name": tool.name, "input_schema": tool.schema}
            | ({"description": tool.description} if tool.description else {})
            for tool in tools_of(value)
        ]
    }


def _choice(value: Any) -> dict[str, Any]:
    """Writes `tool_choice`."""
    if name := chosen_tool(value):
        return {"tool_choice": {"type": "tool", "name": name}}
    return {"tool_choice": {"type": _CHOICES.get(str(value), "auto")}}


def _form(asked: ModelRequest, value: Any) -> dict[str, Any]:
    """Writes `response_format`."""
    schema = json_schema_of(value)
    if schema is None:
        what = f"the protocol {NAME} does not support response_format {value.get('type')}, but json_schema"
        raise refused_choice(asked.model, what)
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


_WRITERS: Final = {
    **dict.fromkeys(ANSWER_LIMITS, lambda value: {"max_tokens": value}),
    "temperature": lambda value: {"temperature": value},
    "top_p": lambda value: {"top_p": value},
    "service_tier": lambda value: {"service_tier": value},
    "reasoning_effort": lambda value: {"output_config": {"effort": value}},
    "stop": lambda value: {"stop_sequences": stops_of(value)},
    "tools": _tools,
    "tool_choice": _choice,
}


def read_reply(reply: Any) -> Piece:
    """Reads a whole reply.

    >>> found = read_reply({"content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"})
    >>> found.text, found.finish_reason
    ('Hi', 'stop')
    """
    content = reply.get("content") if isinstance(reply, dict) else None
    if not isinstance(content, list):
        return NOTHING
    blocks = [block for block in content if isinstance(block, dict)]
    texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
    return Piece(
        "".join(texts) if texts else None,
        "".join(str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking"),
        _refusal(reply),
        _calls(blocks),
        _end(reply),
        _usage(reply.get("usage")),
    )


def read_event(event: Any) -> Piece:  # noqa: PLR0911 - one return for each kind of event
    """Reads a piece of an answer."""
    match event.get("type"):
        case "message_start":
            return NOTHING._replace(usage=_usage(inner(event, "message").get("usage")))
        case "content_block_start":
            block = inner(event, "content_block")
            if block.get("type") == "tool_use":
                call = CallPiece(word(block.get("name")), "", word(block.get("id")), _index(event))
                return Piece(calls=[call])
            return Piece(word(block.get("text")) if block.get("type") == "text" else None)
        case "content_block_delta":
            return _delta(inner(event, "delta"), _index(event))
        case "message_delta":
            delta = inner(event, "delta")
            return Piece(refusal=_refusal(delta), finish_reason=_end(delta), usage=_usage(event.get("usage")))
        case "message_stop":
            return Piece(is_end=True)
        case _:
            return NOTHING


def _delta(delta: Any, index: int | None) -> Piece:
    """Reads an addition to a block."""
    match delta.get("type"):
        case "text_delta":
            return Piece(str(delta.get("text") or ""))
        case "thinking_delta":
            return Piece(reasoning=str(delta.get("thinking") or ""))
        case "input_json_delta":
            return Piece(calls=[CallPiece(arguments=str(delta.get("partial_json") or ""), at=index)])
        case _:
            return NOTHING


def _index(event: Any) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None


def _calls(blocks: Sequence[Any]) -> list[CallPiece]:
    """Returns the tool calls in a whole reply."""
    return [
        CallPiece(
            word(block.get("name")), arguments_text(block.get("input")), word(block.get("id")), is_whole=True
        )
        for block in blocks
        if block.get("type") == "tool_use"
    ]


def _end(reply: Any) -> str:
    """Returns the finish reason of an answer."""
    reason = word(reply.get("stop_reason"))
    return _ENDS.get(reason, reason)


def _refusal(reply: Any) -> str:
    """Returns the provider's explanation of a refusal; empty if there is none."""
    return word(inner(reply, "stop_details").get("explanation")) if _end(reply) == CONTENT_FILTER else ""


def _usage(usage: Any) -> Usage:
    """Reads the usage; Anthropic counts cached tokens separately, `Usage` includes them in the prompt."""
    if not isinstance(usage, dict):
        return NO_USAGE
    new, read, written = (
        count(usage.get(name))
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    total = None if new is None else new + (read or 0) + (written or 0)
    answer = count(usage.get("output_tokens"))
    return Usage(total, answer, read, written, service_tier=word(usage.get("service_tier")))


ANTHROPIC: Final = WireProtocol(request, read_reply, read_event)
