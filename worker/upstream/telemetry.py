"""Logs and traces of calls to upstreams: which, how they failed, what follows; never their texts.

Attributes follow OpenTelemetry's semantic conventions for generative AI clients and for HTTP clients.
"""

import logging
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from shared.observability import tracing
from shared.observability.spans import Value
from shared.upstream.key_variables import provider_of
from shared.upstream.model_target import ModelTarget
from shared.upstream.protocol_names import served_name
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.failures import UpstreamError

PROVIDER_NAMES: Final = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "cohere_chat": "cohere",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Providers that the conventions call otherwise than litellm."""
_SPOKEN_BY: Final = {name: name for name in ("anthropic", "gemini", "ollama", "azure")}
"""Providers of protocols, by which an `api_base` is taken for theirs."""
OPENAI: Final = "openai"
"""Also whoever speaks its protocol and has no name of their own, as the conventions have it."""
TRACED_OPTIONS: Final = ("top_p", "seed", "presence_penalty", "frequency_penalty")
"""Options of a request that the conventions name, and that are numbers."""
MOST_HOLDS: Final = 256
"""Endpoints whose pauses are remembered."""

logger = logging.getLogger(__name__)


def chat_attributes(request: ModelRequest, resend: int) -> dict[str, Value | None]:
    """Describes a call of a model.

    Args:
        request: the question.
        resend: calls that were made for the same item before.

    >>> chat_attributes(ModelRequest(ModelTarget("gemini/pro"), "", "Hi"), 0)["gen_ai.provider.name"]
    'gcp.gemini'
    """
    target = request.target
    provider = provider_of(target.model) if not target.api_base else _SPOKEN_BY.get(target.spoken, "")
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDER_NAMES.get(provider, provider) or OPENAI,
        "gen_ai.request.model": served_name(target.model).removeprefix(f"{provider}/"),
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.request.max_tokens": _number(request.parameters.get("max_tokens")),
        **{f"gen_ai.request.{name}": request.parameters.get(name) for name in TRACED_OPTIONS},
        "gen_ai.request.stream": request.is_streamed or None,
        "http.request.resend_count": resend or None,
        **_server(target.api_base),
    }


def embedding_attributes(request: EmbeddingRequest, resend: int) -> dict[str, Value | None]:
    """Describes a call for embeddings.

    Args:
        request: the texts.
        resend: calls that were made for the same item before.
    """
    plain = ModelRequest(request.target, "", "")
    return {**chat_attributes(plain, resend), "gen_ai.operation.name": "embeddings"}


def embedded_attributes(reply: EmbeddingReply) -> dict[str, Value | None]:
    """Describes the reply to it by its figures.

    >>> from shared.upstream.usage import Usage
    >>> embedded_attributes(EmbeddingReply([b"1234"], 5, Usage(3)))["gen_ai.usage.input_tokens"]
    3
    """
    dimensions = len(reply.vectors[0]) if reply.packed else None
    return {
        "gen_ai.usage.input_tokens": reply.usage.input_tokens,
        "gen_ai.embeddings.dimension.count": dimensions,
        "proctor.cost_usd": reply.cost_usd,
    }


def reply_attributes(reply: ModelReply) -> dict[str, Value | None]:
    """Describes an answer by its figures.

    >>> from shared.upstream.usage import Usage
    >>> reply_attributes(ModelReply("Hi", 5, usage=Usage(3)))["gen_ai.usage.input_tokens"]
    3
    """
    first_ms = reply.first_token_ms
    return {
        "gen_ai.usage.input_tokens": reply.usage.input_tokens,
        "gen_ai.usage.output_tokens": reply.usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": reply.usage.cached_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": reply.usage.cache_write_tokens,
        "gen_ai.response.time_to_first_chunk": None if first_ms is None else first_ms / 1000,
        "proctor.cost_usd": reply.cost_usd,
    }


def http_attributes(url: str, method: str, path: str) -> dict[str, Value | None]:
    """Describes a request to an API; not by its URL, which holds the query where that is sent by GET.

    >>> http_attributes("http://me:secret@api.example:8000", "POST", "/query")["server.address"]
    'api.example'
    """
    return {"http.request.method": method, "url.template": path, **_server(url)}


def log_failure(fields: Mapping[str, Any], wait_s: float | None) -> None:
    """Logs a call that failed, and notes it in the trace.

    Args:
        fields: endpoint or model, reason, attempt, status.
        wait_s: seconds until the next attempt; None: there is none.
    """
    known = {name: value for name, value in fields.items() if value is not None}
    if wait_s is None:
        logger.warning("call failed", extra=known)
        return
    pause_s = round(wait_s, 3)
    logger.info("item retried", extra={**known, "pause_s": pause_s})
    tracing.event(
        "retry", {**{f"proctor.{name}": each for name, each in known.items()}, "proctor.pause_s": pause_s}
    )


def log_call_failure(target: ModelTarget, error: UpstreamError, attempt: int, wait_s: float | None) -> None:
    """Logs a call of a model that failed: `log_failure` with what is known of it."""
    fields = {
        "model": target.model,
        "reason": error.code,
        "attempt": attempt,
        "status": error.status or None,
    }
    log_failure(fields, wait_s)


class PauseLog:
    """Logs each pause of an endpoint and each opening of its breaker once, however many calls meet it."""

    def __init__(self) -> None:
        self._until_s: dict[tuple[str, str], float] = {}

    def note(self, event: str, endpoint: str, pause_s: float) -> None:
        """Logs that an endpoint is left alone for a while, unless that was known."""
        now, key = monotonic(), (event, endpoint)
        known_s = self._until_s.get(key, 0.0)
        if len(self._until_s) >= MOST_HOLDS:
            self._until_s = {each: until for each, until in self._until_s.items() if until > now}
        self._until_s[key] = max(known_s, now + pause_s)
        if known_s <= now:
            logger.warning(event, extra={"endpoint": endpoint, "pause_s": round(pause_s, 1)})


def _server(url: str) -> dict[str, Value | None]:
    """Names the server of a URL, without what may be secret in it.

    >>> _server("http://localhost:8000/v1"), _server(""), _server("http://[")
    ({'server.address': 'localhost', 'server.port': 8000}, {}, {})
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return {}
    return {"server.address": host, "server.port": port} if host else {}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
