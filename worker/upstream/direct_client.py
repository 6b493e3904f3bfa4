"""Calls models at OpenAI-compatible endpoints (`api_base`) over aiohttp, at a thirtieth of litellm's cost.

Redirects are not followed: they could carry the key to another server.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from time import perf_counter, time
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from shared.upstream.addresses import with_path
from shared.upstream.failure_reasons import FailureReason, reason_of_status
from worker.upstream.chat import Destination, ModelReply, ModelRequest, messages_of, options_of, served_name
from worker.upstream.completion import (
    MAX_REPLY_BYTES,
    Completion,
    StreamAssembler,
    decoded,
    error_text,
    raise_reported_error,
    read_completion,
    read_usage,
    too_large,
)
from worker.upstream.credentials import needed_key, own_headers
from worker.upstream.egress import EgressError
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest, body_of_embedding, read_embeddings
from worker.upstream.failures import UpstreamError, kept_error, tls_problem
from worker.upstream.proxies import proxy_problem
from worker.upstream.retry_after import requested_wait_s

Request = TypeVar("Request", ModelRequest, EmbeddingRequest)
Reply = TypeVar("Reply", ModelReply, EmbeddingReply)
OK: Final = 200
MAX_ERROR_BYTES: Final = 64_000


class DirectClient:
    """Calls models over one process's HTTP session.

    Args:
        session: returns the session; called on the loop.
        environment: holds the keys.
    """

    def __init__(
        self, session: Callable[[], aiohttp.ClientSession], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._session = session
        self._environment = environment

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        return await self._translated(request, self._complete)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Makes one call for embeddings.

        Raises:
            UpstreamError: there are none.
        """
        return await self._translated(request, self._embed)

    async def _translated(self, request: Request, call: Callable[[Request], Awaitable[Reply]]) -> Reply:
        """Makes one call; texts of errors have no secrets in them."""
        try:
            return await self._bounded(request, call)
        except UpstreamError as error:
            raise kept_error(error, self._environment) from None

    async def _bounded(self, request: Request, call: Callable[[Request], Awaitable[Reply]]) -> Reply:
        """Makes one call; texts of errors are as the upstream wrote them."""
        place = place_of(request.api_base)
        try:
            async with asyncio.timeout(request.timeout_s):
                return await call(request)
        except TimeoutError:
            text = f"{place} gave no answer within {request.timeout_s:g} s"
            raise UpstreamError(FailureReason.TIMEOUT, text) from None
        except EgressError as error:
            raise UpstreamError(FailureReason.FORBIDDEN, str(error)) from None
        except aiohttp.ClientHttpProxyError as error:
            raise UpstreamError(FailureReason.UNREACHABLE, proxy_problem(error, request.api_base)) from None
        except aiohttp.ClientConnectorError as error:
            raise _no_connection(error, request.api_base) from None
        except ValueError as error:  # no URL; also aiohttp's own InvalidURL
            text = f"{place} cannot be called: {type(error).__name__}"
            raise UpstreamError(FailureReason.REFUSED, text) from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"the connection to {place} broke: {type(error).__name__}"
            raise UpstreamError(FailureReason.CONNECTION_LOST, text) from None

    async def _complete(self, request: ModelRequest) -> ModelReply:
        """Sends the request and reads the reply."""
        began, first_ms = perf_counter(), None
        async with self._sent(request, "/chat/completions", body_of(request)) as response:
            if request.is_streamed and response.content_type != "application/json":
                said, first_ms = await _read_pieces(response, began)
            else:
                said = read_completion(decoded(await _read(response), response.charset))
        return said.as_reply(_since_ms(began), first_token_ms=first_ms)

    async def _embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Sends the texts and reads their vectors."""
        began = perf_counter()
        async with self._sent(request, "/embeddings", body_of_embedding(request)) as response:
            reply = decoded(await _read(response), response.charset)
        raise_reported_error(reply)
        packed = read_embeddings(reply, len(request.texts))
        tokens, _ = read_usage(reply.get("usage"))
        return EmbeddingReply(packed, _since_ms(began), tokens)

    @asynccontextmanager
    async def _sent(
        self, request: Destination, path: str, body: Mapping[str, Any]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request, and yields its reply where the status says that it is one."""
        headers = {"Content-Type": "application/json", **own_headers(request, self._environment)}
        key = needed_key(request, self._environment)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        async with self._session().post(
            with_path(request.api_base, path),
            data=msgspec.json.encode(body),
            headers=headers,
            timeout=aiohttp.ClientTimeout(),
            allow_redirects=False,
        ) as response:
            if response.status != OK:
                raise await _refusal(response)
            yield response


def body_of(request: ModelRequest) -> dict[str, Any]:
    """Makes the body of a request.

    >>> body_of(ModelRequest("openai/mine", "", "Hi", temperature=0))
    {'model': 'mine', 'messages': [{'role': 'user', 'content': 'Hi'}], 'temperature': 0}
    """
    body = {
        **options_of(request),
        "model": served_name(request.model),
        "messages": messages_of(request),
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.is_streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def place_of(api_base: str) -> str:
    """Names an endpoint for people, without what may be secret in its URL.

    >>> place_of("http://me:secret@localhost:8000/v1?key=1"), place_of("http://[")
    ('localhost:8000', 'the endpoint')
    """
    try:
        return urlsplit(api_base).netloc.rpartition("@")[2] or "the endpoint"
    except ValueError:
        return "the endpoint"


def _no_connection(error: aiohttp.ClientConnectorError, api_base: str) -> UpstreamError:
    """Says why no connection was made."""
    place = place_of(api_base)
    if problem := tls_problem(error, place):
        return UpstreamError(FailureReason.INSECURE, problem)
    why = error.os_error.strerror or type(error).__name__
    problem = proxy_problem(error, api_base) or f"{place} cannot be reached: {why}"
    return UpstreamError(FailureReason.UNREACHABLE, problem)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Reads a bounded body: what is more than we take is not even read."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            response.close()
            raise too_large()
    return bytes(body)


async def _read_pieces(response: aiohttp.ClientResponse, began: float) -> tuple[Completion, int | None]:
    """Reads an answer as it comes; also returns when its first piece came."""
    reader, size, first_ms = StreamAssembler(), 0, None
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            response.close()
            raise too_large()
        reader.feed(piece)
        if first_ms is None and reader.has_answer:
            first_ms = _since_ms(began)
    reader.feed(b"\n")
    return reader.finish(), first_ms


async def _refusal(response: aiohttp.ClientResponse) -> UpstreamError:
    """Says what a status other than 200 means."""
    body = bytearray()
    try:
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > MAX_ERROR_BYTES:
                response.close()
                break
    except (aiohttp.ClientError, OSError):
        body.clear()  # the status says enough
    try:
        words = error_text(decoded(bytes(body), response.charset))
    except UpstreamError:
        words = ""
    text = f"HTTP {response.status}: {words or response.reason or 'no reason given'}"
    wait_s = requested_wait_s(response.headers, now_s=time())
    return UpstreamError(reason_of_status(response.status), text, status=response.status, wait_s=wait_s)


def _since_ms(began: float) -> int:
    return round(1000 * (perf_counter() - began))
