"""The limits that all workers share, for the coroutines of one process.

    acquire ── go ──► the call ──► release   two scripts keep limits, breaker and pause, on Redis' clock;
      │                                      this file waits, each caller for its own turn
      ├── wait ──► acquire with its ticket
      ├── full ──► acquire when a call of ours ends, or after a moment; first come, first served
      └── later ─► `Deferred`: the item is parked

A permit ends with the call. Permits of a process that died end one lease later, by the ledger clock; while it
lives it renews them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import count
from time import monotonic
from typing import Any, Final, NamedTuple
from uuid import uuid4

from shared.clock import now_ms
from shared.codecs.parked_items import ParkedState, WaitReason
from shared.observability.counters import CallCount
from shared.upstream.failure_reasons import Health
from shared.upstream.limits import LimitBook, Limits, Scope
from worker.outcomes import Deferred
from worker.upstream.call_counts import MICROS, CallCounts
from worker.upstream.constants import WAIT_MS
from worker.upstream.endpoints import Endpoint
from worker.upstream.script_batcher import ScriptBatcher, ScriptFailedError
from worker.upstream.telemetry import PauseLog
from worker.upstream.wait_queue import WaitQueue, WakeReason

SETTINGS_S: Final = 1.0
"""How often the limits that people set are read again."""
BURST_MS: Final = 500.0
"""How much of a limit may be used at once: half a second's worth."""
MINUTE_MS: Final = 60_000.0
MOST_QUEUES: Final = 256
"""Endpoints with a queue of their own; idle ones beyond are forgotten."""
NO_TICKET: Final = "0"
NO_BREAKER: Final = -1
FULL: Final = "full"
"""Why a call waits that waits for another one to end."""


class Permit(NamedTuple):
    """The right to make one call."""

    name: str
    """Unique."""
    upstream: str
    """Destination of the call, as counters name it: a model, or an API's URL."""
    label: str
    """The same for people, with the place where a model is called."""
    scope_limits: "tuple[ScopeLimits, ...]"
    """The limits that it counts for."""
    tokens: int
    """The estimate that they were charged with."""
    era: int
    """Serial number of the breaker's state; the result of a call counts only while the state is the same."""
    number: int = 0
    """Which call to its endpoint it is."""


class ScopeLimits(NamedTuple):
    """The limits of one scope in the units of the scripts; 0 stands for no limit."""

    name: str
    request_ms: float
    burst_ms: float
    token_ms: float
    most: int

    @property
    def is_any(self) -> bool:
        """Whether anything is bounded."""
        return bool(self.request_ms or self.token_ms or self.most)


def scope_limits_of(scope: Scope, limits: Limits) -> ScopeLimits:
    """Turns limits into the times that one request and one token take of them.

    >>> scope_limits_of(Scope("m"), Limits(rpm=600, tpm=60_000, concurrency=3))
    ScopeLimits(name='m', request_ms=100.0, burst_ms=400.0, token_ms=1.0, most=3)
    >>> scope_limits_of(Scope("m"), Limits(rpm=600, pace_s=30))[1:3]
    (30000.0, 0.0)
    """
    request_ms = MINUTE_MS / limits.rpm if limits.rpm else 0.0
    burst_ms = max(0.0, BURST_MS - request_ms)
    pace_ms = 1000.0 * (limits.pace_s or 0.0)
    if pace_ms:
        request_ms, burst_ms = max(pace_ms, request_ms), 0.0
    token_ms = MINUTE_MS / limits.tpm if limits.tpm else 0.0
    return ScopeLimits(scope.name, request_ms, burst_ms, token_ms, limits.concurrency or 0)


def acquire_arguments(scope_limits: Sequence[ScopeLimits], tokens: int) -> list[str | float]:
    """Writes limits as `acquire.lua` takes them.

    >>> acquire_arguments([ScopeLimits("m", 50.0, 450.0, 2.0, 7)], 10)
    [1, 'm', 50.0, 450.0, 20.0, 500.0, 7]
    """
    flat: list[str | float] = [len(scope_limits)]
    for name, request_ms, burst_ms, token_ms, most in scope_limits:
        flat += (name, request_ms, burst_ms, tokens * token_ms, BURST_MS if token_ms else 0, most)
    return flat


class Limiter:
    """Acquires and releases permits.

    Args:
        scripts: runs this package's scripts.
    """

    def __init__(self, scripts: ScriptBatcher) -> None:
        self._scripts = scripts
        self.counts = CallCounts(scripts)
        """What becomes of calls, for metrics."""
        self._book = LimitBook(scripts.caller)
        self._set: Mapping[str, Limits] = {}
        self._scope_limits: Callable[[Endpoint], tuple[ScopeLimits, ...]] = self._remembering()
        self._serials = count(1)
        self._process = uuid4().hex[:12]
        self.pauses = PauseLog()
        """Logs that an endpoint is left alone for a while."""
        self._held: dict[str, tuple[ScopeLimits, ...]] = {}
        self._queues: dict[tuple[str, ...], WaitQueue] = {}
        self._is_loaded = False
        scripts.every(SETTINGS_S, self._load)
        scripts.every(scripts.renew_s, self._renew)

    @property
    def in_flight(self) -> int:
        """Calls of this process that are under way."""
        return len(self._held)

    async def acquire(self, endpoint: Endpoint, *, owner: str = "", tokens: int = 0) -> Permit:
        """Waits for a permit for one call, if there is one within `WAIT_MS`.

        Args:
            endpoint: where the call goes.
            owner: for people who look into Redis: the chunk's claim token.
            tokens: estimate of what the call will use, question and answer.

        Raises:
            Deferred: there is none so soon.
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        if not self._is_loaded:
            await asyncio.get_running_loop().run_in_executor(None, self._load)
        name = f"{self._process} {next(self._serials)} {owner}"
        own = endpoint.scopes[0]
        permit = Permit(name, own.key, own.label, self._scope_limits(endpoint), tokens, NO_BREAKER)
        try:
            granted = await self._acquire(permit, has_breaker=endpoint.has_breaker)
        except Deferred:
            raise
        except BaseException:  # cancelled, perhaps after leave was given
            self.release(permit, Health.UNKNOWN)
            raise
        self._held[name] = permit.scope_limits
        return granted

    def release(
        self,
        permit: Permit,
        health: Health,
        *,
        latency_ms: float = 0.0,
        wait_s: float | None = None,
        tokens: int | None = None,
    ) -> None:
        """Reports that a call has ended.

        Args:
            permit: of the call.
            health: what its end says about the endpoint.
            latency_ms: how long it took.
            wait_s: how long the upstream asked the call to wait; where it refuses most calls, all wait.
            tokens: what it really used; None leaves the estimate.
        """
        self._held.pop(permit.name, None)
        more = 0 if tokens is None else tokens - permit.tokens
        flat: list[str | float] = [len(permit.scope_limits)]
        for each in permit.scope_limits:
            flat += (each.name, more * each.token_ms)
        pause_ms = 1000 * (wait_s or 0.0)
        arguments = (permit.name, health, latency_ms, permit.era, permit.number, pause_ms, *flat)
        if wait_s and not self._scripts.is_closed:
            self.counts.add(permit.upstream, CallCount.PAUSES)
            released = self._scripts.run("release", *arguments)
            released.add_done_callback(partial(self._note_pause, permit.label))
        else:
            self._scripts.post("release", *arguments)
        mine = {each.name for each in permit.scope_limits}
        for names, queue in self._queues.items():
            if queue.waiters and not mine.isdisjoint(names):
                queue.wake_next(WakeReason.CALL_ENDED)

    async def _acquire(self, permit: Permit, *, has_breaker: bool) -> Permit:
        """Repeats the script until its answer is not to wait; returns the permit as it was granted."""
        queue, woken = self._queue_of(permit.scope_limits), None
        flat = acquire_arguments(permit.scope_limits, permit.tokens)
        began, why = monotonic(), ""
        deadline, ticket, wait_s = began + WAIT_MS / 1000, NO_TICKET, WAIT_MS / 1000
        if queue.waiters:
            why = FULL
            woken = await queue.wait(wait_s, is_first=False)
        while True:
            wait_s = max(0.0, deadline - monotonic())
            is_patient = wait_s > 0 and woken is not WakeReason.TIMED_OUT
            answer = await self._scripts.run(
                "acquire", permit.name, ticket, int(is_patient), int(has_breaker), *flat
            )
            match answer:
                case [b"go", era, number]:
                    if woken is WakeReason.POLL:
                        queue.wake_next(woken)  # where there was room for one there may be more
                    if why:
                        self._count_wait(permit, why, monotonic() - began)
                    return permit._replace(era=int(era) if has_breaker else NO_BREAKER, number=int(number))
                case [b"wait", int(wait_ms), bytes(text), bytes(reason)]:
                    ticket, why = text.decode(), why or reason.decode()
                    await asyncio.sleep(wait_ms / 1000)
                case [b"full", int(wait_ms)]:
                    queue.poll_s, why = wait_ms / 1000, why or FULL
                    woken = await queue.wait(wait_s, is_first=woken is not None)
                case [b"later", int(wait_ms), bytes(reason)]:
                    self.counts.add(permit.upstream, CallCount.DENIALS + reason.decode())
                    raise Deferred(now_ms() + wait_ms, ParkedState(WaitReason(reason.decode())))
                case _:
                    raise ScriptFailedError(f"acquire.lua answered {answer!r}")

    def _note_pause(self, label: str, released: "asyncio.Future[Any]") -> None:
        """Logs a pause that a refusal began; a release that failed has been reported by the batcher."""
        if released.cancelled() or released.exception() is not None:
            return
        what, *pause_ms = released.result()
        if what == b"paused":
            self.pauses.note("upstream paused", label, pause_ms[0] / 1000)

    def _count_wait(self, permit: Permit, why: str, waited_s: float) -> None:
        self.counts.add(permit.upstream, CallCount.WAITS + why)
        self.counts.add(permit.upstream, CallCount.WAITS_US, round(MICROS * waited_s))

    def _queue_of(self, scope_limits: tuple[ScopeLimits, ...]) -> WaitQueue:
        names = tuple(each.name for each in scope_limits)
        queue = self._queues.get(names)
        if queue is None:
            if len(self._queues) >= MOST_QUEUES:
                self._queues = {name: queue for name, queue in self._queues.items() if queue.waiters}
            queue = self._queues[names] = WaitQueue()
        return queue

    def _remembering(self) -> Callable[[Endpoint], tuple[ScopeLimits, ...]]:
        settings = self._set

        @lru_cache(256)
        def scope_limits(endpoint: Endpoint) -> tuple[ScopeLimits, ...]:
            found = [
                scope_limits_of(scope, settings.get(scope.key, Limits()).over(scope.limits))
                for scope in endpoint.scopes
            ]
            return tuple(each for place, each in enumerate(found) if place == 0 or each.is_any)

        return scope_limits

    def _load(self) -> None:
        """Reads the limits that people have set; in the batcher's thread, and before the first call."""
        settings = self._book.settings()
        if settings != self._set:
            self._set = settings
            self._scope_limits = self._remembering()
        self._is_loaded = True

    def _renew(self) -> None:
        """Renews the permits of what is under way; in the batcher's thread."""
        flat = [
            text
            for permit, scope_limits in list(self._held.items())
            for each in scope_limits
            for text in (each.name, permit)
        ]
        if flat:
            self._scripts.caller.run("renew_permits", *flat)
