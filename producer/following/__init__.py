"""The progress of a run as plain values: counts, rate, time left, and why it waits.

Pure: no Redis, no clock, no words. `follower` measures, `events` and the views of the command line show.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from shared.kinds import TURNS, Kind
from shared.names import RunState

WINDOW_S: Final = 5.0
"""Time over which the rate is measured: short enough to be current, long enough not to flicker."""


class FailedItem(NamedTuple):
    """An item that ended in error."""

    item: str
    """Its name."""
    code: str
    """Its error code."""
    message: str
    """Its message; may come from an upstream, so untrusted."""


class CallsSoFar(NamedTuple):
    """Calls of a run to upstreams; empty for a run that makes no calls."""

    spent_usd: float | None = None
    """Cost so far by its budget; None without a cap."""
    cap_usd: float | None = None
    """The cost cap, if any."""
    limits: tuple[str, ...] = ()
    """Usage of the limits of its models and APIs."""
    failed: tuple[FailedItem, ...] = ()
    """The last items that ended in error, the newest first."""
    in_flight: int | None = None
    """Calls in flight, across all workers; None if they are not counted."""
    parked: str = ""
    """How many items are parked, and why most of them are; empty: none."""


NO_CALLS: Final = CallsSoFar()


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run."""

    run: str
    state: str
    done: int
    total: int
    tally: Mapping[str, int]
    elapsed_s: float
    workers: int
    """Worker processes alive."""
    queued: int | None
    """Wake-up calls that no worker has taken yet; None while the broker does not answer."""
    rate_s: float | None = None
    """Current items per second; None before the second snapshot."""
    source: str = ""
    """The name of the input."""
    why: str = ""
    """Why it makes no progress, in one sentence; empty while it does."""
    kind: Kind = TURNS
    """Its kind."""
    calls: CallsSoFar = NO_CALLS
    """Its calls to upstreams."""
    is_freeform: bool = False
    """Whether its outputs are only shown, not checked."""

    @property
    def cost_usd(self) -> float | None:
        """Cost so far; None if unknown.

        The budget is more current; results include what was spent after the budget was last read.
        """
        micros = self.tally.get("cost_micro_usd")
        stored = micros / 1e6 if micros else None
        return max((usd for usd in (self.calls.spent_usd, stored) if usd is not None), default=None)

    @property
    def left_s(self) -> float | None:
        """Seconds left at the current rate; None if unknown."""
        if not self.rate_s or self.state != RunState.RUNNING:
            return None
        return (self.total - self.done) / self.rate_s


@dataclass(slots=True)
class Meter:
    """Measures the rate over the last seconds."""

    samples: deque[tuple[float, int]] = field(default_factory=deque)

    def rate(self, now_s: float, done: int) -> float | None:
        """Adds a sample and returns items per second, or None after the first.

        >>> meter = Meter()
        >>> meter.rate(0.0, 0), meter.rate(2.0, 100), meter.rate(8.0, 100)
        (None, 50.0, 0.0)
        """
        self.samples.append((now_s, done))
        while len(self.samples) > 2 and self.samples[1][0] <= now_s - WINDOW_S:  # noqa: PLR2004 - a rate needs two samples
            self.samples.popleft()
        first_s, first = self.samples[0]
        return max(0, done - first) / (now_s - first_s) if now_s > first_s else None


def without_numbers(why: str) -> str:
    """Masks the numbers of a wait reason, which count down, so that equal reasons compare equal.

    >>> without_numbers("the next call may go in 12 s") == without_numbers("the next call may go in 9 s")
    True
    """
    return re.sub(r"\d[\d.,:]*", "#", why)
