"""Calls models of named providers through litellm, the only file that knows it.

It is imported in a thread at the first call, which takes seconds. Its own retries are off, and whatever it
raises becomes one of our errors here: its own cannot be pickled, and carry requests with keys in them.
Source: litellm's documentation, "Input params" and "Exception mapping".
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from time import perf_counter, time
from types import ModuleType
from typing import Any, Final

from worker.upstream.chat import messages_of, usage_of
from worker.upstream.failures import (
    FIRST_SERVER_ERROR,
    REQUEST_TIMEOUT,
    Trouble,
    UpstreamError,
    trouble_of_status,
)
from worker.upstream.headers import requested_wait_s
from worker.upstream.model import ModelReply, ModelRequest

MAX_TEXT_CHARS: Final = 5 << 20
"""More than this is not taken."""
CONNECTION_ERRORS: Final = frozenset({"APIConnectionError"})
UNREACHED: Final = ("Connection error", "Cannot connect", "Server disconnected", "Connection refused")
"""What it says in an `InternalServerError` of its own making when nobody answered."""
MASK: Final = "***"


class LitellmClient:
    """Calls named providers.

    Args:
        key_of: finds the key that a request is sent with; empty leaves it to litellm.
    """

    def __init__(self, key_of: Callable[[ModelRequest], str]) -> None:
        self._key_of = key_of
        self._library: asyncio.Task[ModuleType] | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        litellm = await self._load()
        key = self._key_of(request)
        arguments: dict[str, Any] = {
            **request.parameters,
            "model": request.model,
            "messages": messages_of(request),
            "timeout": request.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
        }
        if request.temperature is not None:
            arguments |= {"temperature": request.temperature, "drop_params": True}
        if key:
            arguments["api_key"] = key
        if request.is_streamed:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        began = perf_counter()
        try:
            answer = await litellm.acompletion(**arguments)
            if request.is_streamed:
                return await _streamed(answer, began)
            return _reply(answer, began)
        except UpstreamError:
            raise
        except TimeoutError:
            raise UpstreamError(Trouble.TIMEOUT, f"no answer within {request.timeout_s:g} s") from None
        except Exception as error:  # noqa: BLE001 - its errors have no common base; ours begin here
            raise _converted(error, key) from None

    async def _load(self) -> ModuleType:
        """Imports the library once, beside the loop."""
        if self._library is None:
            self._library = asyncio.get_running_loop().create_task(asyncio.to_thread(_import))
        return await asyncio.shield(self._library)


def _import() -> ModuleType:
    """Imports litellm without network, telemetry and chatter."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    import litellm  # noqa: PLC0415 - start-up: 3 s and 170 MB, only for workers that call named providers

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


def _reply(answer: Any, began: float) -> ModelReply:
    """Reads a whole answer."""
    latency_ms = _since_ms(began)
    texts = [choice.message.content for choice in answer.choices[:1]]
    if not texts or not isinstance(texts[0], str):
        raise UpstreamError(Trouble.INVALID_REPLY, "the answer has no text", status=200)
    said = getattr(answer, "usage", None)
    usage = usage_of(said.model_dump() if said is not None else None)
    return ModelReply(
        _bounded(texts[0]),
        latency_ms,
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        finish_reason=str(answer.choices[0].finish_reason or ""),
    )


async def _streamed(pieces: Any, began: float) -> ModelReply:
    """Reads an answer piece by piece."""
    texts, size, first_ms, usage, finish = list[str](), 0, None, None, ""
    async for piece in pieces:
        said = getattr(piece, "usage", None)
        usage = said.model_dump() if said is not None else usage
        for choice in piece.choices:
            finish = str(choice.finish_reason or finish)
            text = choice.delta.content
            if text:
                first_ms = _since_ms(began) if first_ms is None else first_ms
                texts.append(text)
                size += len(text)
                _bounded("", size)
    if not texts:
        raise UpstreamError(Trouble.INVALID_REPLY, "the stream brought no text", status=200)
    counted = usage_of(usage)
    return ModelReply(
        "".join(texts),
        _since_ms(began),
        first_ms,
        prompt_tokens=counted.prompt,
        completion_tokens=counted.completion,
        finish_reason=finish,
    )


def _converted(error: Exception, key: str) -> UpstreamError:
    """Says in our words what went wrong; a key that the message repeats is masked."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else 0
    name, text = type(error).__name__, " ".join(str(error).split())
    if key:
        text = text.replace(key, MASK)
    trouble = _trouble(name, status, text)
    wait_s = requested_wait_s(_headers(error), now_s=time())
    return UpstreamError(
        trouble, f"{name}: {text.removeprefix(f'litellm.{name}: ')}", status=status, wait_s=wait_s
    )


def _trouble(name: str, status: int, text: str) -> Trouble:
    """Classifies an error.

    >>> _trouble("RateLimitError", 429, "").name, _trouble("Timeout", 408, "").name
    ('RATE_LIMITED', 'TIMEOUT')
    >>> _trouble("InternalServerError", 500, "litellm.InternalServerError: Connection error.").name
    'CONNECTION'
    """
    if name == "Timeout" or status == REQUEST_TIMEOUT:
        return Trouble.TIMEOUT
    if name in CONNECTION_ERRORS or (
        status >= FIRST_SERVER_ERROR and any(word in text for word in UNREACHED)
    ):
        return Trouble.CONNECTION
    if name in {"JSONSchemaValidationError", "APIResponseValidationError"}:
        return Trouble.INVALID_REPLY
    return trouble_of_status(status) if status else Trouble.REFUSED


def _headers(error: Exception) -> Mapping[str, str]:
    """Finds the headers of a refusal, which litellm keeps in one of two places."""
    for found in (
        getattr(error, "litellm_response_headers", None),
        getattr(getattr(error, "response", None), "headers", None),
    ):
        if found:
            return {str(name).lower(): str(value) for name, value in found.items()}
    return {}


def _bounded(text: str, size: int | None = None) -> str:
    """Refuses more than we take."""
    if (len(text) if size is None else size) > MAX_TEXT_CHARS:
        raise UpstreamError(
            Trouble.TOO_LARGE, f"the answer is larger than {MAX_TEXT_CHARS >> 20} MiB", status=200
        )
    return text


def _since_ms(began: float) -> int:
    """Milliseconds since a moment."""
    return round(1000 * (perf_counter() - began))
