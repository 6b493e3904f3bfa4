"""Reads all queues and workers in one round trip; changes nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from shared.keys import (
    CLOCK_KEY,
    DEAD_KEY,
    capacity_key,
    live_key,
    parked_key,
    ring_key,
    workers_key,
)
from shared.kinds import Kind, all_kinds
from shared.names import FINAL_STATES
from shared.runs import RunInfo, waiting

if TYPE_CHECKING:
    import redis

OPEN_AMONG: Final = 100
"""How many of the newest runs are looked at for open items."""
HEADINGS: Final = ("OPEN ITEMS", "CHUNKS QUEUED", "AT WORK", "DELAYED", "RUNS WAITING", "WORKERS")
FIELDS: Final = ("open_items", "queued", "handed_out", "delayed", "runs", "workers")
"""Of a queue, below `HEADINGS`."""
SPARE: Final = ("RUNS WAITING", "DELAYED")
"""Columns that a narrow terminal does without."""
UNITS: Final = "Open items have no result yet; queued, at work and delayed are chunks of items."


class FleetWorker(NamedTuple):
    """One live worker process."""

    name: str
    kinds: list[str]
    """The kinds that it works on."""
    capacity: int
    """Chunks it works on at a time."""
    heard_s: float
    """Seconds since its last tick."""


class Queue(NamedTuple):
    """Waiting and running chunks of one kind."""

    kind: str
    queued: int | None
    """Wake-up calls that no worker has taken yet; None while the broker does not answer."""
    handed_out: int
    """Chunks that are published or being worked on."""
    delayed: int
    """Chunks that wait until they are due."""
    runs: int
    """Runs with chunks that were not handed out yet."""
    workers: int
    """Worker processes alive."""
    open_items: int
    """Items without a result, of the runs that are under way."""


class Overview(NamedTuple):
    """Queues, workers and the dead set."""

    queues: list[Queue]
    workers: list[FleetWorker]
    dead: int
    """Items in the dead set."""


def read_overview(
    client: "redis.Redis", lengths: Mapping[Kind, int | None], runs: Sequence[RunInfo] = ()
) -> Overview:
    """Returns all queues, workers and the size of the dead set.

    Args:
        client: of the ledger's server.
        lengths: of the broker's queues.
        runs: whose items without a result are counted.
    """
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(CLOCK_KEY, ["at", "lc", "lease"])
    pipeline.zcard(DEAD_KEY)
    for kind in all_kinds():
        pipeline.zrange(workers_key(kind.name), 0, -1, withscores=True)
        pipeline.hgetall(capacity_key(kind.name))
        pipeline.zcard(live_key(kind.name))
        pipeline.zcard(parked_key(kind.name))
        pipeline.zcard(ring_key(kind.name))
    (seconds, micros), clock, dead, *rest = pipeline.execute()
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    open_items = Counter[Kind]()
    for info in runs:
        if info.state not in FINAL_STATES:
            open_items[info.kind] += info.total - info.done
    queues: list[Queue] = []
    workers: dict[str, FleetWorker] = {}
    for kind, start in zip(all_kinds(), range(0, len(rest), 5), strict=True):
        registered, capacity, live, parked, ring = rest[start : start + 5]
        found = waiting.live_workers(now_ms, clock, registered, capacity)
        queues.append(
            Queue(kind.name, lengths[kind], int(live), int(parked), int(ring), len(found), open_items[kind])
        )
        _add_workers(workers, kind.name, found)
    return Overview(queues, sorted(workers.values()), int(dead))


def _add_workers(workers: dict[str, FleetWorker], kind: str, found: Iterable[waiting.Worker]) -> None:
    """Adds the workers of one kind to those of the others: a process may work on several."""
    for name, capacity, heard_s, _ in found:
        known = workers.get(name, FleetWorker(name, [], 0, heard_s))
        most, least = max(known.capacity, capacity), min(known.heard_s, heard_s)
        workers[name] = FleetWorker(name, [*known.kinds, kind], most, round(least, 1))
