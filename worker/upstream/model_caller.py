"""Calls models, with everything around a call that all workers share.

cache ──► budget ──► gate (limits, breaker, time limit) ──► client ──► settle ──► cache
  ▲                                                           │
  └── short waits happen here; longer ones park the item ◄────┘ retry

reply = await upstream.models.call(request, context, item.calls, on_send=item.working)

The model has answered, now or to an identical request before. Raised are `Deferred`, `EndRun` at the cost
cap, and `UpstreamError` when the call is given up; `error.ends_run` where no other call of the run can
succeed.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from shared.codecs.parked_items import WaitReason
from shared.contracts.case_run import CaseRun
from shared.contracts.live_turns import LiveRun
from shared.observability import tracing
from shared.observability.counters import CallCount
from shared.observability.spans import Span, Value
from shared.upstream.costs import MOST_USD, to_nanos
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.limits import account_of
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import GivenPrice, Tariff, cost_of, tariff_of
from shared.upstream.usage import MOST_TOKENS
from worker.outcomes import Deferred
from worker.upstream.attempts import CallsMade
from worker.upstream.budget import Budget, Estimate, Reservation
from worker.upstream.cache import Lead, ResponseCache, identity_of
from worker.upstream.chat import (
    ModelReply,
    ModelRequest,
    TokenEstimate,
    echoed,
    estimate_tokens,
)
from worker.upstream.contacts import Contact, Contacts
from worker.upstream.embeddings import (
    EmbeddingReply,
    EmbeddingRequest,
    estimate_embedding,
    identity_of_embedding,
)
from worker.upstream.endpoints import GRACE_S, Endpoint, model_endpoint, run_scope
from worker.upstream.failures import UpstreamError
from worker.upstream.gate import CallGate, Sent
from worker.upstream.retry import ModelRetryPolicy, plan_retry
from worker.upstream.telemetry import (
    chat_attributes,
    embedded_attributes,
    embedding_attributes,
    log_call_failure,
    reply_attributes,
)

ENDPOINTS: Final = 256
"""Endpoints that a process keeps in memory."""


class ModelClient(Protocol):
    """Calls models; one of a process, on its event loop."""

    async def prepare(self, target: ModelTarget) -> None:
        """Does what only a first call needs, before limits and the time of the call count."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call, without limits, retries or memory: those are around it.

        Raises:
            UpstreamError: there is no answer; the message has the reason, and what it means for the endpoint.
        """
        ...

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Makes one call for embeddings, in the same way.

        Raises:
            UpstreamError: as above.
        """
        ...


@dataclass(frozen=True, slots=True)
class CallContext:
    """The run and the chunk that a model is called for, and the bounds of the call."""

    run: str
    """The run whose limits and budget apply."""
    owner: str
    """The chunk's claim token, for people who look into Redis."""
    settings: CaseRun | LiveRun
    """Settings of the run: cost cap, prices and the bound on concurrent calls."""
    generation: int = 0
    """0 for the first time that the run asks, and one more with each retry of it."""
    use_cache: bool = True
    """Whether answers may come from the cache, and go into it."""
    retry: ModelRetryPolicy = field(default_factory=ModelRetryPolicy)
    """How often and how long."""


Request = TypeVar("Request", ModelRequest, EmbeddingRequest)
Reply = TypeVar("Reply", ModelReply, EmbeddingReply)


OnSend = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class _Operation(Generic[Request, Reply]):
    """The differences between calls for answers and for embeddings; all else is the same."""

    name: str
    """In the names of spans."""
    reply_type: type[Reply]
    send: Callable[[Request], Awaitable[Reply]]
    """Makes one call."""
    identity_of: Callable[[Request], Mapping[str, Any]]
    """What identical requests have in common."""
    size_of: Callable[[Request], TokenEstimate]
    """Estimates the tokens of a call."""
    request_attributes: Callable[[Request, int], dict[str, Value | None]]
    reply_attributes: Callable[[Reply], dict[str, Value | None]]


class _Call(NamedTuple, Generic[Request, Reply]):
    """What is sent, on whose behalf, and what it may use and cost."""

    operation: _Operation[Request, Reply]
    request: Request
    context: CallContext
    on_send: OnSend
    size: TokenEstimate
    estimate: Estimate | None
    """Most that the call may cost; None without a cap."""
    calls: CallsMade
    """Those that were made for it before."""


class _Bill:
    """What a call has cost so far."""

    __slots__ = ("is_answer", "usd")

    def __init__(self) -> None:
        self.usd: float | None = 0.0
        """Nothing before it is sent, unknown while it is under way."""
        self.is_answer = False


class ModelCaller:
    """Calls models for the coroutines of one process.

    Args:
        gate: limits, breaker and time limit of each call.
        clients: make the calls.
        cache: answers given before.
        budget: of runs with a cap.
        contacts: which endpoints have answered which runs.
        key_of: finds the API key that a request is sent with; it is kept nowhere.
    """

    def __init__(
        self,
        gate: CallGate,
        clients: ModelClient,
        cache: ResponseCache,
        budget: Budget,
        contacts: Contacts,
        *,
        key_of: Callable[[ModelTarget], str],
    ) -> None:
        self._gate = gate
        self._clients = clients
        self._cache = cache
        self._budget = budget
        self._contacts = contacts
        self._key_of = key_of
        self._endpoint = lru_cache(ENDPOINTS)(_endpoint)
        self._chat = _Operation(
            "chat",
            ModelReply,
            clients.complete,
            identity_of,
            estimate_tokens,
            chat_attributes,
            reply_attributes,
        )
        self._embeddings = _Operation(
            "embeddings",
            EmbeddingReply,
            clients.embed,
            identity_of_embedding,
            estimate_embedding,
            embedding_attributes,
            embedded_attributes,
        )

    async def call(
        self, request: ModelRequest, context: CallContext, calls: CallsMade, *, on_send: OnSend
    ) -> ModelReply:
        """Calls a model once, and again where that can help and the wait is short.

        To stop, the caller's task is cancelled: what was reserved is given back, and a call that is under
        way is broken off.

        Args:
            request: what is sent.
            context: on whose behalf.
            calls: those that were made before; these are added.
            on_send: entered while a call is under way.

        Raises:
            UpstreamError: there is no answer, and there will be none.
            Deferred: the model cannot be called soon.
            EndRun: the cost cap is reached.
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        if request.target.is_echo:
            return echoed(request)
        return await self._answer(self._chat, request, context, calls, on_send)

    async def embed(
        self, request: EmbeddingRequest, context: CallContext, calls: CallsMade, *, on_send: OnSend
    ) -> EmbeddingReply:
        """Gets the embeddings of texts: as `call`, in every respect.

        Args:
            request: what is sent.
            context: on whose behalf.
            calls: those that were made before; these are added.
            on_send: entered while a call is under way.

        Raises:
            UpstreamError, Deferred, EndRun, RedisUnreachableError: as `call`.
        """
        return await self._answer(self._embeddings, request, context, calls, on_send)

    async def are_absent(self, targets: Iterable[ModelTarget], context: CallContext) -> bool:
        """Returns whether the run has given up all of some models, because none of them was ever reached.

        Raises:
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        return await self._contacts.are_absent(
            *(_contact(context, self._endpoint_of(target, context)) for target in targets)
        )

    async def _answer(
        self,
        operation: _Operation[Request, Reply],
        request: Request,
        context: CallContext,
        calls: CallsMade,
        on_send: OnSend,
    ) -> Reply:
        """Finds an answer in the cache, or asks for it alone."""
        if not context.use_cache:
            return await self._call_until_answered(operation, request, context, calls, on_send)
        found = await self._cache.find(operation.identity_of(request), operation.reply_type)
        if not isinstance(found, Lead):
            self._gate.counts.add(request.model, CallCount.CACHE + "hit")
            return found
        self._gate.counts.add(request.model, CallCount.CACHE + "miss")
        reply: Reply | None = None
        try:
            reply = await self._call_until_answered(operation, request, context, calls, on_send)
        finally:
            self._cache.end(found, reply)
        return reply

    async def _call_until_answered(
        self,
        operation: _Operation[Request, Reply],
        request: Request,
        context: CallContext,
        calls: CallsMade,
        on_send: OnSend,
    ) -> Reply:
        """Calls until there is an answer, or a wait that is too long to be waited here."""
        size, estimate = operation.size_of(request), None
        if context.settings.max_cost is not None and not request.target.is_free:
            tariff = tariff_of(request.model, context.settings.prices)
            if tariff is None:
                text = f"the price of {request.model} is not known, and the run has a cost cap"
                raise UpstreamError(FailureReason.UNPRICED, text)
            estimate = _estimate(tariff, size)
        planned = _Call(operation, request, context, on_send, size, estimate, calls)
        await self._clients.prepare(request.target)
        return await calls.until_answered(
            partial(self._call_once, planned),
            partial(plan_retry, context.retry),
            partial(self._report, request.target),
        )

    def _report(self, target: ModelTarget, error: UpstreamError, attempt: int, wait_s: float | None) -> None:
        """Logs a call that failed, and counts it where another one follows."""
        if wait_s is not None:
            self._gate.counts.add(target.model, CallCount.RETRIES + error.code)
        log_call_failure(target, error, attempt, wait_s)

    async def _call_once(self, planned: _Call[Request, Reply]) -> Reply:
        """Makes one call, within the budget and through the gate."""
        request, context, bill = planned.request, planned.context, _Bill()
        endpoint = self._endpoint_of(request.target, context)
        reserved: Reservation | None = None
        if planned.estimate is not None and context.settings.max_cost is not None:
            reserved = await self._budget.reserve(
                context.run, request.model, planned.estimate, context.settings.max_cost
            )
        send = partial(self._send, planned, bill, _contact(context, endpoint))
        try:
            return await self._gate.call(endpoint, send, owner=context.owner, tokens=planned.size.tokens)
        except UpstreamError as error:
            if not error.reason.is_billed:
                bill.usd = 0.0
            raise
        except Deferred as later:
            if later.reason is WaitReason.BREAKER_OPEN and await self.are_absent([request.target], context):
                # The run has given up the endpoint: whether others may call it again does not matter.
                text = f"{request.model} was never reached"
                raise UpstreamError(FailureReason.ABSENT, text) from None
            raise
        finally:
            if reserved is not None:
                self._budget.settle(reserved, bill.usd, is_answer=bill.is_answer)

    def _endpoint_of(self, target: ModelTarget, context: CallContext) -> Endpoint:
        """Names the endpoint of a model."""
        place = target.model, target.api_base, account_of(self._key_of(target))
        return self._endpoint(place, target.timeout_s, context.run, context.settings.concurrency)

    async def _send(self, planned: _Call[Request, Reply], bill: _Bill, contact: Contact) -> Sent[Reply]:
        """Sends the request, in a span where tracing is on; the reply is priced and counted."""
        operation, request = planned.operation, planned.request
        bill.usd = None
        with planned.on_send(), self._span(planned) as span:
            try:
                reply = await operation.send(request)
                reply = _priced(request.model, reply, planned.context.settings.prices)
            except UpstreamError as error:
                span.fail(error.code)
                span.set({"http.response.status_code": error.status or None})
                raise await self._contacts.judged(contact, error) from None
            self._contacts.answered(contact)
            if tracing.is_on():
                span.set(operation.reply_attributes(reply))
        bill.usd, bill.is_answer = reply.cost_usd, True
        self._count(request.model, reply)
        return Sent(reply, tokens=reply.usage.total_tokens)

    def _span(self, planned: _Call[Request, Reply]) -> Span:
        """Begins the span of a call."""
        if not tracing.is_on():
            return tracing.OFF
        before = planned.calls.history
        attributes = planned.operation.request_attributes(planned.request, before.attempts + before.throttled)
        name = f"{planned.operation.name} {attributes['gen_ai.request.model']}"
        return tracing.span(name, attributes, kind="client")

    def _count(self, model: str, reply: ModelReply | EmbeddingReply) -> None:
        """Counts what an answer has used, as far as that is known."""
        counts, usage = self._gate.counts, reply.usage
        if reply.cost_usd is not None and 0 < reply.cost_usd <= MOST_USD:
            counts.add(model, CallCount.COST_NANOS, to_nanos(reply.cost_usd))
        for type_, tokens in (("prompt", usage.input_tokens), ("completion", usage.output_tokens)):
            if tokens is not None and 0 < tokens <= MOST_TOKENS:
                counts.add(model, CallCount.TOKENS + type_, tokens)


def _estimate(tariff: Tariff, size: TokenEstimate) -> Estimate:
    """Estimates what a call may cost."""
    usd = tariff.most_usd(size.prompt, size.answer, size.tier)
    return Estimate(usd, tariff.most_usd(size.prompt, 0, size.tier)) if size.is_guess else Estimate(usd)


def _priced(model: str, reply: Reply, prices: Mapping[str, GivenPrice]) -> Reply:
    """Writes into a reply what it cost; where its price is not known, what the client says stays."""
    usd = cost_of(model, reply.usage, prices)
    return reply if usd is None else msgspec.structs.replace(reply, cost_usd=usd)


def _contact(context: CallContext, endpoint: Endpoint) -> Contact:
    """Names the contact of the run that a call is made for with its endpoint."""
    return Contact(context.run, context.generation, endpoint.scopes[0].name)


def _endpoint(place: tuple[str, str, str], timeout_s: float, run: str, concurrency: int | None) -> Endpoint:
    """Names the endpoint of a model, its `api_base` and an account, with the run's bound on calls.

    Without a bound the run's calls are still counted, for people who watch it.
    """
    model, api_base, account = place
    target, own = ModelTarget(model, api_base, timeout_s=timeout_s), run_scope(run, concurrency=concurrency)
    return model_endpoint(target, account, own, grace_s=GRACE_S)
