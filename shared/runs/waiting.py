"""Says who works on a kind of run, and why a run does not move: read from the ledger, nothing is changed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from shared import keys
from shared.clock import iso_utc
from shared.ledger.memory import full_text, is_full
from shared.ledger.times import TIMES, Times
from shared.names import RunState

SILENT_MS: Final = 10_000
"""Every worker ticks each second: when no tick came for this long, nobody works, whatever is registered."""
UNHEARD_PERIODS: Final = 4
"""Leases are renewed once a period: a worker that has missed so many renewals has probably died."""
LEASES_READ: Final = 100
"""Leases that are looked at for those of one run; the next to run out come first."""
PARKED_READ: Final = 1_000
"""Most delayed chunks that are looked at for those of one run."""


class Worker(NamedTuple):
    """One live worker process."""

    name: str
    """Its node name."""
    capacity: int
    """Chunks it works on at a time."""
    heard_s: float = 0.0
    """Seconds since it was heard of last, on the ledger clock."""


class Scene(NamedTuple):
    """What decides whether a run moves."""

    state: str
    """Its state."""
    workers: int
    """Live workers of its kind."""
    chunks: int
    """Its chunks that are published or at work."""
    waiting: int
    """Its chunks that were not handed out yet."""
    due_ms: int
    """When its first delayed chunk is due, epoch milliseconds; 0 when none is delayed."""
    others: int
    """Other runs of its kind with chunks to hand out."""
    unheard: int = 0
    """Those of its chunks whose worker has not renewed its lease for a while."""
    free_ms: int = 0
    """Until the first of these leases runs out."""
    kind: str = ""
    """What it consists of."""
    full: str = ""
    """That Redis is full, with figures; empty when it is not."""


_HELD: Final[Mapping[str, str]] = {
    RunState.LOADING: "its items are still being written",
    RunState.PAUSED: "it is paused; `proctor resume {run}` continues it",
    RunState.CANCELLING: "it is being cancelled",
}


def live_workers(now_ms: int, clock: Sequence[Any], registered: Sequence[Any], caps: Any) -> list[Worker]:
    """Picks the workers that take work: registered on the ledger clock, and not draining (capacity 0).

    Args:
        now_ms: Redis' time.
        clock: `at`, `lc` and `lease` of the clock's hash.
        registered: pairs of name and expiry.
        caps: capacity by name.
    """
    if now_ms - int(clock[0] or 0) > SILENT_MS:
        return []
    ledger_now, times = _ledger_clock(now_ms, clock)
    return [
        Worker(name.decode(), int(caps.get(name, 0)), max(0.0, ledger_now + times.lease_ms - until) / 1000)
        for name, until in registered
        if until > ledger_now and int(caps.get(name, 0))
    ]


def reason(run: str, scene: Scene, *, held: str = "", note: str = "") -> str:
    """Says in one sentence why a run does not move; empty when nothing holds it.

    Args:
        run: its id.
        scene: what the ledger says.
        held: what holds its calls back, see `holding`.
        note: what its parked items wait for.

    >>> reason("r", Scene("running", 0, 2, 5, 0, 0, kind="turns"))
    'no worker is alive; run `proctor worker -Q turns`'
    >>> reason("r", Scene("running", 1, 2, 5, 0, 0), held="max cost $1 reached")
    'max cost $1 reached'
    >>> reason("r", Scene("running", 1, 1, 5, 0, 0, unheard=1, free_ms=6_400))
    '1 of its chunks is held by a worker that does not answer; others take over within 7 s'
    """
    if scene.state != RunState.RUNNING:
        is_cut = scene.state == RunState.INCOMPLETE
        return held if is_cut else _HELD.get(scene.state, "").format(run=run)
    return _stopped(scene) or held or _not_begun(scene, note)


def _stopped(scene: Scene) -> str:
    """Says what keeps every chunk of a run from moving, whatever its calls wait for."""
    if scene.full:
        return f"{scene.full}; `proctor doctor` says what helps"
    if not scene.workers:
        return f"no worker is alive; run `proctor worker -Q {scene.kind}`"
    return ""


def _not_begun(scene: Scene, note: str) -> str:
    """Says why none of a run's chunks is being worked on."""
    if scene.unheard and scene.unheard >= scene.chunks:
        within_s = max(1, -(-scene.free_ms // 1000))
        are_held = "is held" if scene.unheard == 1 else "are held"
        worker = "by a worker that does not answer"
        return f"{scene.unheard} of its chunks {are_held} {worker}; others take over within {within_s} s"
    if scene.chunks:
        return ""
    if scene.due_ms:
        return f"its next chunk is parked until {iso_utc(scene.due_ms)}{note and ': '}{note}"
    if scene.waiting and scene.others:
        return f"it waits for its turn behind {scene.others} other run{'s' * (scene.others > 1)}"
    return ""


def look(client: Any, run: str, kind: str, state: str) -> Scene:
    """Reads what decides whether a run moves, in two round trips at most."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(keys.CLOCK_KEY, ["at", "lc", "lease", "back"])
    pipeline.zrange(keys.workers_key(kind), 0, -1, withscores=True)
    pipeline.hgetall(keys.capacity_key(kind))
    pipeline.zcard(keys.wait_key(run))
    pipeline.scard(keys.admitted_key(run))
    pipeline.zcard(keys.ring_key(kind))
    pipeline.zrange(keys.parked_key(kind), 0, PARKED_READ - 1, withscores=True)
    pipeline.zrange(keys.live_key(kind), 0, LEASES_READ - 1, withscores=True)
    pipeline.info("memory")
    time, clock, registered, caps, waiting, admitted, ring, parked, live, memory = pipeline.execute()
    now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
    *clock, back_ms = clock
    ledger_ms, times = _ledger_clock(now_ms, clock)
    late = ledger_ms + times.lease_ms - UNHEARD_PERIODS * times.period_ms
    ends = {
        member.decode().split(" ")[1]: int(until) - ledger_ms
        for member, until in live
        if until < late and member.split(b" ")[0] == run.encode()
    }
    unheard = _leased(client, run, list(ends)) if ends else []
    mine = [due - int(back_ms or 0) for member, due in parked if member.split(b" ")[0] == run.encode()]
    return Scene(
        state=state,
        workers=len(live_workers(now_ms, clock, registered, caps)),
        chunks=max(0, int(admitted) - len(mine)),
        waiting=int(waiting),
        due_ms=int(min(mine, default=0)),
        others=max(0, int(ring) - 1),
        unheard=len(unheard),
        free_ms=max(0, min((ends[chunk] for chunk in unheard), default=0)),
        kind=kind,
        full=full_text(memory) if is_full(memory) else "",
    )


def _leased(client: Any, run: str, chunks: Sequence[str]) -> list[str]:
    """Picks the chunks that a worker holds; the others were only published."""
    pipeline = client.pipeline(transaction=False)
    for chunk in chunks:
        pipeline.hget(keys.chunk_key(run, chunk), "st")
    return [chunk for chunk, state in zip(chunks, pipeline.execute(), strict=True) if state == b"L"]


def _ledger_clock(now_ms: int, clock: Sequence[Any]) -> tuple[int, Times]:
    """Reads the ledger clock, and the times of the workers that tick.

    Args:
        now_ms: Redis' time.
        clock: `at`, `lc` and `lease` of the clock's hash.
    """
    at, ledger_ms, lease_ms = (int(value or 0) for value in clock)
    times = Times.of(lease_ms / 1000) if lease_ms else TIMES
    return ledger_ms + min(max(0, now_ms - at), times.skew_ms), times


def workers(client: Any, kind: str) -> list[Worker]:
    """Reads the live workers of a kind."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(keys.CLOCK_KEY, ["at", "lc", "lease"])
    pipeline.zrange(keys.workers_key(kind), 0, -1, withscores=True)
    pipeline.hgetall(keys.capacity_key(kind))
    time, clock, registered, caps = pipeline.execute()
    return live_workers(int(time[0]) * 1000 + int(time[1]) // 1000, clock, registered, caps)
