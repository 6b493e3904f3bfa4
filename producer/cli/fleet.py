"""Reads who works and what waits, in one round trip; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from producer.cli.progress import Fleet
from shared.keys import (
    CLOCK_KEY,
    DEAD_KEY,
    PREFIX,
    capacity_key,
    live_key,
    parked_key,
    ring_key,
    workers_key,
)
from shared.names import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import redis

CLOCK_STEP_MS: Final = 2000
"""The ledger clock never runs further ahead of the last tick than this."""
SILENCE_MS: Final = 10_000
"""Every worker ticks each second: when no tick came for this long, nobody is alive, whoever is registered."""


class Worker(NamedTuple):
    """One registered worker process."""

    name: str
    kinds: list[str]
    """What it works on."""
    capacity: int
    """Chunks it works on at a time."""


class Queue(NamedTuple):
    """What of one kind waits and runs."""

    kind: str
    queued: int
    """Wake-up calls that no worker has taken yet."""
    handed_out: int
    """Chunks that are published or being worked on."""
    delayed: int
    """Chunks that wait for a time to come."""
    runs: int
    """Runs with chunks that were not handed out yet."""
    workers: int
    """Worker processes alive."""


class Overview(NamedTuple):
    """Everything but the runs."""

    queues: list[Queue]
    workers: list[Worker]
    dead: int
    """Items in the dead set."""


def ledger_now_ms(now_ms: int, clock: Iterable[bytes | str | None]) -> tuple[int, bool]:
    """Returns the ledger clock and whether anybody ticks it.

    Args:
        now_ms: Redis' time.
        clock: `at` and `lc` of the clock's hash.

    >>> ledger_now_ms(5_000, [b"4_000", b"100"]), ledger_now_ms(90_000, [b"4000", b"100"])
    ((1100, True), (2100, False))
    """
    at, ledger = (int(value or 0) for value in clock)
    gone = max(0, now_ms - at)
    return ledger + min(gone, CLOCK_STEP_MS), gone < SILENCE_MS


def alive(
    workers: Iterable[tuple[Any, float]], now_ms: int, clock: Iterable[bytes | str | None]
) -> list[str]:
    """Returns the names of registered workers whose time has not run out."""
    ledger_ms, is_ticking = ledger_now_ms(now_ms, clock)
    return [text(name) for name, until_ms in workers if is_ticking and until_ms > ledger_ms]


def text(value: bytes | str) -> str:
    """Reads a reply as text, however the client decodes."""
    return value.decode() if isinstance(value, bytes) else value


def _time_ms(reply: tuple[int, int]) -> int:
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000


def read_fleet(client: redis.Redis, broker: redis.Redis, kind: str) -> Fleet:
    """Returns who works on runs of one kind, and what waits for them."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(CLOCK_KEY, ["at", "lc"])
    pipeline.zrange(workers_key(kind), 0, -1, withscores=True)
    pipeline.zcard(ring_key(kind))
    now, clock, workers, waiting = pipeline.execute()
    queued = broker.llen(queue_key(kind))
    return Fleet(len(alive(workers, _time_ms(now), clock)), int(queued), max(0, int(waiting) - 1))


def queue_key(kind: str) -> str:
    """List of the broker that holds the wake-up calls of one kind; `shared.broker` names it the same way."""
    return f"{PREFIX}{kind}"


def read_overview(client: redis.Redis, broker: redis.Redis) -> Overview:
    """Returns all queues, workers and the size of the dead set."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(CLOCK_KEY, ["at", "lc"])
    pipeline.zcard(DEAD_KEY)
    for kind in Kind:
        pipeline.zrange(workers_key(kind), 0, -1, withscores=True)
        pipeline.hgetall(capacity_key(kind))
        pipeline.zcard(live_key(kind))
        pipeline.zcard(parked_key(kind))
        pipeline.zcard(ring_key(kind))
    now, clock, dead, *rest = pipeline.execute()
    queues: list[Queue] = []
    workers: dict[str, Worker] = {}
    for kind, start in zip(Kind, range(0, len(rest), 5), strict=True):
        registered, capacity, live, parked, ring = rest[start : start + 5]
        names = alive(registered, _time_ms(now), clock)
        queued = int(broker.llen(queue_key(kind)))
        queues.append(Queue(kind, queued, int(live), int(parked), int(ring), len(names)))
        _add_workers(workers, kind, names, {text(name): int(value) for name, value in capacity.items()})
    return Overview(queues, sorted(workers.values()), int(dead))


def _add_workers(
    workers: dict[str, Worker], kind: str, names: Iterable[str], capacity: Mapping[str, int]
) -> None:
    """Adds the workers of one kind to those of the others: a process may work on several."""
    for name in names:
        known = workers.get(name, Worker(name, [], 0))
        workers[name] = Worker(name, [*known.kinds, kind], max(known.capacity, capacity.get(name, 0)))
