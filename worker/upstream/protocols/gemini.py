"""Google's Gemini: `POST /v1beta/models/MODEL:generateContent`."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

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
    stops_of,
    tools_of,
    written_options,
)
from worker.upstream.protocols.openai_chat import inner
from worker.upstream.tool_calls import CallPiece, arguments_text

NAME: Final = "gemini"
_ENDS: Final = {
    "STOP": "",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"),
        CONTENT_FILTER,
    ),
}
"""Finish reasons, translated to OpenAI's."""
_CHOICES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def request(asked: ModelRequest, key: str) -> HttpCall:
    """Builds the request of a call.

    >>> from shared.upstream.model_target import ModelTarget
    >>> call = request(ModelRequest(ModelTarget("gemini/pro", "http://h"), "", "Hi"), "k")
    >>> call.path, call.body["contents"]
    ('/v1beta/models/pro:generateContent', [{'role': 'user', 'parts': [{'text': 'Hi'}]}])
    """
    said = conversation_of(asked)
    body = {
        **written_options(asked, NAME, _WRITERS),
        "contents": [_content(turn) for turn in said.turns],
    }
    if said.system:
        body["systemInstruction"] = {"parts": [{"text": part.text} for part in said.system]}
    method = "streamGenerateContent?alt=sse" if asked.is_streamed else "generateContent"
    version = "" if urlsplit(asked.target.api_base).path.strip("/") else "/v1beta"
    path = f"{version}/models/{served_name(asked.model, NAME)}:{method}"
    return HttpCall(path, body, {"x-goog-api-key": key} if key else {})


def _content(turn: Said) -> dict[str, Any]:
    """Writes a message."""
    if turn.role == "tool":
        result = {"name": turn.name, "response": {"result": turn.text}}
        return {"role": "user", "parts": [{"functionResponse": result}]}
    calls = [{"functionCall": {"name": call.name, "args": call.arguments}} for call in turn.calls]
    role = "model" if turn.role == "assistant" else "user"
    return {"role": role, "parts": [*map(_part, turn.parts), *calls]}


def _part(part: MessagePart) -> dict[str, Any]:
    """Writes a text or an image."""
    if not part.url:
        return {"text": part.text}
    if (data := part.data) is None:
        return {"fileData": {"fileUri": part.url}}
    return {"inlineData": {"mimeType": data[0], "data": data[1]}}


def _tools(value: Any) -> dict[str, Any]:
    """Writes `tools`."""
    declared = [
        {"name": tool.name, "parametersJsonSchema": tool.schema}
        | ({"description": tool.description} if tool.description else {})
        for tool in tools_of(value)
    ]
    return {"tools": [{"functionDeclarations": declared}]}


def _choice(value: Any) -> dict[str, Any]:
    """Writes `tool_choice`."""
    name = chosen_tool(value)
    mode = {"mode": "ANY", "allowedFunctionNames": [name]} if name else {"mode": _CHOICES.get(value, "AUTO")}
    return {"toolConfig": {"functionCallingConfig": mode}}


def _form(value: Any) -> dict[str, Any]:
    """Writes `response_format`."""
    schema = json_schema_of(value)
    form = {"responseMimeType": "text/plain" if value.get("type") == "text" else "application/json"}
    return {"generationConfig": form | ({} if schema is None else {"responseJsonSchema": schema})}


def _generation(name: str) -> Any:
    """Returns a writer of an option that only has another name."""
    return lambda value: {"generationConfig": {name: value}}


_WRITERS: Final = {
    **dict.fromkeys(ANSWER_LIMITS, _generation("maxOutputTokens")),
    "temperature": _generation("temperature"),
    "top_p": _generation("topP"),
    "seed": _generation("seed"),
    "presence_penalty": _generation("presencePenalty"),
    "frequency_penalty": _generation("frequencyPenalty"),
    "logprobs": _generation("responseLogprobs"),
    "reasoning_effort": lambda value: {"generationConfig": {"thinkingConfig": {"thinkingLevel": value}}},
    "service_tier": lambda value: {"serviceTier": value},
    "stop": lambda value: {"generationConfig": {"stopSequences": stops_of(value)}},
    "response_format": _form,
    "tools": _tools,
    "tool_choice": _choice,
}


def read_reply(reply: Any) -> Piece:
    """Reads a whole reply, or a streamed piece of one, which has the same structure.

    >>> said = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
    >>> found = read_reply({"candidates": [said]})
    >>> found.text, found.ends_itself
    ('Hi', True)
    """
    usage = _usage(inner(reply, "usageMetadata"))
    if inner(reply, "promptFeedback").get("blockReason"):
        return Piece(finish_reason=CONTENT_FILTER, usage=usage)
    candidates = reply.get("candidates") if isinstance(reply, dict) else None
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    if not isinstance(candidate, dict):
        return NOTHING._replace(usage=usage)
    found = inner(candidate, "content").get("parts")
    parts = [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []
    texts = [str(part["text"]) for part in parts if "text" in part and not part.get("thought")]
    thoughts = [str(part["text"]) for part in parts if "text" in part and part.get("thought")]
    calls = _calls(inner(part, "functionCall") for part in parts if "functionCall" in part)
    end = word(candidate.get("finishReason"))
    return Piece(
        "".join(texts) if texts else None,
        "".join(thoughts),
        calls=calls,
        finish_reason=_ENDS.get(end, end),
        usage=usage,
        ends_itself=end == "STOP",
    )


def _calls(calls: Iterable[Mapping[str, Any]]) -> list[CallPiece]:
    """Reads tool calls, which always arrive whole."""
    return [
        CallPiece(
            word(call.get("name")),
            arguments_text(call.get("args") or {}),
            word(call.get("id")),
            is_whole=True,
        )
        for call in calls
    ]


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Reads the usage; Google counts reasoning separately from the answer, `Usage` as a part of it."""
    if not usage:
        return NO_USAGE
    said, thought = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    return Usage(
        count(usage.get("promptTokenCount")),
        None if said is None and thought is None else (said or 0) + (thought or 0),
        count(usage.get("cachedContentTokenCount")),
        None,
        thought,
        word(usage.get("serviceTier") or usage.get("trafficType")).lower(),
    )


GEMINI: Final = WireProtocol(request, read_reply, read_reply)
