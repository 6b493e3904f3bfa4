"""Describes a full server: its memory limit, and the runs that use most of it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from redis import exceptions

from shared import keys
from shared.errors import FULL_HINT, RedisFullError

MOST_RUNS: Final = 300
"""Runs that are measured, the newest ones: about 10 ms of the server's time."""
SHOWN: Final = 3
"""Runs that are named."""
SIZED: Final = (
    keys.items_key,
    keys.results_key,
    keys.plan_key,
    keys.mementos_key,
    keys.requests_key,
)
"""Keys that grow with a run; the last two hold its threads, where they are its own."""


class RunMemory(NamedTuple):
    """The memory of one run."""

    run: str
    """Its id."""
    state: str
    """Its state."""
    size_bytes: int
    """Memory of its keys, as estimated by the server."""


def largest_runs(client: Any) -> Sequence[RunMemory]:
    """Measures the newest runs and returns the largest of them, the largest first.

    Args:
        client: a client that answers in bytes.

    Returns:
        An empty list if access rules deny it.
    """
    names = [name.decode() for name in client.zrevrange(keys.RUNS_KEY, 0, MOST_RUNS - 1)]
    pipeline = client.pipeline(transaction=False)
    for name in names:
        pipeline.hget(keys.run_key(name), "state")
        for key in SIZED:
            pipeline.memory_usage(key(name))
    try:
        answers = pipeline.execute()
    except exceptions.NoPermissionError:
        return []
    width = 1 + len(SIZED)
    found = [
        RunMemory(
            name, (answers[at] or b"").decode(), sum(size or 0 for size in answers[at + 1 : at + width])
        )
        for name, at in zip(names, range(0, len(answers), width), strict=True)
    ]
    return sorted(found, key=lambda each: -each.size_bytes)[:SHOWN]


def format_run_memory(runs: Sequence[RunMemory]) -> str:
    """Formats the memory of runs; empty if there are none.

    >>> format_run_memory([RunMemory("r1", "running", 60_400_000), RunMemory("r2", "finished", 1_000_000)])
    'r1 (running) holds 60.4 MB, r2 (finished) 1.0 MB'
    """
    sizes = [f"{each.run} ({each.state}) {{}}{each.size_bytes / 1e6:,.1f} MB" for each in runs]
    return ", ".join(size.format("" if at else "holds ") for at, size in enumerate(sizes))


def full(client: Any) -> RedisFullError:
    """Describes how much memory a full server may use, and which runs use most of it; only reads."""
    memory: Mapping[str, Any] = {}
    held = ""
    with suppress(exceptions.RedisError):
        memory = client.info("memory")
        held = format_run_memory(largest_runs(client))
    return RedisFullError(f"{full_text(memory)}{held and '; '}{held}", hint=FULL_HINT)


def is_full(memory: Mapping[str, Any]) -> bool:
    """Returns whether a server has reached its memory limit, by its `INFO memory`.

    >>> is_full({"used_memory": 2_000_000, "maxmemory": 0})
    False
    """
    return 0 < int(memory.get("maxmemory", 0)) < int(memory.get("used_memory", 0))


def full_text(memory: Mapping[str, Any]) -> str:
    """Formats used memory and limit.

    >>> full_text({"used_memory": 105_000_000, "maxmemory": 104_857_600})
    'Redis is full: 105.0 MB are used, and maxmemory is 104.9 MB'
    """
    if "maxmemory" not in memory:
        return "Redis is full"
    used, most = (int(memory[name]) / 1e6 for name in ("used_memory", "maxmemory"))
    return f"Redis is full: {used:,.1f} MB are used, and maxmemory is {most:,.1f} MB"
