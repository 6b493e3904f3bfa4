"""What the fleet does now, read once: queues, workers, limits of models and APIs; changes nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import floor
from typing import TYPE_CHECKING, Final, NamedTuple

from producer.service_documents import QueueState, WorkerState
from producer.text import plural
from shared.errors import UsageError
from shared.keys import (
    CLOCK_KEY,
    DEAD_KEY,
    admitted_key,
    capacity_key,
    chunk_key,
    live_key,
    parked_key,
    ring_key,
    wait_key,
    workers_key,
)
from shared.kinds import Kind, all_kinds
from shared.ledger.calls import ScriptCaller
from shared.names import FINAL_STATES
from shared.runs import RunInfo, waiting
from shared.upstream.limits import LimitBook, Limits, ScopeState, limit_key

if TYPE_CHECKING:
    import redis

MOST_CHUNKS: Final = 500
"""Chunks of a kind among which those in hand are counted."""
LEASED: Final = b"L"
"""State of a chunk that a worker has claimed."""
RUN_PREFIX: Final = "run:"
"""Prefix of a run's id in the name of a scope for its own limits."""


class Overview(NamedTuple):
    """Queues, workers and the dead set."""

    queues: tuple[QueueState, ...]
    workers: tuple[WorkerState, ...]
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
    queues, workers = list[QueueState](), dict[str, WorkerState]()
    for kind, start in zip(all_kinds(), range(0, len(rest), 5), strict=True):
        registered, capacity, live, parked, ring = rest[start : start + 5]
        found = waiting.live_workers(now_ms, clock, registered, capacity)
        queues.append(
            QueueState(
                kind.name, lengths[kind], int(live), int(parked), int(ring), len(found), open_items[kind]
            )
        )
        _add_workers(workers, kind.name, found)
    return Overview(tuple(queues), tuple(workers[name] for name in sorted(workers)), int(dead))


def _add_workers(workers: dict[str, WorkerState], kind: str, found: Iterable[waiting.Worker]) -> None:
    """Adds the workers of one kind to those of the others: a process may work on several."""
    for name, capacity, heard_s, _ in found:
        known = workers.get(name, WorkerState(name, (), 0, heard_s))
        most, least = max(known.capacity, capacity), min(known.heard_s, heard_s)
        workers[name] = WorkerState(name, (*known.kinds, kind), most, round(least, 1))


class RunChunks(NamedTuple):
    """The chunks of a run that are not done, by where they are."""

    waiting: int
    """Not published yet."""
    published: int
    """Told to the workers, and taken by none."""
    in_hand: int
    parked: int


class ChunksNow(NamedTuple):
    """Where chunks are, of those that the steward checks next."""

    by_worker: Mapping[str, int]
    """Those in hand."""
    by_run: Mapping[str, RunChunks]


def read_chunks(client: "redis.Redis", runs: Sequence[RunInfo] = ()) -> ChunksNow:
    """Counts the chunks that workers have in hand, and those of runs.

    Args:
        client: of the ledger's server.
        runs: those that go on.
    """
    pipeline, number = client.pipeline(transaction=False), len(all_kinds())
    for kind in all_kinds():
        pipeline.zrange(live_key(kind.name), 0, MOST_CHUNKS - 1)
    for kind in all_kinds():
        pipeline.zrange(parked_key(kind.name), 0, MOST_CHUNKS - 1)
    for info in runs:
        pipeline.zcard(wait_key(info.run))
        pipeline.scard(admitted_key(info.run))
    read = pipeline.execute()
    live = [member.decode().split(" ") for found in read[:number] for member in found]
    parked = Counter(member.decode().split(" ")[0] for found in read[number : 2 * number] for member in found)
    for run, chunk in live:
        pipeline.hmget(chunk_key(run, chunk), ["st", "w"])
    leased = [
        (run, worker.decode())
        for (run, _), (state, worker) in zip(live, pipeline.execute(), strict=True)
        if state == LEASED
    ]
    in_hand, counts = Counter(run for run, _ in leased), read[2 * number :]
    by_run = dict[str, RunChunks]()
    for info, unpublished, admitted in zip(runs, counts[::2], counts[1::2], strict=True):
        taken, later = in_hand[info.run], parked[info.run]
        by_run[info.run] = RunChunks(unpublished, max(0, admitted - taken - later), taken, later)
    return ChunksNow(Counter(worker for _, worker in leased), by_run)


class Bounds(NamedTuple):
    """One line of the list."""

    key: str
    """Model, provider, API URL or `run:ID`."""
    limits: Limits
    """Its configured limits."""
    state: ScopeState | None
    """Its current state; None if it was not called in the last hour."""

    @property
    def free(self) -> int | None:
        """How many more calls may be under way now; None: any number."""
        in_flight = self.state.in_flight if self.state else 0
        adaptive = floor(max(1.0, self.state.adaptive)) if self.state and self.state.adaptive else None
        most = [bound for bound in (self.limits.concurrency, adaptive) if bound is not None]
        return max(0, min(most) - in_flight) if most else None

    @property
    def next_ms(self) -> int:
        """How long until the next call may be sent."""
        if self.state is None:
            return 0
        return max(self.state.paused_ms, self.state.open_ms, self.state.next_ms)


def read_bounds(caller: ScriptCaller, key: str | None) -> list[Bounds]:
    """Reads all lines, or those of one key.

    Args:
        caller: runs the scripts.
        key: a model, provider, API URL or `run:ID`; None for all.

    Raises:
        UsageError: nothing is known of that key.
    """
    book = LimitBook(caller)
    settings, states = book.settings(), book.states()
    called = {state.key for state in states}
    found = [Bounds(state.key, settings.get(state.key, Limits()), state) for state in states]
    found += [Bounds(name, limits, None) for name, limits in settings.items() if name not in called]
    if key is not None:
        name = limit_key(key)
        found = [bound for bound in found if bound.key == name]
        if not found:
            raise UsageError(
                f"no limit is set for {name!r}, and it was not called in the last hour",
                hint="`proctor limits show` lists all",
            )
    return sorted(found, key=lambda bound: (is_of_run(bound), bound.key))


def is_of_run(bound: Bounds) -> bool:
    """Returns whether a line is the bound of a single run, which only that run notices."""
    return bound.key.startswith(RUN_PREFIX)


def state_text(state: ScopeState | None) -> str:
    """Formats the state of a scope.

    >>> state_text(None), state_text(ScopeState("m", "", 0, 3.7, 0, "closed", 0, 0, None))
    ('not called', 'ok, adaptive limit 3')
    >>> state_text(ScopeState("m", "", 0, None, 0, "closed", 0, 0, 9.0, adaptive_rpm=1704.2))
    'ok, adaptive limit 1,704 rpm'
    >>> state_text(ScopeState("m", "", 0, None, 0, "closed", 0, 0, None, failed=2, counted=2))
    'failing, 2 of 2 calls'
    >>> state_text(ScopeState("m", "", 0, None, 0, "closed", 0, 0, None))
    'called'
    """
    if state is None:
        return "not called"
    if state.breaker != "closed":
        return "circuit open" if state.breaker == "open" else "circuit half-open"
    if state.paused_ms:
        return "paused by the upstream"
    if state.failed:
        return f"failing, {state.failed} of {plural(state.counted, 'call')}"
    adaptive = [
        *([f"{floor(max(1.0, state.adaptive))}"] if state.adaptive else []),
        *([f"{state.adaptive_rpm:,.0f} rpm"] if state.adaptive_rpm else []),
    ]
    if adaptive:
        return f"ok, adaptive limit {', '.join(adaptive)}"
    # A provider's answers count for its models; or nothing has answered here yet.
    return "ok" if state.counted or state.latency_ms else "called"
