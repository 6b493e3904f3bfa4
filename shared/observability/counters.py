"""Names of the fleet's counters, written by scripts and workers and read by `proctor metrics`.

Counters only grow, and none belongs to a run: a run that is removed takes nothing of them with it.

The ledger's scripts count in the same step as what they count (hash `keys.COUNTERS_KEY`):

    items KIND OUTCOME       results, by outcome; of turns by decision
    runs KIND STATE          runs that have ended, by final state
    steward KIND ACTION      repairs by the steward
    fenced WRITER            writes that were refused because their lease had ended

Workers count calls in memory and send their counts every few seconds (hash `keys.CALL_COUNTERS_KEY`). Here
the name of the upstream, a model or the URL of an API, stands first; it holds no space. A worker that is
killed takes the counts of its last seconds with it.

    calls RESULT             calls that have ended
    latency BUCKET           of them, by place in `LATENCY_BOUNDS_S`; each call in one bucket
    latency_us               sum of their latencies
    retries REASON           calls that were made again, or will be
    pauses                   times that the upstream asked for a pause
    waits REASON, waits_us   calls that waited in the worker for a limit, and how long together
    denials REASON           calls that were put off, so that their item was parked
    cost_nanos               cost in billionths of a dollar, as far as it is known
    tokens TYPE              tokens as the provider counted them
    cache OUTCOME            answers found in the cache, or not
"""

from enum import StrEnum
from functools import lru_cache
from typing import Final

from shared.errors import UsageError
from shared.upstream.limits import limit_key

OTHER: Final = "other"
"""Stands for all upstreams beyond the first `MOST_UPSTREAMS`, and for names that are no label."""
MOST_UPSTREAMS: Final = 50
"""Upstreams that are counted under their own name, so that counters and labels stay few."""
NAME_CHARS: Final = 200
LATENCY_BOUNDS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
"""Upper bounds of the latency histogram's buckets; one more has no bound."""


class CallCount(StrEnum):
    """Counters of calls to one upstream; those that end in a space take a label."""

    CALLS = "calls "
    LATENCY = "latency "
    LATENCY_US = "latency_us"
    RETRIES = "retries "
    PAUSES = "pauses"
    WAITS = "waits "
    WAITS_US = "waits_us"
    DENIALS = "denials "
    COST_NANOS = "cost_nanos"
    TOKENS = "tokens "
    CACHE = "cache "


class Action(StrEnum):
    """Repairs by the steward."""

    LEASE_ENDED = "lease_ended"
    """A lease ran out: its worker is gone, or too slow to renew it."""
    WAKE_REPEATED = "wake_repeated"
    """A wake-up was not answered in time, and was published again."""
    CHUNK_SPLIT = "chunk_split"
    """A chunk that ended two workers was taken apart into single items."""
    ITEM_POISONED = "item_poisoned"
    """An item that kept ending its workers was given up."""


@lru_cache(1024)
def upstream_label(name: str) -> str:
    """Names an upstream in a counter: as limits do, or `OTHER` where that is no good label.

    >>> upstream_label("openai/gpt-4o"), upstream_label("https://me:secret@api.example.com/v1/")
    ('openai/gpt-4o', 'https://api.example.com/v1')
    >>> upstream_label("two words"), upstream_label("m" * 1000)
    ('other', 'other')
    """
    try:
        label = limit_key(name)
    except UsageError:
        return OTHER
    return label if len(label) <= NAME_CHARS and label.isprintable() else OTHER
