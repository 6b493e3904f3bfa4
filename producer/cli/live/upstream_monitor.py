"""Looks at what the calls of a run have come to, about once a second: limits, cost, the last failures.

A run that calls nobody pays nothing for this.
"""

from __future__ import annotations

from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Final

from producer.cli.dead_set import read_dead
from producer.cli.live.progress import Calls, Failed, Meter
from shared.runs.upstreams import upstreams_of
from shared.runs.waiting import format_wait

if TYPE_CHECKING:
    from producer.cli.session import Session
    from shared.runs import RunInfo
    from shared.runs.upstreams import Gauge, Standing

EVERY_S: Final = 1.0
"""Between two looks: limits and money change slowly, and each look costs two or three round trips."""
SHOWN: Final = 3
"""Failures to show."""
DEAD_READ: Final = 50
"""Newest entries of the dead set among which those of the run are looked for."""
LIMITS_SHOWN: Final = 2
"""Scopes to show; the busiest come first."""


class UpstreamMonitor:
    """Remembers the last look between two.

    Args:
        session: the way to Redis.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._meters: dict[str, Meter] = {}
        self._calls_out: bool | None = None
        self._looked_s = -EVERY_S
        self._errors = 0
        self.standing: Standing | None = None
        self.calls = Calls()

    def look(self, info: RunInfo) -> None:
        """Looks again, if it is time.

        Raises:
            RedisUnreachableError: Redis is away.
        """
        if self._calls_out is None:
            self._calls_out = upstreams_of(info) is not None
        now_s = monotonic()
        if not self._calls_out or (now_s - self._looked_s < EVERY_S and not info.is_final):
            return
        self._looked_s = now_s
        self.standing = standing = self._session.impatient_store.standing(info)
        failed = self.calls.failed
        errors = info.tally.get("error", 0)
        if errors != self._errors:
            failed = self._failed(info)
            self._errors = errors
        if standing is None:
            self.calls = Calls(self.calls.spent_usd, self.calls.cap_usd, failed=failed)
            return
        spent = standing.cost.spent_usd if standing.cap_usd is not None else None
        limits = tuple(self._limit(gauge, now_s) for gauge in _busiest(standing))
        self.calls = Calls(spent, standing.cap_usd, limits, failed, standing.run_in_flight)

    def _limit(self, gauge: Gauge, now_s: float) -> str:
        """Says how much of a limit is used now."""
        meter = self._meters.setdefault(f"{gauge.state.label} {gauge.state.account}", Meter())
        return limit_text(gauge, meter.rate(now_s, gauge.sent))

    def _failed(self, info: RunInfo) -> tuple[Failed, ...]:
        """Reads the run's newest failures."""
        newest = read_dead(self._session.client, first=DEAD_READ)
        mine = (dead for dead in newest if dead.place.run == info.run)
        return tuple(Failed(dead.name.label, *dead.error) for dead in islice(mine, SHOWN))


def limit_text(gauge: Gauge, per_s: float | None) -> str:
    """Writes what is used of a scope's limits, over all runs of the fleet.

    Args:
        gauge: the scope.
        per_s: calls a second of late; None while nobody knows.
    """
    limits, state, most = gauge.limits, gauge.state, gauge.most
    said = []
    if limits.rpm is not None:
        used = "?" if per_s is None else f"{min(limits.rpm, 60 * per_s):,.0f}"
        said.append(f"{used}/{limits.rpm:,.10g} req/min")
    if limits.tpm is not None:
        said.append(f"{limits.tpm:,.10g} tokens/min")
    if limits.pace_s is not None:
        said.append(f"one in {limits.pace_s:g} s")
    if most is not None:
        is_learnt = gauge.adaptive is not None and most == gauge.adaptive and most != limits.concurrency
        said.append(f"{state.in_flight}/{most} at a time{' (adapted)' if is_learnt else ''}")
    if state.next_ms >= 1000 * EVERY_S:
        said.append(f"next in {format_wait(state.next_ms)}")
    return f"{state.label} {', '.join(said)}"


def _busiest(standing: Standing) -> list[Gauge]:
    """Picks the scopes that are bounded; those with the most calls under way first."""
    bounded = [
        gauge
        for gauge in standing.gauges
        if gauge.most is not None or gauge.limits.rpm or gauge.limits.tpm or gauge.limits.pace_s
    ]
    return sorted(bounded, key=lambda gauge: (-gauge.state.in_flight, gauge.state.label))[:LIMITS_SHOWN]
