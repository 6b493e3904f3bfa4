"""The numbers of the upstream scripts, for Python and (rendered by `lua_source`) for Lua."""

import sys
from collections.abc import Callable
from random import random
from typing import Final

from shared.ledger.bounds import lua_local
from shared.observability.counters import MOST_UPSTREAMS

__all__ = ["MOST_UPSTREAMS"]  # for the scripts, which find it here

WAIT_MS: Final = 2_000
"""Longest wait that is worth holding a slot for; with a longer one an item is parked."""
REFUSED_WAIT_MS: Final = 500
"""The same for a call that was refused while others may be served."""
SLACK_MS: Final = 1
"""A ticket counts as due so much early: clocks tick in milliseconds."""
LEAD_MS: Final = 1_000
"""A parked caller comes back so much before its turn: it takes about a second until it is back."""
CROWD_MS: Final = 10_000
"""As many parked callers get a turn of their own as the limits let through in this time."""
CROWD: Final = 64
"""The same as a number, where the limits let through fewer in that time."""
LATER_MS: Final = 2
"""Between two parked callers beyond the crowd: at most 500 come back in a second, however many there are."""
HELD_MS: Final = 10
"""Between two parked callers that come back after a pause or an open breaker."""
PARK_MS: Final = 1_000
"""An item that waits for something else than a limit is parked for this time, and up to as much longer."""
USED_MS: Final = 3_600_000
"""How long the state of a scope is kept after its last call."""
PAUSE_CAP_MS: Final = 600_000
"""Longest pause of a scope that an upstream can ask for."""

BACK_OFF: Final = 0.7
"""Share of the adaptive number of calls at a time that is left when an upstream is overloaded."""
OVERLOAD: Final = 0.2
"""Share of calls in a round trip that must time out, or in a round of the pace be refused, to be overload."""
ROUND_MS: Final = 50
"""A round trip counts as no shorter."""
FEW: Final = 10
"""So many answers say something about load ..."""
SPARSE_MS: Final = 1_000
"""... and fewer only when no more came in this time."""
ADAPTIVE_CAP: Final = 1_000
"""Adaptive number of calls at a time from which on it bounds nothing."""
SMOOTHING: Final = 0.125
"""Weight of a new latency in the usual one."""

ALONE: Final = 2
"""So many refusals in a row pause an endpoint to which no other call is under way."""
PACE_ROUND_MS: Final = 1_000
"""The learned pace is reconsidered no sooner ..."""
PACE_CALLS: Final = 50
"""... and after so many calls, so that sparse refusals are not taken for a limit."""
PACE_FEW: Final = 0.05
"""Share of refused calls at which a pace has gone well."""
PACE_USED: Final = 0.8
"""A pace is made faster only when this share of it was used."""
PACE_GAIN: Final = 1.1
"""How much faster the next try is, once a limit has been found."""
PACE_HOLD: Final = 8
"""Rounds that a pace is kept after a try failed; doubles with each ..."""
PACE_HOLD_CAP: Final = 16
"""... up to this number."""
PACE_FLOOR_MS: Final = 500
"""Calls are spaced no further without having measured how many are served."""
PACE_LEAST_MS: Final = 1
"""A pace with less between two calls is forgotten."""
PACE_BURST_MS: Final = 30
"""How much of a learned pace may be used at once: makes up for late timers."""

BUCKET_MS: Final = 10_000
"""The breaker looks at the calls of this time and of the same time before it."""
LEAST_CALLS: Final = 20
"""With fewer calls the breaker does not judge."""
OPEN_MS: Final = 10_000
"""How long the breaker opens first; it doubles each time."""
OPEN_CAP_MS: Final = 300_000
"""The longest it opens."""
CALM_MS: Final = 60_000
"""After this time (and twice the time it was open) without opening again, it begins with `OPEN_MS` again."""
PROBES: Final = 3
"""Calls that a half-open breaker lets through."""
PROBE_LOST_MS: Final = 60_000
"""Probes that were not heard of for so long are replaced."""
PROBE_PAUSE_MS: Final = 500
"""How long others wait while probes are under way."""
REFUSALS: Final = 2
"""So many calls of a run must fail to reach an endpoint that has never answered it; then it is given up."""


def draw_park_ms(draw: Callable[[], float] = random) -> int:
    """Draws how long to park what has no known time, so that what waits together is spread.

    >>> draw_park_ms(lambda: 0.5)
    1500
    """
    return round(PARK_MS * (1 + draw()))


def lua_source(name: str) -> str | None:
    r"""Renders one constant of this module as a Lua local; None when there is no such constant.

    >>> lua_source("BACK_OFF"), lua_source("nothing")
    ('local BACK_OFF = 0.7\n', None)
    """
    return lua_local(name, getattr(sys.modules[__name__], name, None)) if name.isupper() else None
