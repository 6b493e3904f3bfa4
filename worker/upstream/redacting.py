"""Replaces personal data in what upstreams answer, before it is cached, judged or stored.

No other code of a worker sees what an upstream wrote: it stands around the clients of models, and between the
replies of APIs and their checks.
"""

from dataclasses import replace

import msgspec

from shared.redaction import Redactor
from shared.scrubbing import MESSAGE_CHARS
from shared.upstream.model_target import ModelTarget
from worker.queries.reply import ERROR_BODY_CHARS, Reply
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_caller import ModelClient


class RedactingClient:
    """Calls models through a client, and redacts what they answer.

    Args:
        client: makes the calls.
        redactor: the rules.
    """

    def __init__(self, client: ModelClient, redactor: Redactor) -> None:
        self._client, self._redactor = client, redactor

    async def prepare(self, target: ModelTarget) -> None:
        """Does what only a first call needs."""
        await self._client.prepare(target)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        try:
            # Personal data is recognised in whole texts only: nobody hears the pieces.
            reply = await self._client.complete(replace(request, listener=None))
        except UpstreamError as error:
            raise redacted_error(error, self._redactor, MESSAGE_CHARS) from None
        redact = self._redactor.value
        return msgspec.structs.replace(
            reply,
            text=redact(reply.text),
            finish_reason=redact(reply.finish_reason),
            reasoning=redact(reply.reasoning),
            tool_calls=redact(reply.tool_calls),
            refusal=redact(reply.refusal),
        )

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Makes one call for embeddings.

        Raises:
            UpstreamError: there are none.
        """
        try:
            return await self._client.embed(request)
        except UpstreamError as error:
            raise redacted_error(error, self._redactor, MESSAGE_CHARS) from None


def redacted_error(error: UpstreamError, redactor: Redactor, chars: int) -> UpstreamError:
    """Makes of an error one whose message may be stored.

    Args:
        error: of a call.
        redactor: the rules.
        chars: to which its message was cut.
    """
    text = redactor.cut_text(error.message, chars)
    kept = UpstreamError(
        error.reason, text, status=error.status, wait_s=error.wait_s, is_proxy=error.is_proxy
    )
    kept.latency_ms = error.latency_ms
    return kept


def redacted_reply(reply: Reply, redactor: Redactor) -> Reply:
    """Makes of an API's reply one that may be judged and stored.

    >>> redacted_reply(Reply({"answer": "ann@example.com"}, 3, 200), Redactor(["mail"])).response
    {'answer': '[mail:71d4]'}
    """
    return replace(
        reply,
        response=redactor.value(reply.response),
        error=None if reply.error is None else redactor.cut_text(reply.error, ERROR_BODY_CHARS),
    )
