"""OpenAI's responses: `POST /responses`, where messages, calls and reasoning are items of one list."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shared.contracts.case_vocabulary import CONTENT_FILTER
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.prices import ANSWER_LIMITS
from shared.upstream.protocol_names import served_name
from shared.upstream.usage import NO_USAGE, Usage, count
from worker.upstream.chat import ModelRequest
from worker.upstream.completion import NOTHING, HttpCall, Piece, WireProtocol, raise_reported_error, word
from worker.upstream.failures import UpstreamError
from worker.upstream.protocols.conversation import (
    Said,
    chosen_tool,
    conversation_of,
    tools_of,
    written_options,
)
from worker.upstream.protocols.openai_chat import inner
from worker.upstream.tool_calls import CallPiece, arguments_text

NAME: Final = "responses"
_CUT: Final = {"max_output_tokens": "length", "content_filter": CONTENT_FILTER}
"""Why answers are incomplete, in the words of chat completions."""


def request(asked: ModelRequest, key: str) -> HttpCall:
    """Makes the request of a call; nothing of it is stored at the provider.

    >>> from shared.upstream.model_target import ModelTarget
    >>> target = ModelTarget("openai/responses/gpt", "http://h/v1")
    >>> call = request(ModelRequest(target, "Be brief.", "Hi"), "k")
    >>> call.path, call.body["model"], call.body["instructions"], call.body["input"][0]["role"]
    ('/responses', 'gpt', 'Be brief.', 'user')
    """
    said = conversation_of(asked)
    body = {
        "store": False,
        **written_options(asked, NAME, _WRITERS),
        "model": served_name(asked.model, NAME),
        "input": [item for turn in said.turns for item in _items(turn)],
    }
    if said.system:
        body["instructions"] = said.system_text
    if asked.is_streamed:
        body["stream"] = True
    return HttpCall("/responses", body, {"Authorization": f"Bearer {key}"} if key else {})


def _items(turn: Said) -> Iterator[dict[str, Any]]:
    """Writes a message as items: what is said, and each call."""
    if turn.role == "tool":
        yield {"type": "function_call_output", "call_id": turn.answers, "output": turn.text}
        return
    if turn.parts:
        kind = "output_text" if turn.role == "assistant" else "input_text"
        content = [
            {"type": "input_image", "image_url": part.url} if part.url else {"type": kind, "text": part.text}
            for part in turn.parts
        ]
        yield {"role": turn.role, "content": content}
    for call in turn.calls:
        yield {
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": arguments_text(call.arguments),
        }


def _tools(value: Any) -> dict[str, Any]:
    """Writes `tools`."""
    strict = [(each.get("function") or {}).get("strict") for each in value]
    return {
        "tools": [
            {"type": "function", "name": tool.name, "parameters": tool.schema, "strict": bool(is_strict)}
            | ({"description": tool.description} if tool.description else {})
            for tool, is_strict in zip(tools_of(value), strict, strict=True)
        ]
    }


def _choice(value: Any) -> dict[str, Any]:
    """Writes `tool_choice`."""
    name = chosen_tool(value)
    return {"tool_choice": {"type": "function", "name": name} if name else value}


def _form(value: Any) -> dict[str, Any]:
    """Writes `response_format`, where a schema stands one level higher."""
    return {"text": {"format": {"type": value.get("type"), **(value.get("json_schema") or {})}}}


_WRITERS: Final = {
    **dict.fromkeys(ANSWER_LIMITS, lambda value: {"max_output_tokens": value}),
    "temperature": lambda value: {"temperature": value},
    "top_p": lambda value: {"top_p": value},
    "service_tier": lambda value: {"service_tier": value},
    "reasoning_effort": lambda value: {"reasoning": {"effort": value}},
    "response_format": _form,
    "tools": _tools,
    "tool_choice": _choice,
}


def read_reply(reply: Any) -> Piece:
    """Reads a whole reply.

    >>> said = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    >>> found = read_reply({"status": "completed", "output": [said]})
    >>> found.text, found.finish_reason
    ('Hi', 'stop')
    """
    _raise_failure(reply)
    output = reply.get("output") if isinstance(reply, dict) else None
    if not isinstance(output, list):
        return NOTHING
    items = [item for item in output if isinstance(item, dict)]
    parts = [part for item in items if item.get("type") == "message" for part in _dicts(item.get("content"))]
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "output_text"]
    refusals = [str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal"]
    thoughts = [
        str(part.get("text") or "")
        for item in items
        if item.get("type") == "reasoning"
        for part in [*_dicts(item.get("summary")), *_dicts(item.get("content"))]
    ]
    called = (item for item in items if item.get("type") == "function_call")
    calls = [_call(item, None)._replace(is_whole=True) for item in called]
    text = "".join(texts) if texts else None
    return Piece(text, "".join(thoughts), "".join(refusals), calls, _end(reply), _usage(reply))


def read_event(event: Any) -> Piece:  # noqa: PLR0911 - one return for each kind of event
    """Reads a piece of an answer."""
    match event.get("type"):
        case "response.output_text.delta":
            return Piece(str(event.get("delta") or ""))
        case "response.refusal.delta":
            return Piece(refusal=str(event.get("delta") or ""))
        case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
            return Piece(reasoning=str(event.get("delta") or ""))
        case "response.output_item.added" if inner(event, "item").get("type") == "function_call":
            return Piece(calls=[_call(inner(event, "item"), event.get("output_index"))])
        case "response.function_call_arguments.delta":
            at = event.get("output_index")
            return Piece(calls=[CallPiece(arguments=str(event.get("delta") or ""), at=at)])
        case "response.completed" | "response.incomplete":
            response = inner(event, "response")
            is_empty = not read_reply(response).is_answer
            return Piece(
                finish_reason=_end(response), usage=_usage(response), is_answer=not is_empty, is_end=True
            )
        case "response.failed":
            _raise_failure(inner(event, "response"))
            return NOTHING
        case "error":
            raise_reported_error({"error": event})
            return NOTHING
        case _:
            return NOTHING


def _raise_failure(reply: Any) -> None:
    """Raises what a response with the status `failed` says."""
    raise_reported_error(reply)
    if isinstance(reply, dict) and reply.get("status") == "failed":
        raise UpstreamError(FailureReason.SERVER_ERROR, "the response failed")


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _call(item: Mapping[str, Any], at: Any) -> CallPiece:
    """Reads a call of a tool, or the beginning of one."""
    arguments = arguments_text(item.get("arguments"))
    index = at if isinstance(at, int) else None
    return CallPiece(word(item.get("name")), arguments, word(item.get("call_id")), index)


def _end(reply: Any) -> str:
    """Why an answer ended."""
    if reply.get("status") == "incomplete":
        why = word(inner(reply, "incomplete_details").get("reason"))
        return _CUT.get(why, why)
    has_calls = any(item.get("type") == "function_call" for item in _dicts(reply.get("output")))
    return "tool_calls" if has_calls else "stop"


def _usage(reply: Any) -> Usage:
    """Reads tokens."""
    usage = inner(reply, "usage")
    if not usage:
        return NO_USAGE
    return Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(inner(usage, "input_tokens_details").get("cached_tokens")),
        None,
        count(inner(usage, "output_tokens_details").get("reasoning_tokens")),
        word(reply.get("service_tier")),
    )


RESPONSES: Final = WireProtocol(request, read_reply, read_event)
