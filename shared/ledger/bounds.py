"""The bounds of the ledger's protocol, for Python and (rendered by `lua_source`) for its Lua scripts."""

import sys
from typing import Final

from shared.kinds import all_kinds

KINDS: Final = "KINDS"
"""Lua name of the kinds that a tick handles: all that are registered when the scripts are composed."""
LAYOUT: Final = 5
"""Newest layout of runs that this version supports; workers ignore runs of a newer one."""
FIRST_LAYOUT: Final = 1
"""Layout of runs that need nothing that the first workers lacked; those ignore runs of any other."""
OPTIONS_LAYOUT: Final = 3
"""The layout of runs with `--signals-once` or `--fold-apostrophes`, which earlier workers would ignore."""
PACKED_LAYOUT: Final = 5
"""The layout of runs with a dictionary (`shared.codecs.packing`), whose items earlier workers cannot read."""
TARGETS_LAYOUT: Final = 5
"""The layout of runs of cases and of live turns, whose settings have each model as a `ModelTarget`."""
OVERDUE_FACTOR: Final = 3
"""A wake-up counts as lost after this many times the usual chunk time, if that is more."""
MOST_DOUBLINGS: Final = 6
"""How often the time to the next repetition of a wake-up doubles."""
SUSPECT_STRIKES: Final = 2
"""Expired leases of a chunk after which it is split into single items."""
POISON_STRIKES: Final = 5
"""Expired leases of a single item after which it is given up as poison."""
WINDOW_FLOOR: Final = 2
"""Chunks in the broker without any worker, so that scaling by queue length can start a fleet."""
WINDOW_FACTOR: Final = 2
"""Chunks in the broker or leased, per chunk that the registered workers can work on at a time."""
ASIDE_FACTOR: Final = 8
"""Chunks of a run that are begun, those put aside included, per chunk that may be under way at a time."""
PERCENT: Final = 100
"""A whole chunk, where chunks of a run of limited width count by what is left of them."""
TOP_UP: Final = 50
"""Most chunks one call publishes; a tick publishes `TICK_TOP_UP`."""
TICK_TOP_UP: Final = 500
"""Most chunks of a kind that one tick publishes."""
BULK: Final = 100
"""Most chunks that one call drops or one tick repairs, so that no script blocks the server for long."""
WIPE_BULK: Final = 20
"""Most expired runs that one tick clears away."""
INBOX_DEPTH: Final = 10
"""Most batches of a thread that one claim hands out."""
DEAD_CAP: Final = 100_000
"""Most entries of the dead set; the oldest go first."""
TOLD_MS: Final = 300_000
"""How long a listener that is gone keeps the names of runs that have ended."""
UNHEARD: Final = 5_000
"""Messages of a listener from which on pieces of answers, which it can do without, are dropped."""
HOUR_MS: Final = 3_600_000
"""What the counters of a stream are kept by."""
LATENCY_GROWTH: Final = 1.1
"""Each bucket of latency ends at so many times the end of the one below: percentiles are right to 5 %."""
EVICTED: Final = 100
"""Most threads that a fold forgets, and entries of the stream beyond those that it adds."""
ARGUMENT_SLICE: Final = 4_000
"""Most arguments of one Redis command inside a script: Lua's `unpack` ends near 8,000."""


def lua_source(name: str) -> str | None:
    r"""Renders one constant of this module, or `KINDS`, as a Lua local; None when there is no such constant.

    >>> lua_source("BULK")
    'local BULK = 100\n'
    """
    if name == KINDS:
        return lua_local(KINDS, tuple(kind.name for kind in all_kinds()))
    return lua_local(name, getattr(sys.modules[__name__], name, None)) if name.isupper() else None


def lua_local(name: str, value: object) -> str | None:
    r"""Renders a number, or a tuple of texts, as a Lua local; None for anything else.

    >>> lua_local("SHARE", 0.5)
    'local SHARE = 0.5\n'
    """
    if isinstance(value, tuple):
        return f"local {name} = {{{', '.join(map(repr, value))}}}\n"
    return f"local {name} = {value}\n" if isinstance(value, int | float) else None
