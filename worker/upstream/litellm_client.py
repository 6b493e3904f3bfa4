"""Calls models at their providers' own places through litellm: the one file that imports it.

litellm translates requests and replies and nothing else: it does not retry, remember, report or price beyond
what a reply says, and none of its exceptions leaves this file (they cannot be unpickled, and give 500 for a
refused connection).

Longer than 300 lines, because no other file may know litellm.
"""

import asyncio
import importlib
import json
import logging
import os
import re
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import lru_cache
from time import time
from types import ModuleType
from typing import Any, Final

import aiohttp

from shared.upstream.egress import DEEPEST, egress_error
from shared.upstream.failure_reasons import FIRST_SERVER_ERROR, OK, FailureReason, reason_of_status
from shared.upstream.model_target import ModelTarget
from worker.upstream.chat import ModelReply, ModelRequest, TextListener, messages_of
from worker.upstream.completion import (
    MAX_REPLY_BYTES,
    Completion,
    StreamReader,
    UnreadableReplyError,
    decoded,
    no_text,
    read_whole,
    too_large,
)
from worker.upstream.credentials import needed_key, own_headers
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest, read_embedding_usage, read_embeddings
from worker.upstream.exchange import failure_of, since_ms
from worker.upstream.failures import UpstreamError, kept_error
from worker.upstream.guarded_session import CURRENT_EXCHANGE, HttpExchange, open_guarded_session
from worker.upstream.protocols.openai_chat import OPENAI_CHAT
from worker.upstream.retry_after import requested_wait_s

WARM_S: Final = 5.0
"""The time limit of a call that is sent nowhere."""
NO_KEY: Final = "none"
_CLASS_NAME: Final = re.compile(r"^(?:(?:litellm\.)?[A-Za-z]+(?:Error|Exception): )+")
BODY_PROVIDERS: Final = ("openai", "azure", "openrouter")
"""Providers besides the OpenAI-compatible ones whose requests take `extra_body`."""


class LitellmClient:
    """Calls named providers; all calls of a process are made on one event loop.

    Args:
        session: returns the session that litellm makes its calls with; called on the loop.
        environment: holds the keys.
    """

    def __init__(
        self, session: Callable[[], aiohttp.ClientSession], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._session = session
        self._environment = environment
        self._loading: asyncio.Task[ModuleType] | None = None
        self._guarded: aiohttp.ClientSession | None = None

    async def prepare(self, model: str) -> None:
        """Pays in a thread what a first call costs: litellm is imported, and answers a call by itself.

        Args:
            model: one that is about to be called.
        """
        await self._library(model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        try:
            key = needed_key(request.target, self._environment)
            return await self._call(await self._library(request.model), request, key)
        except UpstreamError as error:
            raise kept_error(error, self._environment) from None

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Makes one call for embeddings.

        Raises:
            UpstreamError: there are none.
        """
        try:
            key = needed_key(request.target, self._environment)
            return await self._embed(await self._library(request.model), request, key)
        except UpstreamError as error:
            raise kept_error(error, self._environment) from None

    async def close(self) -> None:
        """Closes litellm's connections and ends its task on the loop."""
        if self._guarded is not None:
            await self._guarded.close()
        if self._loading is None:
            return
        litellm: Any = await self._loading
        worker = importlib.import_module("litellm.litellm_core_utils.logging_worker").GLOBAL_LOGGING_WORKER
        await worker.stop()
        await litellm.close_litellm_async_clients()

    async def _library(self, model: str) -> Any:
        """Returns litellm, loaded once, in a thread: seconds that the loop does not stand still."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_loaded, model))
        return await asyncio.shield(self._loading)

    async def _call(self, litellm: Any, request: ModelRequest, key: str) -> ModelReply:
        """Makes one call; everything that goes wrong is raised in our own words."""
        arguments = arguments_of(fitted(litellm, request)) | self._access(request.target, key)
        exchange, first_ms, cost = HttpExchange(), None, None
        completion, failure = None, None
        token = CURRENT_EXCHANGE.set(exchange)
        try:
            async with asyncio.timeout(request.target.timeout_s):
                reply = await litellm.acompletion(**arguments)
                if request.is_streamed:
                    completion, first_ms = await _read_pieces(reply, exchange, request.listener)
                else:
                    completion, cost = _read(reply), _cost(reply)
        except TimeoutError:
            raise _too_late(request.target) from None
        except Exception as error:  # noqa: BLE001 - nothing of litellm passes this border
            failure = translated(error, request.model)
        finally:
            CURRENT_EXCHANGE.reset(token)
        try:
            completion = _as_sent(exchange, is_streamed=request.is_streamed) or completion
        except UnreadableReplyError:
            if completion is None and (failure is None or failure.reason is FailureReason.INVALID_REPLY):
                raise
        if completion is None:
            raise failure or no_text("")
        return completion.as_reply(
            exchange.latency_ms,
            first_token_ms=first_ms,
            cost_usd=cost if completion.usage.input_tokens is not None else None,
        )

    async def _embed(self, litellm: Any, request: EmbeddingRequest, key: str) -> EmbeddingReply:
        """Makes one call for embeddings; everything that goes wrong is raised in our own words."""
        arguments = {
            "model": request.model,
            "input": [*request.texts],
            "timeout": request.target.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            **self._access(request.target, key),
        }
        exchange = HttpExchange()
        token = CURRENT_EXCHANGE.set(exchange)
        try:
            async with asyncio.timeout(request.target.timeout_s):
                reply = await litellm.aembedding(**arguments)
        except TimeoutError:
            raise _too_late(request.target) from None
        except Exception as error:  # noqa: BLE001 - nothing of litellm passes this border
            raise translated(error, request.model) from None
        finally:
            CURRENT_EXCHANGE.reset(token)
        document = reply.model_dump(include={"data", "usage"}, warnings=False)
        packed = read_embeddings(document, len(request.texts))
        usage = read_embedding_usage(document)
        cost_usd = None if usage.input_tokens is None else _cost(reply)
        return EmbeddingReply(packed, exchange.latency_ms, usage, cost_usd)

    def _access(self, target: ModelTarget, key: str) -> dict[str, Any]:
        """Makes the arguments that say how a request is sent: session, headers and key."""
        if self._guarded is None:
            self._guarded = open_guarded_session(self._session())
        arguments: dict[str, Any] = {"shared_session": self._guarded}
        if headers := own_headers(target, self._environment):
            arguments["extra_headers"] = headers
            key = key or NO_KEY  # a header takes its place, and litellm requires one
        return arguments | ({"api_key": key} if key else {})


def _too_late(target: ModelTarget) -> UpstreamError:
    text = f"{target.model} gave no answer within {target.timeout_s:g} s"
    return UpstreamError(FailureReason.TIMEOUT, text)


def load_library() -> ModuleType:
    """Imports litellm so that it fetches nothing, reads no `.env`, reports nothing and prints nothing."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else it reads a `.env` of its own choice, addresses included
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own making, beyond our control
        litellm: Any = importlib.import_module("litellm")
        litellm.ModelResponse()  # builds its models with pydantic, which warns; else the first call would
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.num_retries = 0
    litellm.DEFAULT_MAX_RETRIES = 0  # embeddings take this where a call asks for none
    litellm.disable_aiohttp_trust_env = True  # proxies are the session's affair
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm  # type: ignore[no-any-return]  # set as Any, because it does not name its settings' types


def _loaded(model: str) -> ModuleType:
    """Imports litellm and makes it ready."""
    litellm = load_library()
    warm_up(litellm, model)
    return litellm


def warm_up(litellm: Any, model: str) -> None:
    """Has litellm answer a call by itself, so that the first real one finds loaded what it loads when called.

    Args:
        litellm: the library.
        model: one that is about to be called.
    """
    request = ModelRequest(ModelTarget(model, timeout_s=WARM_S), "", "ready?")
    with warnings.catch_warnings(), suppress(Exception):  # the real call says what is wrong
        warnings.simplefilter("ignore")
        litellm.completion(**arguments_of(request), api_key=NO_KEY, mock_response="ready")
    with suppress(Exception):
        importlib.import_module("openai.resources.chat.completions")


def arguments_of(request: ModelRequest) -> dict[str, Any]:
    """Makes the arguments of a call: one request is sent, whatever comes of it.

    >>> arguments_of(ModelRequest(ModelTarget("openai/gpt-4o"), "", "Hi"))["max_retries"]
    0
    """
    arguments = {
        **request.parameters,
        "model": request.model,
        "messages": messages_of(request),
        "timeout": request.target.timeout_s,
        "num_retries": 0,
        "max_retries": 0,
    }
    if request.temperature is not None:
        arguments["temperature"] = request.temperature
    if "tools" in request.parameters:
        # Else litellm looks for a gateway of tools, and needs a package that is not here.
        arguments["_skip_mcp_handler"] = True
    if request.is_streamed:
        arguments |= {"stream": True, "stream_options": {"include_usage": True}}
    return arguments


@lru_cache(256)
def options_taken(litellm: Any, model: str) -> frozenset[str] | None:
    """Returns the options that a provider takes for a model, by litellm's table; None for one not listed.

    Args:
        litellm: the library.
        model: as the configuration names it.
    """
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
        listed = litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)
    except Exception:  # noqa: BLE001 - of many kinds; the call itself says what is wrong
        return None
    if listed is None:
        return None
    takes_body = provider in {*BODY_PROVIDERS, *litellm.openai_compatible_providers}
    return frozenset(listed) | ({"extra_body"} if takes_body else frozenset())


def fitted(litellm: Any, request: ModelRequest) -> ModelRequest:
    """Returns a request without a temperature where its model takes none.

    Raises:
        UpstreamError: it has another option that the provider does not take; nothing is left out in silence.
    """
    taken = options_taken(litellm, request.model)
    if taken is None:
        return request
    if missing := sorted(set(request.parameters) - taken):
        options = " and ".join(missing)
        raise UpstreamError(FailureReason.REFUSED, f"{request.model} does not take {options}: remove it")
    return request if "temperature" in taken else replace(request, temperature=None)


def translated(error: Exception, model: str) -> UpstreamError:
    """Translates an exception into our own words.

    litellm names a refused connection, half a body and an answer that is none all `InternalServerError` 500;
    what they were is found among their causes.

    >>> translated(ValueError("odd"), "m").reason.name
    'INVALID_REPLY'
    """
    if refusal := egress_error(error):
        return UpstreamError(FailureReason.FORBIDDEN, f"{model}: {refusal}")
    causes = list(_causes(error))
    if found := next(filter(None, (_recognised(cause, model) for cause in causes)), None):
        return found
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else 0
    text = _words(error)
    if "HTTPStatusError" in names or 0 < status < FIRST_SERVER_ERROR:
        is_timeout = "HTTPStatusError" not in names and "APITimeoutError" in names
        known = reason_of_status(status or FIRST_SERVER_ERROR, str(error))
        reason, status = (FailureReason.TIMEOUT, 0) if is_timeout else (known, status)
        return UpstreamError(reason, f"{model}: {text}", status=status, wait_s=_wait_s(causes))
    if names & {"TimeoutError", "TimeoutException", "APITimeoutError"}:
        return UpstreamError(FailureReason.TIMEOUT, f"{model}: {text}")
    if any(isinstance(cause, aiohttp.ClientError | OSError) for cause in causes) or "TransportError" in names:
        return UpstreamError(FailureReason.CONNECTION_LOST, f"the connection for {model} broke: {text}")
    return UpstreamError(FailureReason.INVALID_REPLY, f"{model}: {text}")


def _recognised(cause: BaseException, model: str) -> UpstreamError | None:
    """Finds out whether a cause says by itself what went wrong."""
    if isinstance(cause, UpstreamError):
        return cause
    if not isinstance(cause, aiohttp.ClientError | OSError):
        return None
    failure = failure_of(cause, "", place="its server")
    is_sure = failure.reason in {FailureReason.INSECURE, FailureReason.UNREACHABLE}
    return UpstreamError(failure.reason, f"{model}: {failure.message}") if is_sure else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, the nearest first."""
    found: BaseException | None = error
    for _ in range(DEEPEST):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _words(error: Exception) -> str:
    r"""The part of litellm's text that is for people, on one line: without class names, tracebacks and JSON.

    >>> _words(ValueError("litellm.BadRequestError: No provider.\n Pass one."))
    'No provider. Pass one.'
    >>> _words(ValueError('litellm.AuthenticationError: AException - {"error": {"message": "bad key"}}'))
    'bad key'
    """
    text = str(error).partition("Traceback")[0].strip()
    text = " ".join(_CLASS_NAME.sub("", text.rpartition("Exception - ")[2]).split())
    with suppress(ValueError, TypeError, KeyError):
        text = str(json.loads(text)["error"]["message"])
    return text or type(error).__name__


def _wait_s(causes: list[BaseException]) -> float | None:
    """What the upstream asked to wait, by the headers of the first exception that has any."""
    for cause in causes:
        headers = getattr(cause, "litellm_response_headers", None) or getattr(
            getattr(cause, "response", None), "headers", None
        )
        if headers:
            plain = {str(name).lower(): str(value) for name, value in dict(headers).items()}
            return requested_wait_s(plain, now_s=time())
    return None


def _as_sent(exchange: HttpExchange, *, is_streamed: bool) -> Completion | None:
    """Reads a reply in OpenAI's form from its own bytes; None of a reply in any other form.

    Raises:
        UpstreamError: it holds no answer.
    """
    if exchange.status != OK:
        return None
    body = bytes(exchange.body)
    if is_streamed:
        reader = StreamReader(OPENAI_CHAT)
        reader.feed(body)
        reader.end()
        if reader.has_events:
            # litellm stops reading at the end of the answer, which is not always the end of the bytes.
            is_read = reader.answer.has_answer and (exchange.is_whole or reader.is_ended)
            return reader.finish() if is_read else None
    if not exchange.is_whole:
        return None
    reply = decoded(body, exchange.charset)
    is_known = isinstance(reply, dict) and ("choices" in reply or reply.get("error"))
    return read_whole(OPENAI_CHAT, reply) if is_known else None


def _read(reply: Any) -> Completion:
    """Reads a whole reply."""
    completion = read_whole(OPENAI_CHAT, reply.model_dump(include={"choices", "usage"}, warnings=False))
    texts = [completion.text, completion.refusal, completion.reasoning]
    texts += [text for call in completion.tool_calls for text in call["function"].values()]
    if sum(len(text.encode("utf-8", "replace")) for text in texts) > MAX_REPLY_BYTES:
        raise too_large()
    return completion


async def _read_pieces(
    reply: Any, exchange: HttpExchange, listener: TextListener | None
) -> tuple[Completion, int | None]:
    """Reads an answer as it comes; also returns when its first piece came."""
    reader, size, first_ms = StreamReader(OPENAI_CHAT, listener), 0, None
    async with aclosing(_pieces(reply)) as pieces:
        async for piece in pieces:
            size += sum(_size(choice.get("delta") or {}) for choice in piece.get("choices") or ())
            if size > MAX_REPLY_BYTES:
                raise too_large()
            reader.take(piece)
            if first_ms is None and reader.answer.has_begun:
                first_ms = since_ms(exchange.began_s)
    return reader.finish(), first_ms


def _size(delta: Mapping[str, Any]) -> int:
    """Characters of the texts in a piece of an answer."""
    texts = [delta.get(name) for name in ("content", "refusal", "reasoning_content", "reasoning")]
    functions = [call.get("function") or {} for call in delta.get("tool_calls") or ()]
    texts += [function.get("arguments") for function in functions]
    return sum(len(text) for text in texts if isinstance(text, str))


async def _pieces(reply: Any) -> AsyncGenerator[dict[str, Any], None]:
    """The pieces of an answer as plain values."""
    async for piece in reply:
        yield piece.model_dump(include={"choices", "usage"}, warnings=False)


def _cost(reply: Any) -> float | None:
    """What litellm says a call cost; nothing is also what it says where it does not know."""
    cost = (getattr(reply, "_hidden_params", None) or {}).get("response_cost")
    return float(cost) if isinstance(cost, int | float) and cost > 0 else None
