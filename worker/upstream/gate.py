"""Makes calls to upstreams within the limits that all workers share.

A call passes limits and breaker and has a hard time limit; how it ended is reported to all workers.

    answer = await gate.call(api_endpoint(url), send, owner=lease.token)

`send` makes one call: it returns `Sent`, or raises `UpstreamError`. Waits up to two seconds happen inside;
for longer ones `Deferred` is raised, and nothing is sent. To stop (pause, cancel, drain) the caller's task is
cancelled: permits are given back, and a call that is under way is broken off.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final, Generic, NamedTuple, TypeVar

from shared.clock import now_ms
from shared.codecs.parked_items import ParkedState, WaitReason
from shared.upstream.failure_reasons import FailureReason, Health
from worker.outcomes import Deferred
from worker.upstream.call_counts import OK
from worker.upstream.endpoints import Endpoint
from worker.upstream.failures import UpstreamError
from worker.upstream.limiter import Limiter

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

CANCELLED: Final = "cancelled"
"""The result of a call that we broke off."""


class Sent(NamedTuple, Generic[T_co]):
    """The answer of one call."""

    answer: T_co
    """For the caller of the gate."""
    tokens: int | None = None
    """What the call really used; None: not known, the estimate stands."""


async def always(_owner: str) -> bool:
    """Whether the claim token of a caller without a lease holds."""
    return True


class CallGate:
    """Makes calls to endpoints within their limits, each with a permit and a time limit.

    Args:
        limiter: of this process.
        confirm: says of an `owner`, just before a call, whether it still has the item.
    """

    def __init__(self, limiter: Limiter, *, confirm: Callable[[str], Awaitable[bool]] = always) -> None:
        self._limiter, self._confirm = limiter, confirm
        self.counts = limiter.counts
        """What becomes of calls, for metrics."""

    async def call(
        self,
        endpoint: Endpoint,
        send: Callable[[], Awaitable[Sent[T]]],
        *,
        owner: str = "",
        tokens: int = 0,
    ) -> T:
        """Makes one call.

        Args:
            endpoint: where it goes.
            send: makes it; called once at most.
            owner: the chunk's claim token; nothing is sent once another worker has the chunk.
            tokens: estimate of what it will use, for limits of tokens a minute.

        Returns:
            The answer of what `send` returned.

        Raises:
            Deferred: the limits allow no call so soon; nothing was sent.
            UpstreamError: as `send` did, or the time limit passed.
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        try:
            permit = await self._limiter.acquire(endpoint, owner=owner, tokens=tokens)
        except Deferred as later:
            if later.reason is WaitReason.BREAKER_OPEN:
                left_s = (later.due_ms - now_ms()) / 1000
                self._limiter.pauses.note("breaker open", endpoint.scopes[0].label, left_s)
            raise
        health, wait_s, used, result, began = Health.UNKNOWN, None, None, CANCELLED, perf_counter()
        try:
            if not await self._confirm(owner):
                used = 0
                raise Deferred(now_ms(), ParkedState(WaitReason.LEASE_MOVED))
            began = perf_counter()
            async with asyncio.timeout(endpoint.timeout_s):
                sent = await send()
        except UpstreamError as error:
            health, wait_s, result = error.health, error.wait_s, endpoint.code_of(error.reason)
            raise
        except TimeoutError:
            health, result = Health.SLOW, endpoint.code_of(FailureReason.TIMEOUT)
            text = f"no answer within {endpoint.timeout_s:g} s"
            raise UpstreamError(FailureReason.TIMEOUT, text) from None
        else:
            health, used, result = Health.OK, sent.tokens, OK
            return sent.answer
        finally:
            latency_s = perf_counter() - began
            self.counts.call_ended(endpoint.scopes[0].key, result, latency_s)
            self._limiter.release(permit, health, latency_ms=1000 * latency_s, wait_s=wait_s, tokens=used)
