"""The limits that all workers share, for the coroutines of one process.

    begin ── go ──► the call ──► end         two scripts keep limits, breaker and pause, on Redis' clock;
      │                                      this file waits, each caller for its own turn
      ├── wait ──► begin with its ticket
      ├── full ──► begin when a call of ours ends, or after a moment; first come, first served
      └── later ─► the item is parked

A permit ends with the call. Permits of a process that died end 15 s later, by the ledger clock; while it
lives it renews them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from time import monotonic
from typing import Final, NamedTuple
from uuid import uuid4

from shared.clock import now_ms
from shared.codecs.parked_items import WaitReason
from shared.observability.counters import Call
from shared.upstream.failure_reasons import Health
from shared.upstream.limits import LimitBook, Limits, Scope
from worker.upstream.constants import WAIT_MS
from worker.upstream.counts import MICROS, Counts
from worker.upstream.endpoints import Endpoint
from worker.upstream.script_batcher import Port, ScriptFailedError
from worker.upstream.wait_queue import Line, Turn

SETTINGS_S: Final = 1.0
"""How often the limits that people set are read again."""
BURST_MS: Final = 500.0
"""How much of a limit may be used at once: half a second's worth."""
MINUTE_MS: Final = 60_000.0
MOST_LINES: Final = 256
"""Endpoints with a line of their own; idle lines beyond are forgotten."""
NO_TICKET: Final = "0"
NO_BREAKER: Final = -1
FULL: Final = "full"
"""Why a call waits that waits for another one to end."""


class Later(NamedTuple):
    """A call cannot be made now: the item is to be parked, and asked for again."""

    due_ms: int
    """When, in epoch milliseconds of our clock."""
    reason: WaitReason
    """What it waits for."""


class Permit(NamedTuple):
    """Leave to make one call."""

    name: str
    """Unique."""
    upstream: str
    """Where the call goes, as counters name it: a model, or an API's URL."""
    bounds: "tuple[Bound, ...]"
    """The limits that it counts for."""
    tokens: int
    """The estimate that they were charged with."""
    era: int
    """The breaker's, which the end of the call is a verdict on."""


class Bound(NamedTuple):
    """The limits of one scope in the units of the scripts; 0 bounds nothing."""

    name: str
    request_ms: float
    burst_ms: float
    token_ms: float
    most: int

    @property
    def is_any(self) -> bool:
        """Whether anything is bounded."""
        return bool(self.request_ms or self.token_ms or self.most)


def bound_of(scope: Scope, limits: Limits) -> Bound:
    """Turns limits into the times that one request and one token take of them.

    >>> bound_of(Scope("m"), Limits(rpm=600, tpm=60_000, concurrency=3))
    Bound(name='m', request_ms=100.0, burst_ms=400.0, token_ms=1.0, most=3)
    >>> bound_of(Scope("m"), Limits(rpm=600, pace_s=30))[1:3]
    (30000.0, 0.0)
    """
    request_ms = MINUTE_MS / limits.rpm if limits.rpm else 0.0
    burst_ms = max(0.0, BURST_MS - request_ms)
    pace_ms = 1000.0 * (limits.pace_s or 0.0)
    if pace_ms:
        request_ms, burst_ms = max(pace_ms, request_ms), 0.0
    token_ms = MINUTE_MS / limits.tpm if limits.tpm else 0.0
    return Bound(scope.name, request_ms, burst_ms, token_ms, limits.concurrency or 0)


def flat_of(bounds: Sequence[Bound], tokens: int) -> list[str | float]:
    """Writes limits as `begin.lua` takes them.

    >>> flat_of([Bound("m", 50.0, 450.0, 2.0, 7)], 10)
    [1, 'm', 50.0, 450.0, 20.0, 500.0, 7]
    """
    flat: list[str | float] = [len(bounds)]
    for name, request_ms, burst_ms, token_ms, most in bounds:
        flat += (name, request_ms, burst_ms, tokens * token_ms, BURST_MS if token_ms else 0, most)
    return flat


class Limiter:
    """Asks for leave and gives it back.

    Args:
        port: with this package's scripts.
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self.counts = Counts(port)
        """What becomes of calls, for metrics."""
        self._book = LimitBook(port.caller)
        self._set: Mapping[str, Limits] = {}
        self._bounds: Callable[[Endpoint], tuple[Bound, ...]] = self._remembering()
        self._serials = count(1)
        self._process = uuid4().hex[:12]
        self._held: dict[str, tuple[Bound, ...]] = {}
        self._lines: dict[tuple[str, ...], Line] = {}
        self._is_loaded = False
        port.every(SETTINGS_S, self._load)
        port.every(port.renew_s, self._renew)

    @property
    def in_flight(self) -> int:
        """Calls of this process that are under way."""
        return len(self._held)

    async def begin(self, endpoint: Endpoint, *, owner: str = "", tokens: int = 0) -> Permit | Later:
        """Waits for leave to make one call, if it can be had within about two seconds.

        Args:
            endpoint: where the call goes.
            owner: for people who look into Redis: the chunk's claim token.
            tokens: estimate of what the call will use, question and answer.

        Raises:
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        if not self._is_loaded:
            await asyncio.get_running_loop().run_in_executor(None, self._load)
        name = f"{self._process} {next(self._serials)} {owner}"
        permit = Permit(name, endpoint.scopes[0].key, self._bounds(endpoint), tokens, NO_BREAKER)
        era: int | Later | None = None
        try:
            era = await self._ask(permit, has_breaker=endpoint.has_breaker)
        finally:
            if era is None:  # cancelled, perhaps after leave was given
                self.end(permit, Health.UNKNOWN)
        if isinstance(era, Later):
            return era
        self._held[name] = permit.bounds
        return permit._replace(era=era) if endpoint.has_breaker else permit

    def end(
        self,
        permit: Permit,
        health: Health,
        *,
        latency_ms: float = 0.0,
        wait_s: float | None = None,
        tokens: int | None = None,
    ) -> None:
        """Says that a call has ended.

        Args:
            permit: of the call.
            health: what its end says about the endpoint.
            latency_ms: how long it took.
            wait_s: what the upstream asked us to wait; then nobody sends before.
            tokens: what it really used; None leaves the estimate.
        """
        self._held.pop(permit.name, None)
        if wait_s:
            self.counts.add(permit.upstream, Call.PAUSES)
        more = 0 if tokens is None else tokens - permit.tokens
        flat: list[str | float] = [len(permit.bounds)]
        for bound in permit.bounds:
            flat += (bound.name, more * bound.token_ms)
        self._port.post("end", permit.name, health, latency_ms, permit.era, 1000 * (wait_s or 0.0), *flat)
        mine = {bound.name for bound in permit.bounds}
        for names, line in self._lines.items():
            if line.callers and not mine.isdisjoint(names):
                line.let_in(Turn.ENDED)

    async def _ask(self, permit: Permit, *, has_breaker: bool) -> int | Later:
        """Asks until there is an answer that is no waiting; returns the breaker's era."""
        line, turn, flat = self._line(permit.bounds), None, flat_of(permit.bounds, permit.tokens)
        began, why = monotonic(), ""
        deadline, ticket, wait_s = began + WAIT_MS / 1000, NO_TICKET, WAIT_MS / 1000
        if line.callers:
            why = FULL
            turn = await line.wait(wait_s, is_first=False)
        while True:
            wait_s = max(0.0, deadline - monotonic())
            is_patient = wait_s > 0 and turn is not Turn.OVER
            answer = await self._port.run(
                "begin", permit.name, ticket, int(is_patient), int(has_breaker), *flat
            )
            match answer:
                case [b"go", era]:
                    if turn is Turn.TIME:
                        line.let_in(turn)  # where there was room for one there may be more
                    if why:
                        self._count_wait(permit, why, monotonic() - began)
                    return int(era)
                case [b"wait", int(wait_ms), bytes(text), bytes(reason)]:
                    ticket, why = text.decode(), why or reason.decode()
                    await asyncio.sleep(wait_ms / 1000)
                case [b"full", int(wait_ms)]:
                    line.look_s, why = wait_ms / 1000, why or FULL
                    turn = await line.wait(wait_s, is_first=turn is not None)
                case [b"later", int(wait_ms), bytes(reason)]:
                    self.counts.add(permit.upstream, Call.DENIALS + reason.decode())
                    return Later(now_ms() + wait_ms, WaitReason(reason.decode()))
                case _:
                    raise ScriptFailedError(f"begin.lua answered {answer!r}")

    def _count_wait(self, permit: Permit, why: str, waited_s: float) -> None:
        self.counts.add(permit.upstream, Call.WAITS + why)
        self.counts.add(permit.upstream, Call.WAITS_US, round(MICROS * waited_s))

    def _line(self, bounds: tuple[Bound, ...]) -> Line:
        names = tuple(bound.name for bound in bounds)
        line = self._lines.get(names)
        if line is None:
            if len(self._lines) >= MOST_LINES:
                self._lines = {name: line for name, line in self._lines.items() if line.callers}
            line = self._lines[names] = Line()
        return line

    def _remembering(self) -> Callable[[Endpoint], tuple[Bound, ...]]:
        settings = self._set

        @lru_cache(256)
        def bounds(endpoint: Endpoint) -> tuple[Bound, ...]:
            found = [
                bound_of(scope, settings.get(scope.key, Limits()).over(scope.limits))
                for scope in endpoint.scopes
            ]
            return tuple(bound for place, bound in enumerate(found) if place == 0 or bound.is_any)

        return bounds

    def _load(self) -> None:
        """Reads the limits that people have set; in the port's thread, and before the first call."""
        settings = self._book.settings()
        if settings != self._set:
            self._set = settings
            self._bounds = self._remembering()
        self._is_loaded = True

    def _renew(self) -> None:
        """Renews the permits of what is under way; in the port's thread."""
        flat = [
            text
            for permit, bounds in list(self._held.items())
            for bound in bounds
            for text in (bound.name, permit)
        ]
        if flat:
            self._port.caller.run("renew_calls", *flat)
