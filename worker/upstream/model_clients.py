"""Calls models: an `api_base` directly over aiohttp, named providers through litellm.

The direct client costs a thirtieth of litellm. It does not follow redirects, which could carry the key to
another server. litellm is imported before the first call of a named provider: 2.5 to 5 seconds and 170 MB
that a worker of turns, queries or local models never pays, and that no call's time or limit pays either.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from shared.scrubbing import kept
from shared.upstream.addresses import shown_url, with_path
from shared.upstream.egress import EgressError
from shared.upstream.failure_reasons import NOT_FOUND, FailureReason, reason_of_status
from shared.upstream.model_target import ModelTarget
from shared.upstream.proxies import proxy_problem
from worker.upstream.chat import ModelReply, ModelRequest, messages_of, options_of, served_name
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
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest, body_of_embedding, read_embeddings
from worker.upstream.failures import UpstreamError, kept_error, tls_problem
from worker.upstream.retry_after import requested_wait_s

if TYPE_CHECKING:
    from worker.upstream.litellm_client import LitellmClient

Request = TypeVar("Request", ModelRequest, EmbeddingRequest)
Reply = TypeVar("Reply", ModelReply, EmbeddingReply)
OK: Final = 200
CHAT_PATH: Final = "/chat/completions"
EMBEDDINGS_PATH: Final = "/embeddings"
MAX_ERROR_BYTES: Final = 64_000
FINISH_REASON_CHARS: Final = 40
_USUAL_REASONS: Final = frozenset({"", "stop", "length", "tool_calls", "content_filter", "function_call"})
"""Words of OpenAI's interface; any other text may contain what was sent, the key included."""
_WITHOUT: Final = re.compile(r"(o1|o3|o4|gpt-5)(?!\d)(?!-chat)", re.ASCII)
"""Beginnings of the names of models that reason and take none (OpenAI's)."""
_REFUSED: Final = re.compile(
    r"unsupported|not support|doesn.t support|only the default|deprecated|not permitted|unrecognized",
    re.IGNORECASE | re.ASCII,
)


class ModelClients:
    """The model clients of one process, as one.

    Args:
        session: returns the process's HTTP session; called on the loop.
        environment: holds the keys.
    """

    def __init__(
        self,
        session: Callable[[], aiohttp.ClientSession],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._environment = environment
        self._session = session
        self._direct = DirectClient(session, environment)
        self._named: LitellmClient | None = None
        self._untempered: set[tuple[str, str]] = set()

    async def prepare(self, target: ModelTarget) -> None:
        """Loads litellm and makes it ready, where a model is the first that needs it."""
        if not target.api_base:
            await self._litellm().prepare(target.model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        place = request.model, request.target.api_base
        if request.temperature is not None and (place in self._untempered or not takes_temperature(place[0])):
            request = replace(request, temperature=None)
        try:
            return await self._complete(request)
        except UpstreamError as error:
            if request.temperature is None or not refuses_temperature(error):
                raise
            self._untempered.add(place)
            return await self._complete(replace(request, temperature=None))

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Makes one call for embeddings.

        Raises:
            UpstreamError: there are none.
        """
        if request.target.api_base:
            return await self._direct.embed(request)
        return await self._litellm().embed(request)

    async def _complete(self, request: ModelRequest) -> ModelReply:
        client = self._direct if request.target.api_base else self._litellm()
        reply = await client.complete(request)
        if reply.finish_reason in _USUAL_REASONS:
            return reply
        reason = kept(reply.finish_reason, self._environment, FINISH_REASON_CHARS)
        return msgspec.structs.replace(reply, finish_reason=reason)

    def _litellm(self) -> "LitellmClient":
        if self._named is None:
            from worker.upstream.litellm_client import LitellmClient  # noqa: PLC0415 - only where it is needed

            self._named = LitellmClient(self._session, self._environment)
        return self._named

    async def close(self) -> None:
        """Closes what litellm has opened; the session is the process's."""
        if self._named is not None:
            await self._named.close()


def takes_temperature(model: str) -> bool:
    """Returns whether a model may be sent a temperature, as far as its name says.

    >>> [takes_temperature(model) for model in ("openai/o3-mini", "gpt-5", "gpt-5-chat-latest", "gpt-4o")]
    [False, False, True, True]
    """
    return _WITHOUT.match(model.rpartition("/")[2]) is None


def refuses_temperature(error: UpstreamError) -> bool:
    """Returns whether a request was refused because it had a temperature at all.

    >>> refuses_temperature(UpstreamError(FailureReason.REFUSED, "Unsupported parameter: 'temperature'"))
    True
    >>> refuses_temperature(UpstreamError(FailureReason.REFUSED, "temperature has to be 2 at most"))
    False
    """
    return (
        error.reason is FailureReason.REFUSED
        and "temperature" in error.message.lower()
        and _REFUSED.search(error.message) is not None
    )


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
        target = request.target
        place = place_of(target.api_base)
        try:
            async with asyncio.timeout(target.timeout_s):
                return await call(request)
        except TimeoutError:
            text = f"{place} gave no answer within {target.timeout_s:g} s"
            raise UpstreamError(FailureReason.TIMEOUT, text) from None
        except EgressError as error:
            raise UpstreamError(FailureReason.FORBIDDEN, str(error)) from None
        except aiohttp.ClientHttpProxyError as error:
            raise UpstreamError(FailureReason.UNREACHABLE, proxy_problem(error, target.api_base)) from None
        except aiohttp.ClientConnectorError as error:
            raise _no_connection(error, target.api_base) from None
        except ValueError as error:  # no URL; also aiohttp's own InvalidURL
            text = f"{place} cannot be called: {type(error).__name__}"
            raise UpstreamError(FailureReason.REFUSED, text) from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"the connection to {place} broke: {type(error).__name__}"
            raise UpstreamError(FailureReason.CONNECTION_LOST, text) from None

    async def _complete(self, request: ModelRequest) -> ModelReply:
        """Sends the request and reads the reply."""
        began, first_ms = perf_counter(), None
        async with self._sent(request.target, CHAT_PATH, body_of(request)) as response:
            if request.is_streamed:
                completion, first_ms = await _read_pieces(response, began)
            else:
                completion = read_completion(decoded(await _read(response), response.charset))
        return completion.as_reply(_since_ms(began), first_token_ms=first_ms)

    async def _embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Sends the texts and reads their vectors."""
        began = perf_counter()
        async with self._sent(request.target, EMBEDDINGS_PATH, body_of_embedding(request)) as response:
            reply = decoded(await _read(response), response.charset)
        raise_reported_error(reply)
        packed = read_embeddings(reply, len(request.texts))
        tokens, _ = read_usage(reply.get("usage"))
        return EmbeddingReply(packed, _since_ms(began), tokens)

    @asynccontextmanager
    async def _sent(
        self, target: ModelTarget, path: str, body: Mapping[str, Any]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request, and yields its reply where the status says that it is one."""
        headers = {"Content-Type": "application/json", **own_headers(target, self._environment)}
        key = needed_key(target, self._environment)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        async with self._session().post(
            with_path(target.api_base, path),
            data=msgspec.json.encode(body),
            headers=headers,
            timeout=aiohttp.ClientTimeout(),
            allow_redirects=False,
        ) as response:
            if response.status != OK:
                raise await error_of_reply(response, with_path(target.api_base, path))
            yield response


def body_of(request: ModelRequest) -> dict[str, Any]:
    """Makes the body of a request.

    >>> body_of(ModelRequest(ModelTarget("openai/mine"), "", "Hi", temperature=0))
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
    """Explains why no connection was made."""
    place = place_of(api_base)
    if problem := tls_problem(error, place):
        return UpstreamError(FailureReason.INSECURE, problem)
    number = error.os_error.errno or 0
    why = os.strerror(number) if number > 0 else error.os_error.strerror or type(error).__name__
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
    reader.end()
    return reader.finish(response.charset), first_ms


async def error_of_reply(response: aiohttp.ClientResponse, url: str) -> UpstreamError:
    """Reads a reply from a URL with another status than 200: the reason, the text and the requested wait."""
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
    place = f" at {shown_url(url)}" if response.status == NOT_FOUND else ""
    remedy = " (most servers want /v1 at the end of api_base)" if place and _has_no_path(url) else ""
    text = f"HTTP {response.status}{place}: {words or response.reason or 'no reason given'}{remedy}"
    wait_s = requested_wait_s(response.headers, now_s=time())
    return UpstreamError(reason_of_status(response.status), text, status=response.status, wait_s=wait_s)


def _has_no_path(url: str) -> bool:
    """Whether the URL of a call has nothing before the protocol's own path.

    >>> _has_no_path("http://h/chat/completions"), _has_no_path("http://h/v1/chat/completions")
    (True, False)
    """
    return urlsplit(url).path in {CHAT_PATH, EMBEDDINGS_PATH}


def _since_ms(began: float) -> int:
    return round(1000 * (perf_counter() - began))
