"""Measures what one scrape of the metrics costs Redis, with a thousand runs, a million items and every label.

A scrape sends commands only, so that their time, as the server's own INFO commandstats has it, is how long
others have to wait for it; CPU of the server includes its network, the whole scrape also the text. All are
compared with the commands of an exporter that reads every run's hash and nothing else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any, Final, NamedTuple

from prometheus_client import generate_latest

from producer.metrics.exporter import registry_of
from shared import keys
from shared.ledger import ChunkPlan
from shared.ledger.ledger import Ledger
from shared.observability.counters import LATENCY_BOUNDS_S, MOST_UPSTREAMS, CallCount
from tests.benchmarks.results import Figure, sized
from tests.support.redis_server import RedisServer

RUNS: Final = 1_000
ITEMS: Final = 1_000_000
CHUNK_ITEMS: Final = 250
SCRAPES: Final = 50
WORKERS: Final = 64
LEAST: Final = "commands that read each run's hash"
BOUND: Final = "one core of Redis"
REASONS: Final = 5


def measured(scale: float) -> Iterator[Figure]:
    """Measures scrapes of a server that is full, beside the least that shows the same runs."""
    runs, items = sized(RUNS, scale), sized(ITEMS, scale, least=1000)
    with filled_server(runs, items) as client:
        least, cost = read_runs_ms(client), costs_of(client)

    def figure(measure: str, value: float, unit: str) -> Figure:
        parameter = f"{runs:,} unfinished runs, {items:,} items, {MOST_UPSTREAMS} upstreams"
        return Figure(
            workload="scrape", parameter=parameter, measure=measure, value=value, unit=unit, bound=BOUND
        ).beside(LEAST, least)

    yield figure("commands", cost.middle, "ms")
    yield figure("CPU", cost.cpu, "ms")
    yield figure("whole", cost.whole, "ms")


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
    fields = [f"{CallCount.LATENCY}{place}" for place in range(len(LATENCY_BOUNDS_S) + 1)]
    for counter in CallCount:
        fields += [f"{counter}reason_{at}" for at in range(REASONS)] if counter.endswith(" ") else [counter]
    for name in names:
        client.hset(keys.CALL_COUNTERS_KEY, mapping={f"{name} {field}": 12_345 for field in fields})
        client.hset(keys.scope_key(name), mapping={"at": 1, "open": 0, "pause": 0, "n": 5})
        client.zadd(keys.SCOPES_KEY, {name: 1})
        client.zadd(keys.permits_key(name), {f"call {at}": 4e12 for at in range(20)})


class Cost(NamedTuple):
    """What one scrape costs, in ms."""

    middle: float
    """Time that the server spent in commands, in the middle scrape."""
    cpu: float
    """CPU time of the server with its network, on average."""
    whole: float
    """From asking to the text, on average."""


def read_runs_ms(client: Any) -> float:
    """Time that the server spends in reading all runs."""
    names = [keys.run_key(run.decode()) for run in client.zrange(keys.RUNS_KEY, 0, -1)]
    spent = []
    for _ in range(SCRAPES):
        client.config_resetstat()
        with client.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.hgetall(name)
            pipe.execute()
        spent.append(commands_ms(client))
    return median(spent)


def commands_ms(client: Any) -> float:
    """Time that the server has spent in commands since they were last counted from zero."""
    return float(sum(values["usec"] for values in client.info("commandstats").values()) / 1000)


def costs_of(client: Any) -> Cost:
    """Scrapes again and again."""
    registry = registry_of(client)
    generate_latest(registry)
    spent, took_s, before = list[float](), 0.0, cpu_s(client)
    for _ in range(SCRAPES):
        client.config_resetstat()
        began = perf_counter()
        generate_latest(registry)
        took_s += perf_counter() - began
        spent.append(commands_ms(client))
    cpu_ms = 1000 * (cpu_s(client) - before) / SCRAPES
    return Cost(median(spent), cpu_ms, 1000 * took_s / SCRAPES)


def cpu_s(client: Any) -> float:
    """CPU time that the server has used, in all its threads."""
    found = client.info("cpu")
    return float(found["used_cpu_user"] + found["used_cpu_sys"])
