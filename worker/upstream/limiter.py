"""The limits that all workers share, for the coroutines of one process.

    begin ── go ──► the call ──► end         two scripts keep limits, breaker and pause, on Redis' clock;
      │                                      this file waits, each caller for its own turn
      ├── wait ──► begin with its ticket
      ├── full ──► begin when a call of ours ends, or after a moment; first come, first served
      └── later ─► the item is parked

A permit ends with the call. Permits of a process that died end 15 s later, by the ledger clock; while it
lives it renews them. Longer than 300 lines, because the queue of waiters and the answers that wake it are one
state machine.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import count
from time import monotonic
from typing import Final, NamedTuple
from uuid import uuid4

from shared.clock import now_ms
from shared.limits import LimitBook, Limits, Scope
from worker.upstream.endpoints import Endpoint
from worker.upstream.failures import Health
from worker.upstream.numbers import WAIT_MS
from worker.upstream.port import Port, ScriptFailedError

SETTINGS_S: Final = 1.0
"""How often the limits that people set are read again."""
RENEW_S: Final = 5.0
"""How often permits are renewed; they last 15 s."""
BURST_MS: Final = 500.0
"""How much of a limit may be used at once: half a second's worth."""
MINUTE_MS: Final = 60_000.0
FIRST_LOOK_S: Final = 0.05
"""How long to wait before asking whether there is room again, until the script says how long."""
MOST_LINES: Final = 256
"""Endpoints with a line of their own; idle lines beyond are forgotten."""
NO_TICKET: Final = "0"
NO_BREAKER: Final = -1


class Later(NamedTuple):
    """A call cannot be made now: the item is to be parked, and asked for again."""

    due_ms: int
    """When, in epoch milliseconds of our clock."""
    reason: str
    """`rate`, `full`, `paused`, `breaker`, or what else it waits for."""


class Permit(NamedTuple):
    """Leave to make one call."""

    name: str
    """Unique."""
    endpoint: Endpoint
    """Where the call goes."""
    tokens: int
    """The estimate that its limits were charged with."""
    era: int
    """The breaker's, which the end of the call is a verdict on."""


class Bound(NamedTuple):
    """The limits of one scope in the units of the scripts; 0 bounds nothing."""

    name: str
    request_ms: float
    burst_ms: float
    token_ms: float
    most: int


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


class _Turn(StrEnum):
    """Why a caller goes on."""

    ENDED = "ended"
    """A call of ours has ended: there is room for one."""
    TIME = "time"
    """There may be room: calls of other processes have ended too."""
    OVER = "over"
    """It waited long enough."""


class _Line:
    """Callers of one endpoint that wait for a call to end; first come, first served."""

    def __init__(self) -> None:
        self.callers: deque[asyncio.Future[_Turn]] = deque()
        self.look_s = FIRST_LOOK_S
        """How long to wait for the end of a call of ours before asking again, as the script said last."""
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, patience_s: float, *, is_first: bool) -> _Turn:
        """Waits to be let in."""
        loop = asyncio.get_running_loop()
        caller: asyncio.Future[_Turn] = loop.create_future()
        (self.callers.appendleft if is_first else self.callers.append)(caller)
        self._set_timer()
        patience = loop.call_later(patience_s, self._go, caller, _Turn.OVER)
        try:
            return await caller
        except asyncio.CancelledError:
            if caller.done() and not caller.cancelled():
                self.let_in(caller.result())  # its turn is for somebody else
            else:
                self.callers.remove(caller)
            raise
        finally:
            patience.cancel()

    def let_in(self, turn: _Turn) -> None:
        """Lets the next caller in."""
        if self.callers:
            self._go(self.callers[0], turn)

    def _go(self, caller: "asyncio.Future[_Turn]", turn: _Turn) -> None:
        if not caller.done():
            self.callers.remove(caller)
            caller.set_result(turn)
        if self.callers:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.look_s, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.let_in(_Turn.TIME)


class Limiter:
    """Asks for leave and gives it back.

    Args:
        port: with this package's scripts.
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._book = LimitBook(port.caller)
        self._set: Mapping[str, Limits] = {}
        self._bounds: Callable[[Endpoint], tuple[Bound, ...]] = self._remembering()
        self._serials = count(1)
        self._process = uuid4().hex[:12]
        self._held: dict[str, Endpoint] = {}
        self._lines: dict[tuple[str, ...], _Line] = {}
        self._is_loaded = False
        port.every(SETTINGS_S, self._load)
        port.every(RENEW_S, self._renew)

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
        era: int | Later | None = None
        try:
            era = await self._ask(endpoint, name, tokens)
        finally:
            if era is None:  # cancelled, perhaps after leave was given
                self.end(Permit(name, endpoint, tokens, NO_BREAKER), Health.UNKNOWN)
        if isinstance(era, Later):
            return era
        self._held[name] = endpoint
        return Permit(name, endpoint, tokens, era if endpoint.has_breaker else NO_BREAKER)

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
        more = 0 if tokens is None else tokens - permit.tokens
        bounds = self._bounds(permit.endpoint)
        flat: list[str | float] = []
        for bound in bounds:
            flat += (bound.name, more * bound.token_ms)
        self._port.post(
            "end", permit.name, health, latency_ms, permit.era, 1000 * (wait_s or 0.0), len(bounds), *flat
        )
        mine = {bound.name for bound in bounds}
        for names, line in self._lines.items():
            if line.callers and not mine.isdisjoint(names):
                line.let_in(_Turn.ENDED)

    async def _ask(self, endpoint: Endpoint, permit: str, tokens: int) -> int | Later:
        """Asks until there is an answer that is no waiting; returns the breaker's era."""
        line, turn = self._line(endpoint), None
        deadline, ticket, wait_s = monotonic() + WAIT_MS / 1000, NO_TICKET, WAIT_MS / 1000
        if line.callers:
            turn = await line.wait(wait_s, is_first=False)
        while True:
            wait_s = max(0.0, deadline - monotonic())
            is_patient = wait_s > 0 and turn is not _Turn.OVER
            answer = await self._port.run(
                "begin",
                permit,
                ticket,
                int(is_patient),
                int(endpoint.has_breaker),
                *self._flat(endpoint, tokens),
            )
            match answer:
                case [b"go", era]:
                    if turn is _Turn.TIME:
                        line.let_in(turn)  # where there was room for one there may be more
                    return int(era)
                case [b"wait", int(wait_ms), bytes(text), _]:
                    ticket = text.decode()
                    await asyncio.sleep(wait_ms / 1000)
                case [b"full", int(wait_ms)]:
                    line.look_s = wait_ms / 1000
                    turn = await line.wait(wait_s, is_first=turn is not None)
                case [b"later", int(wait_ms), bytes(why)]:
                    return Later(now_ms() + wait_ms, why.decode())
                case _:
                    raise ScriptFailedError(f"begin.lua answered {answer!r}")

    def _line(self, endpoint: Endpoint) -> _Line:
        names = tuple(scope.name for scope in endpoint.scopes)
        line = self._lines.get(names)
        if line is None:
            if len(self._lines) >= MOST_LINES:
                self._lines = {name: line for name, line in self._lines.items() if line.callers}
            line = self._lines[names] = _Line()
        return line

    def _flat(self, endpoint: Endpoint, tokens: int) -> list[str | float]:
        bounds = self._bounds(endpoint)
        flat: list[str | float] = [len(bounds)]
        for bound in bounds:
            flat += (
                bound.name, bound.request_ms, bound.burst_ms, tokens * bound.token_ms,
                BURST_MS if bound.token_ms else 0, bound.most,
            )  # fmt: skip
        return flat

    def _remembering(self) -> Callable[[Endpoint], tuple[Bound, ...]]:
        settings = self._set

        @lru_cache(256)
        def bounds(endpoint: Endpoint) -> tuple[Bound, ...]:
            return tuple(
                bound_of(scope, settings.get(scope.key, Limits()).over(scope.limits))
                for scope in endpoint.scopes
            )

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
            for permit, endpoint in list(self._held.items())
            for scope in endpoint.scopes
            for text in (scope.name, permit)
        ]
        if flat:
            self._port.caller.run("renew_calls", *flat)
