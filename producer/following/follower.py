"""Follows a run until it ends: a snapshot at each poll, also while Redis is away, and a time limit."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from itertools import islice
from threading import Event
from time import monotonic
from typing import Final, Protocol

from producer.access import Access
from producer.dead_set import read_dead
from producer.following import CallsSoFar, FailedItem, Meter, Progress
from producer.run_settings import is_freeform
from producer.text import duration, plural
from shared.clock import now_ms
from shared.errors import RedisUnreachableError
from shared.ledger.calls import is_away
from shared.names import RunState
from shared.plugins import lacking
from shared.runs import RunInfo
from shared.runs.upstreams import ScopeUsage, UpstreamStatus, upstreams_of
from shared.runs.waiting import describe_parked, format_wait

LOOK_EVERY_S: Final = 0.2
"""Longest polling interval."""
FIRST_LOOK_S: Final = 0.02
"""Shortest one: small runs end within a second."""
LOOK_SHARE: Final = 0.1
"""The polling interval as a share of the time that the run was followed: how much later its end is seen."""

CALLS_EVERY_S: Final = 1.0
"""Polling interval: limits and costs change slowly, and each poll takes two or three round trips."""
FAILURES_SHOWN: Final = 3
"""Failures that are shown."""
DEAD_READ: Final = 50
"""Newest entries of the dead set that are searched for those of the run."""
LIMITS_SHOWN: Final = 2
"""Scopes that are shown; the busiest come first."""


class OwnWorkers(Protocol):
    """Workers that the caller starts for itself."""

    @property
    def is_working(self) -> bool:
        """Whether workers have been started."""

    def ensure_running(self, workers: int | None = None) -> None:
        """Starts them if none has been alive for a while, given how many are alive now."""

    def check(self) -> None:
        """Raises an error if those that were started have ended."""


def look_after(followed_s: float) -> float:
    """Returns the pause before the next poll of a run that has been followed for some time.

    >>> look_after(0.0), look_after(1.0), look_after(60.0)
    (0.02, 0.1, 0.2)
    """
    return min(LOOK_EVERY_S, max(FIRST_LOOK_S, LOOK_SHARE * followed_s))


class Follower:
    """Yields snapshots of one run, the last one when it has ended; can be iterated once, also with `async`.

    Args:
        access: access to Redis.
        run: the run's id.
        workers: workers of the caller; None: it starts none.
        timeout_s: after this the run is ended as incomplete.
        wait: waits between two polls, given the seconds; it may read results meanwhile.

    Raises:
        UnknownRunError: there is no such run (any more).
        RedisUnreachableError: Redis was unavailable for longer than `PROCTOR_PATIENCE_S`.
        InfrastructureError: the workers of the caller ended.
    """

    def __init__(
        self,
        access: Access,
        run: str,
        *,
        workers: OwnWorkers | None = None,
        timeout_s: float | None = None,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self._access, self._run, self._workers = access, run, workers
        self._began_s = monotonic()
        self._deadline_s = None if timeout_s is None else self._began_s + timeout_s
        self._wait = wait or Event().wait
        self._meter = Meter()
        self._monitor = _UpstreamMonitor(access)
        self._last = Progress(run, RunState.RUNNING, 0, 0, {}, 0.0, 0, 0)
        self._away_since_s: float | None = None
        self._info: RunInfo | None = None

    def __iter__(self) -> Iterator[Progress]:
        while True:
            yield self._look()
            if self._is_over:
                return
            self._tend()
            pause_s = look_after(monotonic() - self._began_s)
            try:
                (Event().wait if self._is_away else self._wait)(pause_s)
            except Exception as error:
                if not is_away(error):
                    raise
                yield self._missing(error)
                Event().wait(pause_s)

    async def __aiter__(self) -> AsyncIterator[Progress]:
        while True:
            yield await asyncio.to_thread(self._look)
            if self._is_over:
                return
            await asyncio.to_thread(self._tend)
            await asyncio.sleep(look_after(monotonic() - self._began_s))

    @property
    def info(self) -> RunInfo:
        """The run at the last poll; after the last snapshot it has ended."""
        if self._info is None:
            raise AssertionError("a run is read before it is shown")
        return self._info

    @property
    def _is_over(self) -> bool:
        return not self._is_away and self.info.is_final

    @property
    def _is_away(self) -> bool:
        return self._away_since_s is not None

    def _look(self) -> Progress:
        """Polls once; a Redis that is briefly unavailable is a reason to wait."""
        try:
            self._last = self._read()
        except Exception as error:
            if not is_away(error):
                raise
            return self._missing(error)
        self._away_since_s = None
        return self._last

    def _read(self) -> Progress:
        access = self._access
        self._info = info = access.impatient_store.info(self._run)
        workers = access.count_workers(info.kind, info.layout)
        queued = access.queue_lengths()[info.kind]
        self._monitor.look(info)
        rate_s = self._meter.rate(monotonic(), info.done)
        return Progress(
            run=info.run,
            state=info.state,
            done=info.done,
            total=info.total,
            tally=info.tally,
            elapsed_s=info.elapsed_ms(info.finished_ms or now_ms()) / 1000,
            workers=workers,
            queued=queued,
            rate_s=rate_s,
            source=info.source,
            kind=info.kind,
            why=self._wait_reason(info, workers, queued, is_stalled=rate_s == 0),
            calls=self._monitor.calls,
            is_freeform=is_freeform(info),
        )

    def _wait_reason(self, info: RunInfo, workers: int, queued: int | None, *, is_stalled: bool) -> str:
        """Returns why the run makes no progress; empty if it does or has ended."""
        if info.is_final:
            return ""
        if is_stalled and (unwritable := self._access.unwritable()):
            return unwritable
        if queued is None:
            return "the broker does not answer; waiting for it"
        is_starting = self._workers is not None and self._workers.is_working
        if not workers and info.state == RunState.RUNNING and is_starting:
            return "starting workers"
        return self._access.impatient_store.wait_reason_of(info, self._monitor.upstream_status)

    def _missing(self, error: Exception) -> Progress:
        """Returns a snapshot that says that Redis is away; raises the error after the time limit."""
        now_s = monotonic()
        self._away_since_s = self._away_since_s or now_s
        patience_s = self._access.settings.patience_s
        if now_s - self._away_since_s > patience_s:
            raise RedisUnreachableError(
                f"Redis did not answer for {duration(patience_s)}: {error}",
                hint=f"what it holds of the run is kept; `proctor watch {self._run}` when it is back",
            ) from error
        why = f"Redis does not answer; waiting for it, up to {duration(patience_s)}"
        return replace(self._last, why=why, rate_s=None)

    def _tend(self) -> None:
        """Keeps the caller's workers or an embedded Redis going, and ends the run after its time limit."""
        if self._is_away:
            self._access.revive()
            return
        if self._workers is not None and self.info.state == RunState.RUNNING:
            self._workers.ensure_running(self._able_workers())
        elif self._workers is not None:
            self._workers.check()
        if self._deadline_s is not None and monotonic() >= self._deadline_s:
            self._deadline_s = None
            self._access.ledger.control(self._run, RunState.INCOMPLETE)

    def _able_workers(self) -> int:
        """Counts live workers that have what the run needs; all, where those of the caller would lack it."""
        access, info = self._access, self.info
        if not info.needs or lacking(info.needs, allow_code=access.settings.allow_code):
            return self._last.workers
        return access.count_workers(info.kind, info.layout, info.needs)


class _UpstreamMonitor:
    """Reads the state of the calls of a run about once a second; nothing for a run that makes no calls.

    Args:
        access: access to Redis.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._meters: dict[str, Meter] = {}
        self._calls_out: bool | None = None
        self._looked_s = -CALLS_EVERY_S
        self._errors = 0
        self.upstream_status: UpstreamStatus | None = None
        self.calls = CallsSoFar()

    def look(self, info: RunInfo) -> None:
        """Polls again if the interval has passed.

        Raises:
            RedisUnreachableError: Redis is away.
        """
        if self._calls_out is None:
            self._calls_out = upstreams_of(info.kind, info.snapshot) is not None
        now_s = monotonic()
        if not self._calls_out or (now_s - self._looked_s < CALLS_EVERY_S and not info.is_final):
            return
        self._looked_s = now_s
        self.upstream_status = upstream_status = self._access.impatient_store.upstream_status(info)
        failed = self.calls.failed
        errors = info.tally.get("error", 0)
        if errors != self._errors:
            failed = self._failed(info)
            self._errors = errors
        if upstream_status is None:
            self.calls = CallsSoFar(self.calls.spent_usd, self.calls.cap_usd, failed=failed)
            return
        spent = upstream_status.cost.spent_usd if upstream_status.cap_usd is not None else None
        limits = tuple(self._limit(scope, now_s) for scope in _busiest(upstream_status))
        in_flight, parked = upstream_status.run_in_flight, parked_text(upstream_status)
        self.calls = CallsSoFar(spent, upstream_status.cap_usd, limits, failed, in_flight, parked)

    def _limit(self, scope: ScopeUsage, now_s: float) -> str:
        """Formats how much of a limit is used now."""
        meter = self._meters.setdefault(f"{scope.state.label} {scope.state.account}", Meter())
        return limit_text(scope, meter.rate(now_s, scope.sent))

    def _failed(self, info: RunInfo) -> tuple[FailedItem, ...]:
        """Reads the run's newest failures."""
        newest = read_dead(self._access.client, first=DEAD_READ)
        mine = (dead for dead in newest if dead.place.run == info.run)
        return tuple(FailedItem(dead.name.label, *dead.error) for dead in islice(mine, FAILURES_SHOWN))


def parked_text(upstream_status: UpstreamStatus) -> str:
    """Writes how many items are parked until their next call, and what most of them wait for.

    >>> from shared.codecs.parked_items import ParkedState, WaitReason
    >>> from shared.upstream.costs import Cost
    >>> held = [ParkedState(WaitReason.RATE_LIMIT)]
    >>> parked_text(UpstreamStatus([], None, Cost(None, 0, 0), None, held, 54))
    '54 items parked: waiting for a rate limit'
    """
    number = upstream_status.parked_items
    why = describe_parked(upstream_status.parked)
    return ": ".join(filter(None, (f"{plural(number, 'item')} parked", why))) if number else ""


def limit_text(scope: ScopeUsage, per_s: float | None) -> str:
    """Formats the usage of a scope's limits, across all runs.

    Args:
        scope: the scope with its limits and state.
        per_s: current calls per second; None if unknown.
    """
    limits, state, most = scope.limits, scope.state, scope.most
    parts = []
    rpm = scope.adaptive_rpm or limits.rpm
    if rpm is not None:
        used = "?" if per_s is None else f"{min(rpm, 60 * per_s):,.0f}"
        bound = f"{rpm:,.0f} req/min (adapted)" if scope.adaptive_rpm else f"{rpm:,.10g} req/min"
        parts.append(f"{used}/{bound}")
    if limits.tpm is not None:
        parts.append(f"{limits.tpm:,.10g} tokens/min")
    if limits.pace_s is not None:
        parts.append(f"one in {limits.pace_s:g} s")
    if most is not None:
        is_learnt = scope.adaptive is not None and most == scope.adaptive and most != limits.concurrency
        parts.append(f"{state.in_flight}/{most} at a time{' (adapted)' if is_learnt else ''}")
    if state.next_ms >= 1000 * CALLS_EVERY_S:
        parts.append(f"next in {format_wait(state.next_ms)}")
    return f"{state.label} {', '.join(parts)}"


def _busiest(upstream_status: UpstreamStatus) -> list[ScopeUsage]:
    """Returns the limited scopes with the most calls in flight."""
    bounded = [
        scope
        for scope in upstream_status.scopes
        if any((scope.most, scope.adaptive_rpm, scope.limits.rpm, scope.limits.tpm, scope.limits.pace_s))
    ]
    return sorted(bounded, key=lambda scope: (-scope.state.in_flight, scope.state.label))[:LIMITS_SHOWN]
