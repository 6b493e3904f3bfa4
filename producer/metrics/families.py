"""Declares every family of metrics once: its name, type, labels and help, and how its samples are read.

docs/operations.md has the same table, and a test keeps the two equal. Longer than 300 lines, because the
table is one idea and each entry is a few lines.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import accumulate, product
from typing import Final, NamedTuple

from producer.metrics.look import Look
from shared.kinds import all_kinds
from shared.names import FINAL_STATES, RunState
from shared.observability.counters import LATENCY_BOUNDS_S, Action, CallCount
from shared.upstream.costs import NANOS

MICROS: Final = 1_000_000
OPEN_STATES: Final = tuple(state for state in RunState if state not in FINAL_STATES)
CHUNK_STATES: Final = ("published", "leased", "delayed")
WORKER_STATES: Final = ("ready", "draining", "silent")


class Type(StrEnum):
    """What a family is to Prometheus."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Buckets(NamedTuple):
    """The value of a histogram."""

    cumulative: Sequence[int]
    """Calls up to each bound of `LATENCY_BOUNDS_S`, and all of them."""
    sum_s: float


Sample = tuple[Sequence[str], float | Buckets]
"""Label values and value."""
Read = Callable[[Look], Iterator[Sample]]
"""Takes the samples of a family out of a look."""


class Family(NamedTuple):
    """One family of metrics."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str
    read: Read


def _by_kind(read: Callable[[Look, str], float]) -> Read:
    """Reads one value a kind, also where there is nothing yet."""
    return lambda look: (((kind.name,), read(look, kind.name)) for kind in all_kinds())


def _pairs(values: Sequence[str], read: Callable[[Look, str, str], float]) -> Read:
    """Reads one value a kind and word, also where there is nothing yet."""
    return lambda look: (
        ((kind.name, word), read(look, kind.name, word)) for kind, word in product(all_kinds(), values)
    )


def _one(read: Callable[[Look], float | None]) -> Read:
    """Reads one value; no sample while it is not known."""
    return lambda look: (((), value) for value in (read(look),) if value is not None)


def _of_calls(counter: CallCount, unit: float = 1) -> Read:
    """Reads a counter of calls: one without a label, or with its labels."""

    def read(look: Look) -> Iterator[Sample]:
        for upstream, counters in sorted(look.calls.items()):
            for name, value in sorted(counters.items()):
                if name == counter:
                    yield (upstream,), value / unit
                elif counter.endswith(" ") and name.startswith(counter):
                    yield (upstream, name.removeprefix(counter)), value / unit

    return read


def _of_cache(outcome: str) -> Read:
    """Reads how often the cache had an answer, or had none."""
    name = CallCount.CACHE + outcome
    return lambda look: (
        ((upstream,), counters[name]) for upstream, counters in sorted(look.calls.items()) if name in counters
    )


def _latency(look: Look) -> Iterator[Sample]:
    """Reads the histogram of latencies."""
    for upstream, counters in sorted(look.calls.items()):
        places = range(len(LATENCY_BOUNDS_S) + 1)
        buckets = [counters.get(f"{CallCount.LATENCY}{place}", 0) for place in places]
        if any(buckets):
            yield (
                (upstream,),
                Buckets(list(accumulate(buckets)), counters.get(CallCount.LATENCY_US, 0) / MICROS),
            )


def _items(look: Look) -> Iterator[Sample]:
    """Reads how items have ended."""
    for kind in all_kinds():
        for outcome in kind.outcomes:
            yield (kind.name, outcome), look.counters.get(f"items {kind} {outcome}", 0)


def _upstream(read: Callable[[Look, str], float]) -> Read:
    """Reads one value for each upstream that was called lately."""
    return lambda look: (((upstream,), read(look, upstream)) for upstream in sorted(look.upstreams))


FAMILIES: Final = (
    Family(
        "proctor_redis_up",
        Type.GAUGE,
        (),
        "Whether Redis answered this scrape; at 0 there is no other sample.",
        _one(lambda _: 1),
    ),
    Family(
        "proctor_backlog_items",
        Type.GAUGE,
        ("kind",),
        "Items of unfinished runs that have no result yet; those of paused runs do not count.",
        _by_kind(lambda look, kind: look.backlog.get(kind, 0)),
    ),
    Family(
        "proctor_oldest_item_age_seconds",
        Type.GAUGE,
        ("kind",),
        "Time since the oldest items of the backlog were submitted or retried; 0 without any.",
        _by_kind(lambda look, kind: look.oldest_s.get(kind, 0)),
    ),
    Family(
        "proctor_runs",
        Type.GAUGE,
        ("kind", "state"),
        "Unfinished runs.",
        _pairs(OPEN_STATES, lambda look, kind, state: look.runs.get((kind, state), 0)),
    ),
    Family(
        "proctor_chunks",
        Type.GAUGE,
        ("kind", "state"),
        "Chunks handed out: published to the broker, leased by a worker, or delayed until a time.",
        _pairs(CHUNK_STATES, lambda look, kind, state: look.chunks.get((kind, state), 0)),
    ),
    Family(
        "proctor_workers",
        Type.GAUGE,
        ("kind", "state"),
        "Registered worker processes: ready, draining, or silent for a third of a lease (frozen or dead).",
        _pairs(WORKER_STATES, lambda look, kind, state: look.workers.get((kind, state), 0)),
    ),
    Family(
        "proctor_worker_slots",
        Type.GAUGE,
        ("kind",),
        "Chunks that the ready workers can work on at a time.",
        _by_kind(lambda look, kind: look.slots.get(kind, 0)),
    ),
    Family(
        "proctor_dead_items",
        Type.GAUGE,
        (),
        "Items that ended in error and are in the dead set.",
        _one(lambda look: look.dead),
    ),
    Family(
        "proctor_steward_age_seconds",
        Type.GAUGE,
        (),
        "Time since a worker last ran the steward; above 10 s, no worker is alive.",
        _one(lambda look: look.tick_age_s),
    ),
    Family(
        "proctor_calls_in_flight",
        Type.GAUGE,
        ("upstream",),
        "Calls to an upstream in flight.",
        _upstream(lambda look, name: look.upstreams[name].in_flight),
    ),
    Family(
        "proctor_upstream_paused_seconds",
        Type.GAUGE,
        ("upstream",),
        "Remaining time of a pause that the upstream requested; 0 without one.",
        _upstream(lambda look, name: look.upstreams[name].paused_s),
    ),
    Family(
        "proctor_breaker_state",
        Type.GAUGE,
        ("upstream",),
        "Circuit breaker: 0 closed, 1 half-open, 2 open.",
        _upstream(lambda look, name: look.upstreams[name].breaker),
    ),
    Family(
        "proctor_redis_memory_bytes",
        Type.GAUGE,
        (),
        "Memory that Redis uses.",
        _one(lambda look: look.memory_bytes),
    ),
    Family(
        "proctor_redis_memory_limit_bytes",
        Type.GAUGE,
        (),
        "Memory limit of Redis; 0 when none is set.",
        _one(lambda look: look.memory_limit_bytes),
    ),
    Family(
        "proctor_items_total",
        Type.COUNTER,
        ("kind", "outcome"),
        "Results committed, by outcome; of turns by decision.",
        _items,
    ),
    Family(
        "proctor_runs_ended_total",
        Type.COUNTER,
        ("kind", "state"),
        "Runs that have ended, by final state.",
        _pairs(sorted(FINAL_STATES), lambda look, kind, state: look.counters.get(f"runs {kind} {state}", 0)),
    ),
    Family(
        "proctor_steward_actions_total",
        Type.COUNTER,
        ("kind", "action"),
        "Repairs by the steward: leases ended, wake-ups repeated, chunks split, items poisoned.",
        _pairs(tuple(Action), lambda look, kind, action: look.counters.get(f"steward {kind} {action}", 0)),
    ),
    Family(
        "proctor_fenced_writes_total",
        Type.COUNTER,
        ("writer",),
        "Writes refused because the writer's lease had ended, or that were sent again after a lost reply.",
        lambda look: (((name,), look.counters.get(f"fenced {name}", 0)) for name in ("loader", "worker")),
    ),
    Family(
        "proctor_calls_total",
        Type.COUNTER,
        ("upstream", "result"),
        "Calls to an upstream that have ended: ok, cancelled, or the error code.",
        _of_calls(CallCount.CALLS),
    ),
    Family(
        "proctor_call_seconds", Type.HISTOGRAM, ("upstream",), "Latency of calls to an upstream.", _latency
    ),
    Family(
        "proctor_retries_total",
        Type.COUNTER,
        ("upstream", "reason"),
        "Failed calls that are made again, by error code.",
        _of_calls(CallCount.RETRIES),
    ),
    Family(
        "proctor_limiter_waits_total",
        Type.COUNTER,
        ("upstream", "reason"),
        "Calls that waited in a worker: for a rate, for another call to end, for a pause or breaker.",
        _of_calls(CallCount.WAITS),
    ),
    Family(
        "proctor_limiter_wait_seconds_total",
        Type.COUNTER,
        ("upstream",),
        "Time that calls waited in a worker.",
        _of_calls(CallCount.WAITS_US, MICROS),
    ),
    Family(
        "proctor_limiter_denials_total",
        Type.COUNTER,
        ("upstream", "reason"),
        "Calls postponed for more than 2 s, so that their item was delayed.",
        _of_calls(CallCount.DENIALS),
    ),
    Family(
        "proctor_pauses_total",
        Type.COUNTER,
        ("upstream",),
        "Replies that requested a wait (Retry-After), whether or not it paused the endpoint.",
        _of_calls(CallCount.PAUSES),
    ),
    Family(
        "proctor_cost_usd_total",
        Type.COUNTER,
        ("upstream",),
        "Cost of calls in US dollars, as far as known.",
        _of_calls(CallCount.COST_NANOS, NANOS),
    ),
    Family(
        "proctor_tokens_total",
        Type.COUNTER,
        ("upstream", "type"),
        "Tokens used: prompt and completion.",
        _of_calls(CallCount.TOKENS),
    ),
    Family(
        "proctor_cache_hits_total",
        Type.COUNTER,
        ("upstream",),
        "Answers found in the cache.",
        _of_cache("hit"),
    ),
    Family(
        "proctor_cache_misses_total",
        Type.COUNTER,
        ("upstream",),
        "Requests that had no answer in the cache.",
        _of_cache("miss"),
    ),
)
"""All of them, in the order in which they are shown."""
