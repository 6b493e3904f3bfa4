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
    full: str = ""
    """That Redis is full, with figures; empty when it is not."""


_HELD: Final[Mapping[str, str]] = {
    RunState.LOADING: "its items are still being written",
    RunState.PAUSED: "it is paused; `proctor resume {run}` continues it",
    RunState.CANCELLING: "it is being cancelled",
}


def live_workers(now_ms: int, clock: Sequence[Any], registered: Sequence[Any], caps: Any) -> list[Worker]:
    """Picks the workers whose registration has not run out on the ledger clock.

    Args:
        now_ms: Redis' time.
        clock: `at`, `lc` and `lease` of the clock's hash.
        registered: pairs of name and expiry.
        caps: capacity by name.
    """
    at, ledger_ms, lease_ms = (int(value or 0) for value in clock)
    times = Times.of(lease_ms / 1000) if lease_ms else TIMES
    passed = max(0, now_ms - at)
    if passed > SILENT_MS:
        return []
    ledger_now = ledger_ms + min(passed, times.skew_ms)
    return [
        Worker(name.decode(), int(caps.get(name, 0)), max(0.0, ledger_now + times.lease_ms - until) / 1000)
        for name, until in registered
        if until > ledger_now
    ]


def reason(run: str, scene: Scene, *, held: str = "", note: str = "") -> str:
    """Says in one sentence why a run does not move; empty when nothing holds it.

    Args:
        run: its id.
        scene: what the ledger says.
        held: what holds its calls back, see `holding`.
        note: what its parked items wait for.

    >>> reason("r", Scene("running", 0, 2, 5, 0, 0))
    'no worker is alive; start one with `proctor worker`'
    >>> reason("r", Scene("running", 1, 2, 5, 0, 0), held="max cost $1 reached")
    'max cost $1 reached'
    """
    if scene.state != RunState.RUNNING:
        is_cut = scene.state == RunState.INCOMPLETE
        return held if is_cut else _HELD.get(scene.state, "").format(run=run)
    if scene.full:
        return f"{scene.full}; `proctor doctor` says what helps"
    if not scene.workers:
        return "no worker is alive; start one with `proctor worker`"
    if held or scene.chunks:
        return held
    if scene.due_ms:
        return f"its next chunk is parked until {iso_utc(scene.due_ms)}{note and ': '}{note}"
    is_behind = scene.waiting and scene.others
    return (
        f"it waits for its turn behind {scene.others} other run{'s' * (scene.others > 1)}"
        if is_behind
        else ""
    )


def look(client: Any, run: str, kind: str, state: str) -> Scene:
    """Reads what decides whether a run moves, in two round trips at most."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(keys.CLOCK_KEY, ["at", "lc", "lease"])
    pipeline.zrange(keys.workers_key(kind), 0, -1, withscores=True)
    pipeline.hgetall(keys.capacity_key(kind))
    pipeline.zcard(keys.wait_key(run))
    pipeline.scard(keys.admitted_key(run))
    pipeline.zcard(keys.ring_key(kind))
    pipeline.zrange(keys.parked_key(kind), 0, PARKED_READ - 1, withscores=True)
    pipeline.info("memory")
    time, clock, registered, caps, waiting, admitted, ring, parked, memory = pipeline.execute()
    now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
    mine = [due for member, due in parked if member.split(b" ")[0] == run.encode()]
    return Scene(
        state=state,
        workers=len(live_workers(now_ms, clock, registered, caps)),
        chunks=max(0, int(admitted) - len(mine)),
        waiting=int(waiting),
        due_ms=int(min(mine, default=0)),
        others=max(0, int(ring) - 1),
        full=full_text(memory) if is_full(memory) else "",
    )


def workers(client: Any, kind: str) -> list[Worker]:
    """Reads the live workers of a kind."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(keys.CLOCK_KEY, ["at", "lc", "lease"])
    pipeline.zrange(keys.workers_key(kind), 0, -1, withscores=True)
    pipeline.hgetall(keys.capacity_key(kind))
    time, clock, registered, caps = pipeline.execute()
    return live_workers(int(time[0]) * 1000 + int(time[1]) // 1000, clock, registered, caps)
