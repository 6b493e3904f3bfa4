"""Measures what one scrape of the metrics costs Redis, with a thousand runs, a million items and every label.

Run as `python -m tests.benchmarks.bench_scrape`. A scrape sends commands only, so that their time, as the
server's own INFO commandstats has it, is how long others have to wait for it.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any, Final, NamedTuple

from prometheus_client import generate_latest

from producer.metrics.exporter import registry_of
from shared import keys
from shared.ledger import ChunkPlan
from shared.ledger.ledger import Ledger
from shared.observability.counters import LATENCY_BOUNDS_S, MOST_UPSTREAMS, Call
from tests.support.redis_server import RedisServer

RUNS: Final = 1_000
ITEMS: Final = 1_000_000
CHUNK_ITEMS: Final = 250
SCRAPES: Final = 50
WORKERS: Final = 64
GOAL_MS: Final = 5.0
REASONS: Final = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the cost of a scrape; the exit code says whether the goal was met."""
    options = argparse.ArgumentParser(prog="bench_scrape", description="Measure what a scrape costs Redis.")
    options.add_argument("--runs", type=int, default=RUNS, help="unfinished runs")
    options.add_argument("--items", type=int, default=ITEMS, help="items of all runs together")
    given = options.parse_args(arguments)
    with filled_server(given.runs, given.items) as client:
        cost = measured(client)
    print(f"a scrape with {given.runs:,} unfinished runs, {given.items:,} items, {MOST_UPSTREAMS} upstreams:")
    print(f"  commands of Redis {cost.middle:6.2f} ms, at best {cost.commands:.2f} ms (goal {GOAL_MS:g} ms)")
    print(f"  CPU of Redis      {cost.cpu:6.2f} ms with its network")
    print(f"  whole scrape      {cost.whole:6.2f} ms, {cost.size >> 10} kB")
    return int(cost.middle > GOAL_MS)


@contextmanager
def filled_server(runs: int, items: int) -> Iterator[Any]:
    """A server with runs in work; half of the window is leased, and every label is in use."""
    with RedisServer("--appendonly", "no") as server:
        client: Any = server.client()
        ledger = Ledger(client)
        for worker in range(WORKERS):
            ledger.tick(f"w{worker}", ["turns", "cases", "queries"], 4)
        client.hset(keys.CLOCK_KEY, "at", 1)  # so that the next tick is not too early
        for number in range(runs):
            submit(ledger, f"run-{number:05}", items // runs)
        wakes = ledger.tick("w0", ["cases"], 4)
        for wake in wakes[::2]:
            ledger.claim(wake.run, wake.chunk, f"token {wake.run} {wake.chunk}", "w0")
        fill_counters(client)
        yield client
        client.close()


def submit(ledger: Ledger, run: str, items: int) -> None:
    """Loads and seals a run of cases."""
    settings: dict[str, Any] = {"namespace": "", "key": "", "token": "load", "snapshot": b"{}", "ttl_s": 3600}
    ledger.open(run, kind="cases", **settings)
    names = [str(index) for index in range(items)]
    plan = {
        str(at): ChunkPlan(f"case {first}", names[first : first + CHUNK_ITEMS])
        for at, first in enumerate(range(0, items, CHUNK_ITEMS))
    }
    ledger.load(run, "load", dict.fromkeys(names, b"payload"), plan)
    ledger.seal(run, "load", items, "digest")


def fill_counters(client: Any) -> None:
    """Uses every label that counters of calls may have, and a scope for each upstream."""
    names = [f"provider/model-{number}" for number in range(MOST_UPSTREAMS)]
    fields = [f"{Call.LATENCY}{place}" for place in range(len(LATENCY_BOUNDS_S) + 1)]
    for counter in Call:
        fields += [f"{counter}reason_{at}" for at in range(REASONS)] if counter.endswith(" ") else [counter]
    for name in names:
        client.hset(keys.CALL_COUNTERS_KEY, mapping={f"{name} {field}": 12_345 for field in fields})
        client.hset(keys.scope_key(name), mapping={"at": 1, "open": 0, "pause": 0, "n": 5})
        client.zadd(keys.SCOPES_KEY, {name: 1})
        client.zadd(keys.permits_key(name), {f"call {at}": 4e12 for at in range(20)})


class Cost(NamedTuple):
    """What one scrape costs, in ms."""

    commands: float
    """Time that the server spent in commands, in the best scrape."""
    middle: float
    """The same in the middle one."""
    cpu: float
    """CPU time of the server with its network, on average."""
    whole: float
    """From asking to the text, on average."""
    size: int
    """Bytes of the text."""


def measured(client: Any) -> Cost:
    """Scrapes again and again."""
    registry = registry_of(client)
    text, spent, took_s, before = generate_latest(registry), list[float](), 0.0, cpu_s(client)
    for _ in range(SCRAPES):
        client.config_resetstat()
        began = perf_counter()
        text = generate_latest(registry)
        took_s += perf_counter() - began
        spent.append(sum(values["usec"] for values in client.info("commandstats").values()) / 1000)
    cpu_ms = 1000 * (cpu_s(client) - before) / SCRAPES
    return Cost(min(spent), median(spent), cpu_ms, 1000 * took_s / SCRAPES, len(text))


def cpu_s(client: Any) -> float:
    """CPU time that the server has used, in all its threads."""
    found = client.info("cpu")
    return float(found["used_cpu_user"] + found["used_cpu_sys"])


if __name__ == "__main__":
    sys.exit(main())
