"""Reads a snapshot of the whole fleet in three round trips.

Gauges are read from the ledger itself, so they cannot drift; counters are in `shared.observability.counters`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from shared import keys
from shared.kinds import all_kinds
from shared.ledger.calls import ScriptCaller
from shared.names import FINAL_STATES, RunState
from shared.observability.counters import MOST_UPSTREAMS, OTHER, upstream_label
from shared.runs.waiting import live_workers
from shared.settings import LEASE_S
from shared.upstream.limits import ScopeState, scope_state

SILENT_LEASES: Final = 1 / 3
"""A worker without a tick for this part of a lease counts as silent."""
RUN_PREFIX: Final = "run:"
"""Begins the scopes of single runs, which metrics leave out."""
RUN_FIELDS: Final = ("kind", "state", "goal", "done", "sealed", "again")
LEASED: Final = b"L"
KIND_ANSWERS: Final = 4
MOST_SCOPES: Final = 4 * MOST_UPSTREAMS
"""Scopes that are looked at; each account of an upstream has its own."""


class UpstreamState(NamedTuple):
    """The state of one upstream, across all its accounts."""

    in_flight: int
    paused_s: float
    breaker: int
    """0 closed, 1 half-open, 2 open."""


BREAKER: Final[Mapping[str, int]] = {"closed": 0, "half-open": 1, "open": 2}
NOTHING: Final = UpstreamState(0, 0.0, 0)


@dataclass(frozen=True, slots=True)
class Look:
    """A snapshot of the fleet."""

    backlog: Mapping[str, int]
    """Items without a result, by kind; without those of paused runs."""
    oldest_s: Mapping[str, float]
    """By kind, how long the oldest items of the backlog have been there."""
    runs: Mapping[tuple[str, str], int]
    """Unfinished runs by kind and state."""
    chunks: Mapping[tuple[str, str], int]
    """Open chunks by kind and state."""
    workers: Mapping[tuple[str, str], int]
    """Worker processes by kind and state."""
    slots: Mapping[str, int]
    """Chunks that the ready workers of a kind can work on at a time."""
    dead: int
    """Items in the dead set."""
    tick_age_s: float | None
    """Since a steward ticked last; None when there never was one."""
    upstreams: Mapping[str, UpstreamState]
    """Those that were called in the last hour."""
    memory_bytes: int
    memory_limit_bytes: int
    """0: none is set."""
    counters: Mapping[str, int]
    """Of the ledger, see `shared.observability.counters`."""
    calls: Mapping[str, Mapping[str, int]]
    """Counters of calls by upstream."""


class _Fleet:
    """Sums that come together while the answers are read."""

    def __init__(self) -> None:
        self.backlog = Counter[str]()
        self.oldest_ms = dict[str, int]()
        self.runs = Counter[tuple[str, str]]()
        self.chunks = Counter[tuple[str, str]]()
        self.workers = Counter[tuple[str, str]]()
        self.slots = Counter[str]()

    def add_run(self, row: "_RunRow") -> None:
        """Adds a run, unless it has ended meanwhile."""
        if row.kind is None or row.state.decode() in FINAL_STATES:
            return
        kind, state, since_ms = row.kind.decode(), row.state.decode(), int(row.again or row.sealed or 0)
        self.runs[kind, state] += 1
        if state == RunState.PAUSED:
            return  # no worker gets its items, so none is missing, and their age is somebody's choice
        left = max(0, int(row.goal) - int(row.done))
        self.backlog[kind] += left
        if left and since_ms:
            self.oldest_ms[kind] = min(since_ms, self.oldest_ms.get(kind, since_ms))

    def add_kind(self, kind: str, found: "_KindRow", leased: int, now_ms: int, clock: Sequence[Any]) -> None:
        """Adds dispatch and workers of a kind."""
        self.chunks[kind, "leased"] = leased
        self.chunks[kind, "published"] = len(found.live) - leased
        self.chunks[kind, "delayed"] = int(found.parked)
        workers = live_workers(now_ms, clock, found.registered, found.capacity)
        silent_s = SILENT_LEASES * (int(clock[2]) / 1000 if clock[2] else LEASE_S)
        ready = [worker for worker in workers if worker.heard_s < silent_s]
        draining = sum(1 for name, _ in found.registered if int(found.capacity.get(name, 0)) == 0)
        self.workers[kind, "ready"] = len(ready)
        self.workers[kind, "draining"] = draining
        self.workers[kind, "silent"] = len(found.registered) - len(ready) - draining
        self.slots[kind] = sum(worker.capacity for worker in ready)


def take_look(caller: ScriptCaller) -> Look:
    """Reads everything.

    Raises:
        RedisUnreachableError: Redis stayed away for longer than the caller's patience.
    """
    client = caller.client
    answers = caller.patiently(lambda: _read(client))
    (seconds, micros), clock, dead, opened, busy, scopes, counters, calls, memory, *rest = answers
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    rows = _groups(rest, KIND_ANSWERS)
    kinds = {kind.name: _KindRow(*row) for kind, row in zip(all_kinds(), rows, strict=True)}
    live = [member for row in kinds.values() for member in row.live]
    runs, states = caller.patiently(lambda: _read_runs(client, sorted(opened | busy), live))
    fleet, states_left = _Fleet(), iter(states)
    for run in runs:
        fleet.add_run(run)
    for kind, row in kinds.items():
        leased = sum(state == LEASED for state in islice(states_left, len(row.live)))
        fleet.add_kind(kind, row, leased, now_ms, clock)
    return Look(
        backlog=fleet.backlog,
        oldest_s={kind: max(0.0, (now_ms - since_ms) / 1000) for kind, since_ms in fleet.oldest_ms.items()},
        runs=fleet.runs,
        chunks=fleet.chunks,
        workers=fleet.workers,
        slots=fleet.slots,
        dead=int(dead),
        tick_age_s=None if clock[0] is None else max(0.0, (now_ms - int(clock[0])) / 1000),
        upstreams=_upstreams(caller, [name.decode() for name in scopes], now_ms),
        memory_bytes=int(memory.get("used_memory", 0)),
        memory_limit_bytes=int(memory.get("maxmemory", 0)),
        counters={name.decode(): int(value) for name, value in counters.items()},
        calls=_by_upstream(calls),
    )


def _read(client: Any) -> list[Any]:
    """Reads what is of a bounded size."""
    with client.pipeline(transaction=False) as pipeline:
        pipeline.time()
        pipeline.hmget(keys.CLOCK_KEY, "at", "lc", "lease")
        pipeline.zcard(keys.DEAD_KEY)
        pipeline.smembers(keys.OPEN_KEY)
        pipeline.smembers(keys.BUSY_KEY)
        pipeline.zrange(keys.SCOPES_KEY, 0, -1)
        pipeline.hgetall(keys.COUNTERS_KEY)
        pipeline.hgetall(keys.CALL_COUNTERS_KEY)
        pipeline.info("memory")
        for kind in all_kinds():
            pipeline.zrange(keys.live_key(kind.name), 0, -1)
            pipeline.zcard(keys.parked_key(kind.name))
            pipeline.zrange(keys.workers_key(kind.name), 0, -1, withscores=True)
            pipeline.hgetall(keys.capacity_key(kind.name))
        return list(pipeline.execute())


class _KindRow(NamedTuple):
    """What is read of each kind."""

    live: Sequence[bytes]
    """Chunks that are published or leased, `run chunk`."""
    parked: int
    registered: Sequence[tuple[bytes, float]]
    """Workers, by the ledger time at which they count as gone."""
    capacity: Mapping[bytes, bytes]


class _RunRow(NamedTuple):
    """What is read of each unfinished run."""

    kind: bytes | None
    """None: it was removed meanwhile."""
    state: bytes
    goal: bytes
    done: bytes
    sealed: bytes | None
    again: bytes | None
    """When a retry began it anew."""


def _read_runs(
    client: Any, runs: Sequence[bytes], live: Sequence[bytes]
) -> tuple[list[_RunRow], list[bytes | None]]:
    """Reads unfinished runs, and the states of chunks that were handed out.

    Plain commands rather than a script: together they cost the server less, and none holds it up.
    """
    with client.pipeline(transaction=False) as pipeline:
        for name in runs:
            pipeline.hmget(keys.run_key(name.decode()), RUN_FIELDS)
        for member in live:
            run, chunk = member.decode().split(" ")
            pipeline.hget(keys.chunk_key(run, chunk), "st")
        answers = pipeline.execute()
    return [_RunRow(*fields) for fields in answers[: len(runs)]], answers[len(runs) :]


def _upstreams(caller: ScriptCaller, scopes: Sequence[str], now_ms: int) -> dict[str, UpstreamState]:
    """Reads the state of upstreams; accounts are combined, and so are upstreams beyond the first ones."""
    names = [name for name in scopes if not name.startswith(RUN_PREFIX)][:MOST_SCOPES]
    labels = {name: upstream_label(name.partition(" ")[0]) for name in names}
    known = set(islice(dict.fromkeys(labels.values()), MOST_UPSTREAMS))

    def read() -> list[Any]:
        with caller.client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.hgetall(keys.scope_key(name))
                pipeline.zcard(keys.permits_key(name))
            return list(pipeline.execute())

    states: dict[str, UpstreamState] = {}
    for name, (fields, in_flight) in zip(names, _groups(caller.patiently(read), 2), strict=True):
        if fields:
            label = labels[name] if labels[name] in known else OTHER
            found = scope_state(name, fields, in_flight, now_ms)
            states[label] = _together(states.get(label, NOTHING), found)
    return states


def _together(state: UpstreamState, more: ScopeState) -> UpstreamState:
    """Combines the state of an upstream with that of one of its scopes; the worse one counts."""
    return UpstreamState(
        state.in_flight + more.in_flight,
        max(state.paused_s, more.paused_ms / 1000),
        max(state.breaker, BREAKER[more.breaker]),
    )


def _by_upstream(calls: Mapping[bytes, bytes]) -> dict[str, dict[str, int]]:
    """Groups counters of calls by the upstream that their names begin with."""
    found: dict[str, dict[str, int]] = {}
    for name, value in calls.items():
        upstream, _, counter = name.decode().partition(" ")
        found.setdefault(upstream, {})[counter] = int(value)
    return found


def _groups(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Cuts a sequence into groups of a size.

    >>> list(_groups([1, 2, 3, 4, 5], 2))
    [[1, 2], [3, 4], [5]]
    """
    return (values[at : at + size] for at in range(0, len(values), size))
