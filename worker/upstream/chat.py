"""The JSON of OpenAI-compatible chat completions: what is sent, and what comes back."""

from typing import Any, Final, NamedTuple

import msgspec

from worker.upstream.failures import Trouble, UpstreamError
from worker.upstream.model import ModelReply, ModelRequest

SHOWN_CHARS: Final = 200
"""Of a body that is no answer."""
OURS: Final = frozenset({"model", "messages", "stream", "stream_options", "temperature"})
"""Keys that parameters of a configuration cannot change."""


class Usage(NamedTuple):
    """Tokens of a call, as the provider counts them."""

    prompt: int | None
    """Of the question; None when it does not say."""
    completion: int | None
    """Of the answer; None when it does not say."""


def messages_of(request: ModelRequest) -> list[dict[str, str]]:
    """Returns the two messages of a request, or the one.

    >>> messages_of(ModelRequest("m", "", "Hi"))
    [{'role': 'user', 'content': 'Hi'}]
    """
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, {"role": "user", "content": request.user}]


def chat_body(request: ModelRequest) -> dict[str, Any]:
    """Returns what is sent.

    >>> chat_body(ModelRequest("m", "Be brief.", "Hi", temperature=0.5))["temperature"]
    0.5
    """
    body: dict[str, Any] = {
        **{name: value for name, value in request.parameters.items() if name not in OURS},
        "model": request.model,
        "messages": messages_of(request),
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.is_streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def read_completion(body: bytes, *, latency_ms: int) -> ModelReply:
    """Reads the body of a 200.

    Raises:
        UpstreamError: it is no answer.

    >>> read_completion(b'{"choices":[{"message":{"content":"Hi"}}]}', latency_ms=5).text
    'Hi'
    """
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _invalid("the answer is no JSON", body) from None
    choice = _first(found)
    message = choice.get("message") if isinstance(choice, dict) else None
    text = message.get("content") if isinstance(message, dict) else None
    if not isinstance(text, str):
        raise _invalid("the answer has no text in choices[0].message.content", body)
    usage = usage_of(found.get("usage"))
    return ModelReply(
        text,
        latency_ms,
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        finish_reason=str(choice.get("finish_reason") or ""),
    )


def usage_of(usage: Any) -> Usage:
    """Reads tokens as a provider counts them; what is no number is unknown.

    >>> usage_of({"prompt_tokens": 3, "completion_tokens": "many"})
    Usage(prompt=3, completion=None)
    """
    found = usage if isinstance(usage, dict) else {}
    return Usage(_count(found.get("prompt_tokens")), _count(found.get("completion_tokens")))


def error_text(status: int, body: bytes) -> str:
    """Says what a refusal says, in its own words where they can be found.

    >>> error_text(429, b'{"error": {"message": "Slow down."}}')
    'HTTP 429: Slow down.'
    >>> error_text(502, b"<html>"), error_text(500, b"")
    ('HTTP 502: <html>', 'HTTP 500')
    """
    text = body[:SHOWN_CHARS].decode(errors="replace").strip()
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    error = found.get("error") if isinstance(found, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    if isinstance(said, str) and said:
        text = said
    return f"HTTP {status}: {' '.join(text.split())}" if text else f"HTTP {status}"


def _first(found: Any) -> Any:
    """The first choice of an answer, if it has one."""
    choices = found.get("choices") if isinstance(found, dict) else None
    return choices[0] if isinstance(choices, list) and choices else None


def _count(value: Any) -> int | None:
    """A number of tokens."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _invalid(what: str, body: bytes) -> UpstreamError:
    """Says that a 200 is no answer."""
    head = " ".join(body[:SHOWN_CHARS].decode(errors="replace").split())
    return UpstreamError(Trouble.INVALID_REPLY, f"{what}: {head}", status=200)
