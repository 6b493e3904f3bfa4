"""Polls the state of a run's calls, about once a second: limits, cost, the last failures.

Nothing is read for a run that makes no calls.
"""

from itertools import islice
from time import monotonic
from typing import Final

from producer.cli.dead_set import read_dead
from producer.cli.live.progress import CallsSoFar, FailedItem, Meter
from producer.cli.session import Session
from shared.runs import RunInfo
from shared.runs.upstreams import ScopeUsage, UpstreamStatus, upstreams_of
from shared.runs.waiting import format_wait

EVERY_S: Final = 1.0
"""Polling interval: limits and costs change slowly, and each poll takes two or three round trips."""
SHOWN: Final = 3
"""Failures to show."""
DEAD_READ: Final = 50
"""Newest entries of the dead set that are searched for those of the run."""
LIMITS_SHOWN: Final = 2
"""Scopes to show; the busiest come first."""


class UpstreamMonitor:
    """Polls one run and keeps the last result.

    Args:
        session: access to Redis.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._meters: dict[str, Meter] = {}
        self._calls_out: bool | None = None
        self._looked_s = -EVERY_S
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
        if not self._calls_out or (now_s - self._looked_s < EVERY_S and not info.is_final):
            return
        self._looked_s = now_s
        self.upstream_status = upstream_status = self._session.impatient_store.upstream_status(info)
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
        self.calls = CallsSoFar(spent, upstream_status.cap_usd, limits, failed, upstream_status.run_in_flight)

    def _limit(self, scope: ScopeUsage, now_s: float) -> str:
        """Formats how much of a limit is used now."""
        meter = self._meters.setdefault(f"{scope.state.label} {scope.state.account}", Meter())
        return limit_text(scope, meter.rate(now_s, scope.sent))

    def _failed(self, info: RunInfo) -> tuple[FailedItem, ...]:
        """Reads the run's newest failures."""
        newest = read_dead(self._session.client, first=DEAD_READ)
        mine = (dead for dead in newest if dead.place.run == info.run)
        return tuple(FailedItem(dead.name.label, *dead.error) for dead in islice(mine, SHOWN))


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
    if state.next_ms >= 1000 * EVERY_S:
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
