"""Calls models that are no endpoints: code beside a bench, and clients of installed packages, in one way.

Both are clients as `proctor.plugins` has them; here their answers become those of every other model.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Mapping
from time import perf_counter
from typing import Any, Final

import msgspec

from proctor.plugins import CallFailedError, ModelAnswer, ModelCall, ModelClient
from shared import plugins
from shared.upstream.costs import MOST_USD
from shared.upstream.failure_reasons import OK, FailureReason, reason_of_status
from shared.upstream.model_target import ModelTarget
from shared.upstream.usage import NO_USAGE, Usage, count
from worker.upstream.chat import ModelReply, ModelRequest, messages_of
from worker.upstream.code_client import CodeClient
from worker.upstream.completion import MAX_REPLY_BYTES, AnswerAssembler, Piece, too_large, word
from worker.upstream.exchange import since_ms
from worker.upstream.failures import UpstreamError, kept_error
from worker.upstream.tool_calls import call_pieces

MOST_CLIENTS: Final = 64
"""Clients that a process keeps: one for each file or plug-in with a `config`."""
_REASONS: Final = {
    "rate_limited": FailureReason.RATE_LIMITED,
    "timeout": FailureReason.TIMEOUT,
    "unreachable": FailureReason.UNREACHABLE,
    "connection_lost": FailureReason.CONNECTION_LOST,
    "server_error": FailureReason.SERVER_ERROR,
    "unauthorised": FailureReason.UNAUTHORISED,
    "refused": FailureReason.REFUSED,
    "invalid_reply": FailureReason.INVALID_REPLY,
}


class HostedModels:
    """The clients of one process.

    Args:
        environment: of the worker; errors are cleaned of its secrets.
        allow_code: whether code beside benches may run.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ, *, allow_code: bool = False) -> None:
        self._environment, self._allow_code = environment, allow_code
        self._clients = OrderedDict[str, ModelClient]()

    async def prepare(self, target: ModelTarget) -> None:
        """Starts what a first call needs.

        Raises:
            UpstreamError: it cannot be started, or may not.
        """
        client = self._client(target)
        if isinstance(client, CodeClient):
            try:
                await client.prepare(target.model)
            except CallFailedError as error:
                raise kept_error(_error(error), self._environment) from None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        target = request.target
        client = self._client(target)
        call = ModelCall(
            target.model, messages_of(request), request.temperature, request.parameters, request.vars
        )
        began = perf_counter()
        try:
            async with asyncio.timeout(target.timeout_s):
                answer = await client.complete(call)
            return _reply(answer, since_ms(began))
        except UpstreamError as error:
            failed = error
        except CallFailedError as error:
            failed = _error(error)
        except TimeoutError:
            failed = UpstreamError(FailureReason.TIMEOUT, f"no answer within {target.timeout_s:g} s")
        except Exception as error:  # noqa: BLE001 - whatever somebody's client raises, the item has a result
            text = f"{target.api_base}: {type(error).__name__}: {error}"
            failed = UpstreamError(FailureReason.REFUSED, text)
        raise kept_error(failed, self._environment)

    async def close(self) -> None:
        """Closes all clients."""
        for client in self._clients.values():
            await client.close()

    def _client(self, target: ModelTarget) -> ModelClient:
        """Returns the client of a model, which is made at its first call.

        Raises:
            UpstreamError: there is none here, or it may not run.
        """
        if target.code is not None and not self._allow_code:
            what = f"{target.model} is code beside a bench, which this worker does not run"
            how = "start it with --allow-code, or PROCTOR_ALLOW_CODE=1"
            raise UpstreamError(FailureReason.FORBIDDEN, f"{what}; {how}")
        key = msgspec.json.encode([target.code, target.plugin, target.config], order="deterministic").decode()
        if key not in self._clients:
            self._clients[key] = self._made(target)
        self._clients.move_to_end(key)
        if len(self._clients) > MOST_CLIENTS:
            _, oldest = self._clients.popitem(last=False)
            asyncio.get_running_loop().create_task(oldest.close())
        return self._clients[key]

    def _made(self, target: ModelTarget) -> ModelClient:
        if target.code is not None:
            return CodeClient(target.code, target.config, self._environment)
        try:
            client: ModelClient = plugins.load("clients", target.plugin)(target.config)
        except Exception as error:  # whatever somebody's client raises
            text = f"{target.api_base}: {type(error).__name__}: {error}"
            raise kept_error(UpstreamError(FailureReason.REFUSED, text), self._environment) from error
        return client


def _error(error: CallFailedError) -> UpstreamError:
    """Names why a client has no answer."""
    by_status = reason_of_status(error.status) if error.status not in {0, OK} else FailureReason.REFUSED
    reason = _REASONS.get(error.reason, by_status)
    return UpstreamError(reason, error.message, status=error.status, wait_s=error.wait_s)


def _reply(answer: Any, latency_ms: int) -> ModelReply:
    """Reads an answer as those of all protocols are read.

    Raises:
        UpstreamError: it is none.
    """
    if not isinstance(answer, ModelAnswer) or not isinstance(answer.text, str | None):
        what = f"the client returned a {type(answer).__name__}, not a ModelAnswer with a text"
        raise UpstreamError(FailureReason.INVALID_REPLY, what)
    if len(answer.text or "") > MAX_REPLY_BYTES:
        raise too_large()
    tokens = count(answer.input_tokens), count(answer.output_tokens)
    assembled = AnswerAssembler()
    assembled.take(
        Piece(
            answer.text,
            word(answer.reasoning) and answer.reasoning,
            word(answer.refusal) and answer.refusal,
            call_pieces(list(answer.tool_calls)),
            word(answer.finish_reason),
            NO_USAGE if tokens == (None, None) else Usage(*tokens),
            is_json=answer.is_json is True,
        )
    )
    is_cost = isinstance(answer.cost_usd, int | float) and 0 <= answer.cost_usd <= MOST_USD
    return assembled.finish().as_reply(latency_ms, cost_usd=answer.cost_usd if is_cost else None)
