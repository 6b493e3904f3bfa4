"""Requests for embeddings of texts, and their replies.

    {"data": [{"index": 0, "embedding": [0.1, …]}, …], "usage": {"prompt_tokens": 7, "total_tokens": 7}}

Vectors are kept as 32-bit floats, as models compute them: a fourth of the memory of numbers in JSON.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from shared.upstream.protocol_names import served_name
from shared.upstream.usage import NO_USAGE, Usage, count, estimate_text_tokens
from worker.upstream.chat import TokenEstimate
from worker.upstream.completion import HttpCall
from worker.upstream.failures import UpstreamError
from worker.upstream.protocols.openai_chat import azure_path

EMBEDDINGS_PATH: Final = "/embeddings"
MOST_DIMENSIONS: Final = 65_536
"""The longest vectors of today's models have about 4,000 numbers."""
MOST: Final = 3.4e38
"""The greatest number of 32 bits."""
FLOATS: Final = "f"
"""Type code of the arrays that hold vectors."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts to be embedded by one call; equal requests share one reply."""

    target: ModelTarget
    """The model."""
    texts: Sequence[str]
    """At least one; providers refuse empty ones."""

    @property
    def model(self) -> str:
        """Name of the model, as the configuration has it."""
        return self.target.model


class EmbeddingReply(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The vectors of the texts with the figures of the call; None is unknown, never zero."""

    packed: list[bytes]
    """A vector for each text, in their order, as 32-bit floats."""
    latency_ms: int
    """Time from sending to the last byte."""
    usage: Usage = NO_USAGE
    """The tokens that it used; none are written."""
    cost_usd: float | None = None
    """Cost of the call."""
    is_cached: bool = False
    """Whether it was answered before, to an equal request; figures are those of that answer."""

    @property
    def vectors(self) -> "list[array[float]]":
        """A vector for each text, in their order.

        >>> EmbeddingReply([pack([1, 0.5])], 5).vectors
        [array('f', [1.0, 0.5])]
        """
        return [array(FLOATS, packed) for packed in self.packed]


def pack(vector: Sequence[float]) -> bytes:
    """Packs a vector; numbers that are too large for 32 bits become infinite."""
    return array(FLOATS, vector).tobytes()


def embedding_call(request: EmbeddingRequest, key: str) -> HttpCall:
    """Makes the request of a call at an `api_base`; other protocols have OpenAI's for embeddings, or none.

    Raises:
        UpstreamError: the protocol of the model has none.

    >>> embedding_call(EmbeddingRequest(ModelTarget("ollama/mine", "http://h:11434"), ["Hi"]), "")[:2]
    ('/v1/embeddings', {'model': 'mine', 'input': ['Hi']})
    """
    target, spoken = request.target, request.target.spoken
    name, bearer = served_name(target.model, spoken), {"Authorization": f"Bearer {key}"} if key else {}
    body = {"model": name, "input": [*request.texts]}
    match spoken:
        case "openai" | "responses":
            return HttpCall(EMBEDDINGS_PATH, body, bearer)
        case "ollama":
            return HttpCall(f"/v1{EMBEDDINGS_PATH}", body, bearer)
        case "azure":
            place = azure_path(target.api_base, name, EMBEDDINGS_PATH)
            return HttpCall(place, body, {"api-key": key} if key else {})
        case _:
            text = f"{target.model}: embeddings cannot be asked for in the protocol {spoken}"
            raise UpstreamError(FailureReason.REFUSED, text)


def estimate_embedding(request: EmbeddingRequest) -> TokenEstimate:
    """Estimates the tokens of a call.

    >>> estimate_embedding(EmbeddingRequest(ModelTarget("m"), ["Hello you", "Hi"])).tokens
    4
    """
    return TokenEstimate(sum(map(estimate_text_tokens, request.texts)), 0, is_guess=False)


def identity_of_embedding(request: EmbeddingRequest) -> dict[str, Any]:
    """Returns what identical requests have in common."""
    return {
        "operation": "embeddings",
        **request.target.place,
        "texts": [*request.texts],
        "headers": sorted((name.lower(), value) for name, value in request.target.headers.items()),
    }


def read_embeddings(reply: Any, count: int) -> list[bytes]:
    """Reads the vectors of a reply, in the order of the texts.

    Args:
        reply: its body.
        count: texts that were sent.

    Raises:
        UpstreamError: it has not one vector of finite numbers for each text, all of one length.

    >>> read_embeddings({"data": [{"index": 0, "embedding": [1, 2]}]}, 1) == [pack([1, 2])]
    True
    """
    data = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(data, list) or len(data) != count:
        found = len(data) if isinstance(data, list) else "no"
        raise _invalid(f"the reply has {found} embeddings for {count} texts")
    by_index: dict[int, list[float]] = {}
    for nth, entry in enumerate(data):
        index = entry.get("index", nth) if isinstance(entry, dict) else None
        vector = entry.get("embedding") if isinstance(entry, dict) else None
        if not isinstance(index, int) or not 0 <= index < count or index in by_index:
            raise _invalid("the reply has embeddings without their places")
        by_index[index] = _checked(vector)
    if len({len(vector) for vector in by_index.values()}) > 1:
        raise _invalid("the reply has embeddings of several lengths")
    return [pack(by_index[index]) for index in range(count)]


def read_embedding_usage(reply: Mapping[str, Any]) -> Usage:
    """Reads the tokens of a reply with embeddings; nothing at all used is not believed.

    >>> read_embedding_usage({"usage": {"prompt_tokens": 3}}).total_tokens
    3
    """
    usage = reply.get("usage")
    tokens = count(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
    return Usage(tokens, 0) if tokens else NO_USAGE


def _checked(vector: Any) -> list[float]:
    """Refuses what is no vector."""
    if not isinstance(vector, list) or not 0 < len(vector) <= MOST_DIMENSIONS:
        raise _invalid("the reply has an embedding that is no list of numbers")
    for number in vector:
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not -MOST <= number <= MOST:
            raise _invalid("the reply has an embedding with something that is no 32-bit number")
    return vector


def _invalid(text: str) -> UpstreamError:
    return UpstreamError(FailureReason.INVALID_REPLY, text)
