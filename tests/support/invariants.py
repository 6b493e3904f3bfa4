"""What must be true of Redis when all runs have ended, whatever went wrong before: nothing is left.

Every key is looked at. Those that may stay are listed here; whatever else is found is named.
"""

import json
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

from shared import keys
from shared.keys import PREFIX
from shared.names import FINAL_STATES, RunState

if TYPE_CHECKING:
    import redis

RESULTS: Final = r"run:[^:]+:(run|items|res|batches|threads|dead)"
"""A run's input and results, which expire with it."""
STATE: Final = r"ns:[^:]+:(at|mem|req)"
"""The state of threads, which expires with its namespace."""
LISTS: Final = r"clock|runs|runs:expiring|dead|dead:items|idem:.+|counters(:.+)?"
"""Lists of runs and of items that ended in error, the clock, and the counters of the metrics."""
PACE: Final = r"kind:[^:]+:(pace|workers|cap|layouts)"
"""The workers that are alive, and how fast they are."""
UPSTREAMS: Final = r"limit:.+|limits:used"
"""What the calls to an upstream have come to, kept for an hour; permits of calls in flight may not stay."""
CACHE: Final = r"cache:(hits|a:.+)"
"""Answers of models, which are kept on purpose; leaders of questions under way may not stay."""
CELERY: Final = r"_kombu\.binding.+|.+\.pidbox|unacked_mutex"
"""What Celery needs to talk with workers."""
PLUGINS: Final = r"worker:.+:plugins"
"""What a worker has; it expires a minute after its worker."""
MAY_STAY: Final = re.compile(
    rf"{PREFIX}({RESULTS}|{STATE}|{LISTS}|{PACE}|{UPSTREAMS}|{CACHE}|{CELERY}|{PLUGINS})"
)
UNACKED: Final = PREFIX + "unacked"
UNACKED_INDEX: Final = PREFIX + "unacked_index"
LONG_AGO: Final = 0.0


def nothing_is_left(client: "redis.Redis", *, fetched: bool = False) -> None:
    """Asserts that all runs are final and that no lease, lock, inbox, wake-up or list entry has stayed.

    Args:
        client: of the server.
        fetched: whether a process was killed, and may have left wake-ups that it had fetched, and permits of
            its calls. The broker keeps the first for an hour and delivers them again (`deliver_again` makes
            that hour pass); the second have to be over.
    """
    runs: Any = client.zrange(keys.RUNS_KEY, 0, -1)
    for name in runs:
        state: Any = client.hget(keys.run_key(name.decode()), "state")
        assert state is not None, f"{name!r} is listed and gone"
        assert RunState(state.decode()) in FINAL_STATES, f"{name!r} is {state!r}"
    allowed = {UNACKED, UNACKED_INDEX} if fetched else set()
    names = (key.decode() for key in client.scan_iter(f"{PREFIX}*", count=1000))
    left = sorted(name for name in names if not MAY_STAY.fullmatch(name) and name not in allowed)
    if fetched:
        left = [name for name in left if not _is_over(client, name)]
    assert not left, f"{len(left)} keys are left: {left[:20]}"
    if fetched:
        assert client.hlen(UNACKED) == client.zcard(UNACKED_INDEX)


def _is_over(client: "redis.Redis", name: str) -> bool:
    """Whether a key has permits of calls whose time is over; the next call through it removes them."""
    if not name.startswith(f"{PREFIX}permits:"):
        return False
    now: Any = client.hget(keys.CLOCK_KEY, "lc")
    return client.zcount(name, f"({int(now)}", "+inf") == 0


def fetched_wakes(client: "redis.Redis") -> list[tuple[str, str]]:
    """Lists run and chunk of the wake-ups that were fetched and never acknowledged."""
    found = []
    for value in client.hvals(UNACKED):
        message, _exchange, _queue = json.loads(value)
        _args, arguments, _options = json.loads(b64decode(message["body"]))
        found.append((arguments["run"], arguments["chunk"]))
    return found


def deliver_again(client: "redis.Redis") -> None:
    """Makes all fetched wake-ups an hour old, so that the next worker that starts gets them again."""
    tags: Any = client.zrange(UNACKED_INDEX, 0, -1)
    if tags:
        client.zadd(UNACKED_INDEX, dict.fromkeys(tags, LONG_AGO), xx=True)


def let_ledger_time_pass(client: "redis.Redis", seconds: float) -> None:
    """Moves the ledger's clock: what would run out in this time runs out at the next tick."""
    client.hincrby(keys.CLOCK_KEY, "lc", int(seconds * 1000))
