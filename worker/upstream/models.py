"""Asks models, with everything around a call that all workers share.

cache ──► budget ──► gate (limits, breaker, time limit) ──► client ──► settle ──► cache
  ▲                                                           │
  └── short waits happen here; longer ones park the item ◄────┘ retry

asked = await upstream.models.ask(request, scope, history, on_send=item.calling)
match asked:
    case Answered(reply, history): the model has answered, now or to an identical request before
    case Parked(due_ms, reason, history): park the item until then, and ask again with that history
    case Gone(error, history): given up; `error.ends_run` where no other call of the run can succeed
    case OverBudget(message): the run ends as incomplete
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from shared.clock import now_ms
from shared.codecs.parked_items import History, WaitReason
from shared.observability import tracing
from shared.observability.counters import Call
from shared.upstream.costs import MOST_USD, to_nanos
from shared.upstream.failure_reasons import BILLED, FailureReason
from shared.upstream.limits import account_of
from worker.upstream.budget import Budget, Estimate, OverBudget, Reservation
from worker.upstream.cache import ResponseCache
from worker.upstream.constants import WAIT_MS
from worker.upstream.endpoints import Endpoint, model_endpoint, run_scope
from worker.upstream.failures import UpstreamError
from worker.upstream.gate import Gate, Later, Sent
from worker.upstream.model import ModelClient, ModelReply, ModelRequest
from worker.upstream.outcomes import Answered, Asked, AskScope, Gone, Parked
from worker.upstream.retry import GiveUp, after_failure
from worker.upstream.size import Size, size_of
from worker.upstream.watching import chat_attributes, log_call_failure, reply_attributes

GRACE_S: Final = 5.0
"""The client's own time limit, which knows more about the call, comes so much before the gate's."""
ENDPOINTS: Final = 256
"""Endpoints that a process remembers."""

MOST_TOKENS: Final = 1_000_000_000
"""A provider that counts more for one call is wrong: the counters leave it out."""

OnSend = Callable[[], AbstractContextManager[Any]]

__all__ = ["Answered", "AskScope", "Asked", "Gone", "Models", "OverBudget", "Parked"]


class CostOf(Protocol):
    """Prices calls."""

    def __call__(
        self,
        model: str,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        prices: Mapping[str, Any],
    ) -> float | None:
        """Returns what a call costs in dollars; None when a price or a number of tokens is not known."""


class _Question(NamedTuple):
    """What is asked, on whose behalf, and what it may take."""

    request: ModelRequest
    scope: AskScope
    on_send: OnSend
    size: Size
    estimate: Estimate | None
    """What it may cost; None without a cap."""
    resend: int = 0
    """Calls that were made for it before."""


class _Bill:
    """What a call has cost so far."""

    __slots__ = ("is_answer", "usd")

    def __init__(self) -> None:
        self.usd: float | None = 0.0
        """Nothing before it is sent, unknown while it is under way."""
        self.is_answer = False


class Models:
    """Asks models for the coroutines of one process.

    Args:
        gate: the one door.
        clients: make the calls.
        cache: answers given before.
        budget: of runs with a cap.
        cost_of: prices calls.
        key_of: finds the API key that a request is sent with; it is kept nowhere.
    """

    def __init__(
        self,
        gate: Gate,
        clients: ModelClient,
        cache: ResponseCache,
        budget: Budget,
        *,
        cost_of: CostOf,
        key_of: Callable[[ModelRequest], str],
    ) -> None:
        self._gate = gate
        self._clients = clients
        self._cache = cache
        self._budget = budget
        self._cost_of = cost_of
        self._key_of = key_of
        self._endpoint = lru_cache(ENDPOINTS)(_endpoint)

    async def ask(
        self,
        request: ModelRequest,
        scope: AskScope,
        history: History,
        *,
        on_send: OnSend,
    ) -> Asked:
        """Asks a model once, and again where that can help and the wait is short.

        To stop, the caller's task is cancelled: what was reserved is given back, and a call that is under
        way is broken off.

        Args:
            request: the question.
            scope: on whose behalf.
            history: what the item has been through.
            on_send: entered while a call is under way.

        Raises:
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        if not scope.use_cache:
            return await self._ask(request, scope, history, on_send)
        found = await self._cache.find(request)
        if isinstance(found, ModelReply):
            self._gate.counts.add(request.model, Call.CACHE + "hit")
            return Answered(found, history)
        if isinstance(found, Later):
            return Parked(found.due_ms, found.reason, history)
        self._gate.counts.add(request.model, Call.CACHE + "miss")
        asked: Asked | None = None
        try:
            asked = await self._ask(request, scope, history, on_send)
        finally:
            self._cache.end(found, asked.reply if isinstance(asked, Answered) else None)
        return asked

    async def _ask(self, request: ModelRequest, scope: AskScope, history: History, on_send: OnSend) -> Asked:
        """Calls until there is an answer, or a wait that is too long to be waited here."""
        size, estimate = size_of(request), None
        if scope.max_cost is not None:
            estimate = self._estimate(request, size, scope)
            if estimate is None:
                text = f"the price of {request.model} is not known, and the run has a cost cap"
                return Gone(UpstreamError(FailureReason.UNPRICED, text), history)
        question = _Question(request, scope, on_send, size, estimate)
        await self._clients.prepare(request)
        while True:
            try:
                resend = history.attempts + history.throttled
                called = await self._reserve_and_call(
                    question._replace(resend=resend) if resend else question
                )
            except UpstreamError as error:
                attempt = history.attempts + 1
                history, step = after_failure(
                    scope.rules, history, error.reason, now_ms=now_ms(), wait_s=error.wait_s
                )
                if isinstance(step, GiveUp):
                    log_call_failure(request, error, attempt, None)
                    return Gone(error, history)
                self._gate.counts.add(request.model, Call.RETRIES + error.code)
                wait_ms = step.ms - now_ms()
                log_call_failure(request, error, attempt, max(0, wait_ms) / 1000)
                if wait_ms > WAIT_MS:
                    return Parked(step.ms, WaitReason.RETRY, history)
                await asyncio.sleep(max(0, wait_ms) / 1000)
                continue
            if isinstance(called, Later):
                return Parked(called.due_ms, called.reason, history)
            if isinstance(called, OverBudget):
                return called
            return Answered(called, history._replace(attempts=history.attempts + 1))

    async def _reserve_and_call(self, question: _Question) -> ModelReply | Later | OverBudget:
        """Makes one call within the budget."""
        scope, bill = question.scope, _Bill()
        if question.estimate is None or scope.max_cost is None:
            return await self._call(question, bill)
        model = question.request.model
        held = await self._budget.reserve(scope.run, model, question.estimate, scope.max_cost)
        if not isinstance(held, Reservation):
            return held
        try:
            return await self._call(question, bill)
        finally:
            self._budget.settle(held, bill.usd, is_answer=bill.is_answer)

    async def _call(self, question: _Question, bill: _Bill) -> ModelReply | Later:
        """Makes one call through the gate, and writes its bill."""
        request, scope, on_send, size, _, resend = question

        async def send() -> Sent[ModelReply]:
            bill.usd = None
            with on_send():
                reply = await self._complete(request, scope, resend)
            bill.usd, bill.is_answer = reply.cost_usd, True
            self._count(request.model, reply)
            return Sent(reply, tokens=tokens_of(reply))

        endpoint = self._endpoint(
            (request.model, request.api_base, account_of(self._key_of(request))),
            request.timeout_s,
            scope.run,
            scope.concurrency,
        )
        try:
            return await self._gate.call(endpoint, send, owner=scope.owner, tokens=size.tokens)
        except UpstreamError as error:
            if error.reason not in BILLED:
                bill.usd = 0.0
            raise

    async def _complete(self, request: ModelRequest, scope: AskScope, resend: int) -> ModelReply:
        """Makes one call, in a span where tracing is on, and prices it."""
        if not tracing.is_on():
            return self._priced(request, await self._clients.complete(request), scope)
        attributes = chat_attributes(request, resend)
        name = f"chat {attributes['gen_ai.request.model']}"
        with tracing.span(name, attributes, kind="client") as span:
            try:
                reply = self._priced(request, await self._clients.complete(request), scope)
            except UpstreamError as error:
                span.fail(error.code)
                span.set({"http.response.status_code": error.status or None})
                raise
            span.set(reply_attributes(reply))
        return reply

    def _count(self, model: str, reply: ModelReply) -> None:
        """Counts what an answer has used, as far as that is known."""
        counts = self._gate.counts
        if reply.cost_usd is not None and 0 < reply.cost_usd <= MOST_USD:
            counts.add(model, Call.COST_NANOS, to_nanos(reply.cost_usd))
        for type_, tokens in (("prompt", reply.prompt_tokens), ("completion", reply.completion_tokens)):
            if tokens is not None and 0 < tokens <= MOST_TOKENS:
                counts.add(model, Call.TOKENS + type_, tokens)

    def _estimate(self, request: ModelRequest, size: Size, scope: AskScope) -> Estimate | None:
        """Estimates what a call may cost; None when its price is not known."""
        usd = self._cost_of(request.model, size.prompt, size.answer, scope.prices)
        if usd is None or not size.is_guess:
            return None if usd is None else Estimate(usd)
        return Estimate(usd, self._cost_of(request.model, size.prompt, 0, scope.prices))

    def _priced(self, request: ModelRequest, reply: ModelReply, scope: AskScope) -> ModelReply:
        """Writes into a reply what it cost, as far as that is known."""
        if reply.cost_usd is not None and request.model not in scope.prices:
            return reply
        usd = self._cost_of(request.model, reply.prompt_tokens, reply.completion_tokens, scope.prices)
        return reply if usd is None else msgspec.structs.replace(reply, cost_usd=usd)


def tokens_of(reply: ModelReply) -> int | None:
    """Returns the tokens that a call has used; None when the provider does not say.

    >>> tokens_of(ModelReply("Hi", 5, prompt_tokens=3, completion_tokens=1))
    4
    >>> tokens_of(ModelReply("Hi", 5)) is None
    True
    """
    if reply.prompt_tokens is None or reply.completion_tokens is None:
        return None
    return reply.prompt_tokens + reply.completion_tokens


def _endpoint(place: tuple[str, str, str], timeout_s: float, run: str, concurrency: int | None) -> Endpoint:
    """Names the endpoint of a model, its `api_base` and an account, with the run's bound on calls.

    Without a bound the run's calls are still counted, for people who watch it.
    """
    model, api_base, account = place
    own = run_scope(run, concurrency=concurrency)
    return model_endpoint(model, account, own, api_base=api_base, timeout_s=timeout_s + GRACE_S)
