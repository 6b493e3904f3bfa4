"""Makes calls to upstreams within the limits that all workers share.

A call passes limits and breaker and has a hard time limit; how it ended is reported to all workers.

    outcome = await gate.call(api_endpoint(url), send, owner=lease.token)
    if isinstance(outcome, Deferred): park the item until outcome.due_ms

`send` makes one call: it returns `Sent`, or raises `UpstreamError`. Waits up to two
seconds happen inside. To stop (pause, cancel, drain) the caller's task is cancelled: permits are given back,
and a call that is under way is broken off.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final, Generic, NamedTuple, TypeVar

from shared.clock import now_ms
from shared.codecs.parked_items import WaitReason
from shared.upstream.failure_reasons import FailureReason, Health
from worker.upstream.call_counts import OK
from worker.upstream.endpoints import Endpoint
from worker.upstream.failures import UpstreamError
from worker.upstream.limiter import Deferred, Limiter

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

CANCELLED: Final = "cancelled"
"""The result of a call that we broke off."""

__all__ = ["Deferred", "Gate", "Sent"]


class Sent(NamedTuple, Generic[T_co]):
    """What one call brought, and what it says about the endpoint."""

    value: T_co
    """For the caller of the gate."""
    health: Health = Health.OK
    """How the endpoint did; a refusal of this one request is `OK`."""
    wait_s: float | None = None
    """How long the upstream asked this call to wait; where it refuses most calls, all of them wait."""
    tokens: int | None = None
    """What the call really used; None: not known, the estimate stands."""
    result: str = OK
    """How it is counted: `OK`, or why there is no answer."""


async def always(_owner: str) -> bool:
    """Whether the claim token of a caller without a lease holds."""
    return True


class Gate:
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
    ) -> T | Deferred:
        """Makes one call.

        Args:
            endpoint: where it goes.
            send: makes it; called once at most.
            owner: the chunk's claim token; nothing is sent once another worker has the chunk.
            tokens: estimate of what it will use, for limits of tokens a minute.

        Returns:
            The value of what `send` returned, or when to ask again; then nothing was sent.

        Raises:
            UpstreamError: as `send` did, or the time limit passed.
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        permit = await self._limiter.acquire(endpoint, owner=owner, tokens=tokens)
        if isinstance(permit, Deferred):
            if permit.reason is WaitReason.BREAKER_OPEN:
                self._limiter.pauses.note(
                    "breaker open", endpoint.scopes[0].label, (permit.due_ms - now_ms()) / 1000
                )
            return permit
        health, wait_s, used, result, began = Health.UNKNOWN, None, None, CANCELLED, perf_counter()
        try:
            if not await self._confirm(owner):
                used = 0
                return Deferred(now_ms(), WaitReason.LEASE_MOVED)
            began = perf_counter()
            async with asyncio.timeout(endpoint.timeout_s):
                sent = await send()
        except UpstreamError as error:
            health, wait_s, result = error.health, error.wait_s, error.code
            raise
        except TimeoutError:
            health, result = Health.SLOW, FailureReason.TIMEOUT.model_code
            text = f"no answer within {endpoint.timeout_s:g} s"
            raise UpstreamError(FailureReason.TIMEOUT, text) from None
        else:
            health, wait_s, used, result = sent.health, sent.wait_s, sent.tokens, sent.result
            return sent.value
        finally:
            latency_s = perf_counter() - began
            self.counts.call_ended(endpoint.scopes[0].key, result, latency_s)
            self._limiter.release(permit, health, latency_ms=1000 * latency_s, wait_s=wait_s, tokens=used)
