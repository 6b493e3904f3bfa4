"""Calls models: an `api_base` directly over aiohttp, named providers through litellm.

The direct client costs a thirtieth of litellm, which is imported before the first call of a named provider:
2.5 to 5 seconds and 170 MB that a worker of turns, queries or local models never pays, and that no call's
time or limit pays either.
"""

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from shared.codecs.http_bodies import text_of_body
from shared.contracts.merged_options import merge_headers
from shared.scrubbing import kept
from shared.upstream.addresses import shown_url, with_path
from shared.upstream.failure_reasons import NOT_FOUND, OK, FailureReason, reason_of_status
from shared.upstream.http_mapping import HttpMapping, HttpSession
from shared.upstream.model_target import ModelTarget
from shared.upstream.protocol_names import OPENAI
from worker.upstream.chat import ModelReply, ModelRequest, TextListener
from worker.upstream.completion import (
    MAX_REPLY_BYTES,
    Completion,
    HttpCall,
    StreamReader,
    WireProtocol,
    decoded,
    error_text,
    raise_reported_error,
    read_whole,
    too_large,
)
from worker.upstream.credentials import needed_key, own_headers
from worker.upstream.embeddings import (
    EMBEDDINGS_PATH,
    EmbeddingReply,
    EmbeddingRequest,
    embedding_call,
    read_embedding_usage,
    read_embeddings,
)
from worker.upstream.exchange import MAX_ERROR_BYTES, exchange, failure_of, read_body, since_ms
from worker.upstream.failures import UpstreamError, kept_error
from worker.upstream.http_applications import (
    HttpSessions,
    content_of,
    http_application,
    rendered_where,
    session_call,
    taken,
)
from worker.upstream.protocols.openai_chat import CHAT_PATH
from worker.upstream.protocols.wire_protocols import wire_protocol
from worker.upstream.request_forms import PrefixMarks, in_form, refuses_form
from worker.upstream.retry_after import requested_wait_s

if TYPE_CHECKING:
    from worker.upstream.hosted_models import HostedModels
    from worker.upstream.litellm_client import LitellmClient

T = TypeVar("T")
Response: TypeAlias = aiohttp.ClientResponse
FINISH_REASON_CHARS: Final = 40
_USUAL_REASONS: Final = frozenset({"", "stop", "length", "tool_calls", "content_filter", "function_call"})
"""Words of OpenAI's interface; any other text may contain what was sent, the key included."""
_WITHOUT: Final = re.compile(r"(o1|o3|o4|gpt-5)(?!\d)(?!-chat)", re.ASCII)
"""Beginnings of the names of models that reason and take no temperature (OpenAI's)."""
_REFUSED: Final = re.compile(
    r"unsupported|not support|doesn.t support|only the default|deprecated|not permitted|unrecognized",
    re.IGNORECASE | re.ASCII,
)


class ModelClients:
    """The model clients of one process, as one.

    Args:
        session: returns the process's HTTP session; called on the loop.
        environment: holds the keys.
        allow_code: whether code beside benches may run.
    """

    def __init__(
        self,
        session: Callable[[], aiohttp.ClientSession],
        environment: Mapping[str, str] = os.environ,
        *,
        allow_code: bool = False,
    ) -> None:
        self._environment = environment
        self._session = session
        self._allow_code = allow_code
        self._hosted: HostedModels | None = None
        self._direct = DirectClient(session, environment)
        self._named: LitellmClient | None = None
        self._untempered: set[tuple[str, str]] = set()
        self._formless: set[tuple[str, str]] = set()
        self._marks = PrefixMarks()

    async def prepare(self, target: ModelTarget) -> None:
        """Loads litellm and makes it ready, where a model is the first that needs it; starts code."""
        if target.is_hosted:
            await self._code().prepare(target)
        elif not target.api_base:
            await self._litellm().prepare(target.model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        request, place = self._marks.marked(request), (request.model, request.target.api_base)
        if request.form is None or place in self._formless:
            return await self._tempered(request)
        try:
            return await self._tempered(in_form(request))
        except UpstreamError as error:
            if not refuses_form(error):
                raise
        reply = await self._tempered(request)
        self._formless.add(place)
        return reply

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Makes one call for embeddings.

        Raises:
            UpstreamError: there are none.
        """
        if request.target.is_hosted:
            text = f"{request.target.model} is code, which makes no embeddings"
            raise UpstreamError(FailureReason.REFUSED, text)
        if request.target.api_base:
            return await self._direct.embed(request)
        return await self._litellm().embed(request)

    async def _tempered(self, request: ModelRequest) -> ModelReply:
        """Makes one call, and one more where it turns out that the model takes no temperature."""
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

    async def _complete(self, request: ModelRequest) -> ModelReply:
        reply = await self._client_of(request.target).complete(request)
        if reply.finish_reason in _USUAL_REASONS:
            return reply
        reason = kept(reply.finish_reason, self._environment, FINISH_REASON_CHARS)
        return msgspec.structs.replace(reply, finish_reason=reason)

    def _client_of(self, target: ModelTarget) -> "HostedModels | DirectClient | LitellmClient":
        if target.is_hosted:
            return self._code()
        return self._direct if target.api_base else self._litellm()

    def _code(self) -> "HostedModels":
        if self._hosted is None:
            from worker.upstream.hosted_models import HostedModels  # noqa: PLC0415 - only where it is needed

            self._hosted = HostedModels(self._environment, allow_code=self._allow_code)
        return self._hosted

    def _litellm(self) -> "LitellmClient":
        if self._named is None:
            from worker.upstream.litellm_client import LitellmClient  # noqa: PLC0415 - only where it is needed

            self._named = LitellmClient(self._session, self._environment)
        return self._named

    async def close(self) -> None:
        """Closes what litellm and code have opened; the session is the process's."""
        if self._hosted is not None:
            await self._hosted.close()
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
        self._sessions = HttpSessions()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        with self._kept(request.target):
            return await self._complete(request)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Makes one call for embeddings.

        Raises:
            UpstreamError: there are none.
        """
        with self._kept(request.target):
            return await self._embed(request)

    @contextmanager
    def _kept(self, target: ModelTarget) -> Iterator[None]:
        """Takes secrets out of the texts of errors."""
        try:
            yield
        except UpstreamError as error:
            raise kept_error(error, self._environment) from None
        except ValueError as error:  # the request cannot be written
            raise failure_of(error, target.api_base) from None

    async def _complete(self, request: ModelRequest) -> ModelReply:
        """Sends the request and reads the reply."""
        if request.target.http is not None:
            return await self._ask_application(request, request.target.http)
        began, protocol = perf_counter(), wire_protocol(request.target)
        in_pieces = partial(_read_pieces, began_s=began, listener=request.listener)
        read = in_pieces if request.is_streamed else _read_whole
        call = protocol.request(request, needed_key(request.target, self._environment))
        completion, first_ms = await self._sent(request.target, call, partial(read, protocol))
        return completion.as_reply(since_ms(began), first_token_ms=first_ms)

    async def _ask_application(self, request: ModelRequest, mapping: HttpMapping) -> ModelReply:
        """Asks an application, in its session if it has one."""
        target = request.target
        key = needed_key(target, self._environment)

        async def ask(session: Mapping[str, Any]) -> ModelReply:
            protocol = http_application(mapping, session)
            call = await rendered_where(mapping, partial(protocol.request, request, key))
            began = perf_counter()
            completion, _ = await self._sent(target, call, partial(_read_whole, protocol))
            return completion.as_reply(since_ms(began))

        async def begin(session: HttpSession) -> Mapping[str, Any]:
            call = session_call(session.request, key)
            return taken(session, await self._sent(target, call, _read))

        return await self._sessions.within((request.run, target.model), mapping.session, begin, ask)

    async def _embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Sends the texts and reads their vectors."""
        began = perf_counter()
        call = embedding_call(request, needed_key(request.target, self._environment))
        reply = await self._sent(request.target, call, _read)
        raise_reported_error(reply)
        packed = read_embeddings(reply, len(request.texts))
        return EmbeddingReply(packed, since_ms(began), read_embedding_usage(reply))

    async def _sent(
        self,
        target: ModelTarget,
        call: HttpCall,
        read: Callable[[Response], Awaitable[T]],
    ) -> T:
        """Sends a request, and reads its reply where the status says that it is one."""
        sent = msgspec.structs.replace(target, headers=merge_headers(call.headers, target.headers))
        headers = {"Content-Type": "application/json", **own_headers(sent, self._environment)}
        url = call.url or with_path(target.api_base, call.path)

        async def read_answer(response: Response) -> T:
            if response.status // 100 != OK // 100:
                raise await error_of_reply(response, url, target)
            return await read(response)

        return await exchange(
            self._session(),
            call.method,
            url,
            read_answer,
            headers=headers,
            timeout_s=target.timeout_s,
            **content_of(call),
        )


async def _read(response: Response) -> Any:
    """Reads the JSON of a bounded body."""
    body = await read_body(response, MAX_REPLY_BYTES)
    if len(body) > MAX_REPLY_BYTES:
        raise too_large()
    return decoded(body, response.charset)


async def _read_whole(protocol: WireProtocol, response: Response) -> tuple[Completion, int | None]:
    """Reads an answer that comes at once."""
    return read_whole(protocol, await _read(response)), None


async def _read_pieces(
    protocol: WireProtocol, response: Response, began_s: float, listener: TextListener | None
) -> tuple[Completion, int | None]:
    """Reads an answer as it comes; also returns when its first piece came."""
    reader, size, first_ms = StreamReader(protocol, listener), 0, None
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            response.close()
            raise too_large()
        reader.feed(piece)
        if first_ms is None and reader.answer.has_begun:
            first_ms = since_ms(began_s)
    reader.end()
    return reader.finish(response.charset), first_ms


async def error_of_reply(response: aiohttp.ClientResponse, url: str, target: ModelTarget) -> UpstreamError:
    """Reads a reply from a URL with another status than 200: the reason, the text and the requested wait."""
    try:
        body = await read_body(response, MAX_ERROR_BYTES)
    except (aiohttp.ClientError, OSError):
        body = b""  # the status says enough
    try:
        words = error_text(decoded(body, response.charset))
    except UpstreamError:
        words = ""
    reason = reason_of_status(response.status, text_of_body(body, response.charset))
    place = f" at {shown_url(url)}" if response.status == NOT_FOUND else ""
    remedy = _remedy(url, target) if place else ""
    text = f"HTTP {response.status}{place}: {words or response.reason or 'no reason given'}{remedy}"
    wait_s = requested_wait_s(response.headers, now_s=time())
    return UpstreamError(reason, text, status=response.status, wait_s=wait_s)


def _remedy(url: str, target: ModelTarget) -> str:
    """Returns what helps where nothing is found.

    >>> _remedy("http://h/chat/completions", ModelTarget("m", "http://h"))
    ' (most servers want /v1 at the end of api_base)'
    >>> _remedy("http://h/v1/messages", ModelTarget("anthropic/m", "http://h"))
    " (called in the protocol anthropic by the model's name; for a gateway write protocol: openai)"
    """
    if urlsplit(url).path in {CHAT_PATH, EMBEDDINGS_PATH}:
        return " (most servers want /v1 at the end of api_base)"
    if target.protocol or target.spoken == OPENAI:
        return ""
    called = f"called in the protocol {target.spoken} by the model's name"
    return f" ({called}; for a gateway write protocol: openai)"
