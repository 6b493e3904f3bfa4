"""Measures queries per second against an API of 200 ms, by queries in flight and by worker processes.

Each run is one on workers that are up: from the moment its queries may be handed out until the last result is
in. The ideal is what so many in flight make of 200 ms, with nothing in between. In the last runs every tenth
request is refused with 429 and `Retry-After`, or what exceeds 30 a second. A query that is refused four times
ends in an error there, as the specification of queries wants it; in all other runs no query may fail.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import msgspec
import psutil

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.broker import Publisher, make_app
from shared.contracts.query_run import QueryRun
from shared.ledger.ledger import Ledger
from shared.runs import RunStore
from shared.server.client import RedisTarget
from tests.benchmarks import bare_loops, process_costs
from tests.benchmarks.results import TIMES, Figure
from tests.support.eventually import eventually
from tests.support.query_desk import numbered
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT

LATENCY_S: Final = 0.2
IN_FLIGHT: Final = (100, 250, 500, 1000)
PROCESSES: Final = (1, 2, 4)
PER_PROCESS: Final = 50
"""Queries in flight of each process, where processes are compared: far below what two cores can do."""
SECONDS: Final = 4.0
"""How long a run takes at the ideal rate."""
REFUSED_SECONDS: Final = 5
"""How many times as long the run with refusals takes: the waits of its last queries are to weigh little."""
HIDDEN_PER_S: Final = 30.0
"""What the API of the last run grants, to two processes that share the calls in flight."""
HIDDEN_SECONDS: Final = 10
"""How many times as long that run takes: the limit has to be found first."""
REFUSED: Final = 100
"""Queries in flight of the run with refusals."""
SMALL: Final = 0.5
"""Below this scale only the smallest fleets are measured."""
IDEAL: Final = "ideal rate"
LOOP: Final = "bare aiohttp loop"
WAITS: Final = f"calls of {1000 * LATENCY_S:.0f} ms; CPU"


@dataclass(frozen=True)
class Measured:
    """One run."""

    queries: int
    seconds: float
    ideal_s: float
    cpu_s: float
    refused: int
    errors: int
    """Queries that were refused four times."""


def measured(scale: float) -> Iterator[Figure]:
    """Measures runs by what is in flight, by processes, and with refusals."""
    seconds = max(0.6, SECONDS * scale)
    numbers = [number for number in IN_FLIGHT if scale >= SMALL or number == IN_FLIGHT[0]]
    with RedisServer() as server:
        for number in numbers:
            parameter = f"1 process, {number} in flight"
            run = measure(server, processes=1, in_flight=number, seconds=seconds)
            looped = loop_us(number, run.queries)
            yield figure(f"{LOOP}, {number} in flight", "CPU", looped, "CPU of one core")
            rate = figure(parameter, "rate", run.queries / run.seconds, WAITS)
            yield rate.beside(IDEAL, run.queries / run.ideal_s).at("one worker process", number)
            cpu = figure(parameter, "CPU", 1e6 * run.cpu_s / run.queries, "CPU of the worker")
            yield cpu.beside(LOOP, looped)
        yield from measured_processes(server, seconds, PROCESSES if scale >= SMALL else PROCESSES[:2])
        run = measure(server, processes=1, in_flight=REFUSED, seconds=REFUSED_SECONDS * seconds, every=10)
        parameter = f"10 % refused with 429 and Retry-After, {REFUSED} in flight"
        rate = figure(parameter, "rate", run.queries / run.seconds, "the second that a refused call waits")
        yield rate.beside(IDEAL, run.queries / run.ideal_s)
        yield failed(rate, run)
        yield from measured_hidden_limit(server, HIDDEN_SECONDS * seconds)


def measured_hidden_limit(server: RedisServer, seconds: float) -> Iterator[Figure]:
    """Measures two processes at an API with a limit that nobody has set in Proctor."""
    run = measure(server, processes=2, in_flight=REFUSED // 2, seconds=seconds, per_s=HIDDEN_PER_S)
    parameter = f"an unknown limit of {HIDDEN_PER_S:g} a second"
    rate = figure(parameter, "rate", run.queries / run.seconds, "the limit, once it is found")
    yield rate.beside("the limit", HIDDEN_PER_S)
    refused = msgspec.structs.replace(rate, measure="refused", value=run.refused, unit="calls")
    yield refused.beside("the queries", run.queries)
    yield failed(rate, run)


def failed(rate: Figure, run: Measured) -> Figure:
    """Queries of a run that were refused four times, beside all."""
    figure = msgspec.structs.replace(rate, measure="failed", value=run.errors, unit="queries")
    return figure.beside("the queries", run.queries)


def measured_processes(server: RedisServer, seconds: float, numbers: Sequence[int]) -> Iterator[Figure]:
    """Measures how near to linear more processes are."""
    alone = 0.0
    for number in numbers:
        run = measure(server, processes=number, in_flight=PER_PROCESS, seconds=seconds)
        per_second = run.queries / run.seconds
        rate = figure(f"{number} {TIMES} {PER_PROCESS} in flight", "rate", per_second, WAITS)
        if number == 1:
            alone = per_second
            yield rate.beside(IDEAL, run.queries / run.ideal_s)
        else:
            yield rate.beside("linear", number * alone)


def figure(parameter: str, measure: str, value: float, bound: str) -> Figure:
    """One figure of this workload."""
    unit = "queries/s" if measure == "rate" else "µs/query"
    return Figure(
        workload="queries", parameter=parameter, measure=measure, value=value, unit=unit, bound=bound
    )


def loop_us(in_flight: int, count: int) -> float:
    """CPU of a bare loop over the same API, in microseconds a query, once it has started."""
    with api(0) as url, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [*bare_loops.COMMAND, "aiohttp", f"{url}/chat", str(in_flight), str(count)]
        costs = process_costs.measure(command, bare_loops.ENV, Path(folder))
    assert not costs.exit_code, costs.errors
    return 1e6 * float(costs.output) / count


@contextmanager
def api(every: int, latency_s: float = LATENCY_S, *, per_s: float = 0.0) -> Iterator[str]:
    """The slow API in a process of its own; refuses one request in `every`, or beyond `per_s`; 0: none."""
    command = [sys.executable, "-m", "tests.benchmarks.slow_api", str(latency_s), str(every), str(per_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


@contextmanager
def workers(
    url: str, processes: int, in_flight: int, *, kinds: str = "queries", broker_url: str = ""
) -> Iterator[list[psutil.Process]]:
    """Worker processes that are up; without a broker of its own, the queue is on the ledger's server."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        log = Path(folder) / "log"
        env = {**os.environ, "PROCTOR_REDIS_URL": url, "PROCTOR_DATA_DIR": folder, "PYTHONPATH": str(ROOT)}
        env |= {"PROCTOR_BROKER_URL": broker_url} if broker_url else {}
        command = [sys.executable, "-m", "worker", "--supervise", "-Q", kinds]
        command += ["--processes", str(processes), "-j", str(in_flight)]
        with log.open("wb") as out, subprocess.Popen(command, env=env, stdout=out, stderr=out) as process:

            def are_ready() -> None:
                assert log.read_text(errors="replace").count("ready ") >= processes

            try:
                eventually(are_ready, within_s=60)
                yield psutil.Process(process.pid).children(recursive=True)
            finally:
                process.terminate()
                process.wait(40)


def measure(
    server: RedisServer,
    *,
    processes: int,
    in_flight: int,
    seconds: float,
    every: int = 0,
    per_s: float = 0.0,
) -> Measured:
    """Measures one run.

    Args:
        server: an empty Redis.
        processes: worker processes.
        in_flight: queries in flight of each.
        seconds: how long it is to take at the ideal rate.
        every: one request in so many is refused; 0: none.
        per_s: more than so many in a second are refused; 0: none.
    """
    together = processes * in_flight
    count = round((per_s or together / LATENCY_S) * seconds)
    with closing(server.client()) as client:
        client.flushall()
    with (
        closing(server.client()) as client,
        tempfile.NamedTemporaryFile("w", suffix=".json") as file,
        api(every, per_s=per_s) as api_url,
        workers(server.url, processes, in_flight) as family,
    ):
        json.dump(numbered(count), file)
        file.flush()
        ledger, store = Ledger(client), RunStore(client)
        publisher = Publisher(make_app(RedisTarget.parse(server.url)), patience_s=10.0)
        before = sum(_cpu_s(each) for each in family)
        options = SubmitOptions(queries=QueryRun(api_url=api_url, concurrency=together), await_disk=False)
        run = submit(ledger, publisher, Source(file.name), options=options).run
        done = eventually(lambda: _finished(store, run), within_s=20 * seconds + 60)
        cpu_s = sum(_cpu_s(each) for each in family) - before
        info = store.info(run)
        with urlopen(f"{api_url}/counts") as reply:  # noqa: S310 - the API that was started above
            refused = json.load(reply)["refused"]
    ideal_s = seconds if per_s else -(-count // together) * LATENCY_S
    errors = info.tally.get("error", 0)
    assert not errors or refused, info.tally
    return Measured(count, done, ideal_s, cpu_s, refused, errors)


def _finished(store: RunStore, run: str) -> float:
    info = store.info(run)
    assert info.state == "finished"
    assert info.done == info.total
    return (info.duration_ms or 0) / 1000


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
