"""Measures queries per second against an API of 200 ms, by queries in flight and by worker processes.

Each row is one run on workers that are up: from the moment its queries may be handed out until the last
result is in. The ideal is what so many in flight make of 200 ms, with nothing in between. In the last rows
every tenth request is refused with 429 and `Retry-After`, or what exceeds 30 a second; none is lost.
"""

import argparse
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

import psutil

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.broker import Publisher, make_app
from shared.contracts.query_run import QueryRun
from shared.ledger.ledger import Ledger
from shared.runs import RunStore
from shared.server.client import RedisTarget
from tests.support.eventually import eventually
from tests.support.processes import kill_all, mark_this_session, marked_processes
from tests.support.query_desk import numbered
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT

LATENCY_S: Final = 0.2
IN_FLIGHT: Final = (100, 250, 500, 1000)
PROCESSES: Final = (1, 2, 4)
PER_PROCESS: Final = 50
"""Queries in flight of each process, where processes are compared: far below what two cores can do."""
SECONDS: Final = 4.0
"""How long a row takes at the ideal rate."""
HIDDEN_PER_S: Final = 30.0
"""What the API of the last row grants, with two processes that share the calls in flight."""
HIDDEN_SECONDS: Final = 10
"""How many times as long that row takes: the limit has to be found first."""
GOAL_PCT: Final = 95
"""Of linear, for each number of processes."""
REFERENCE: Final = 4_135
"""Requests a second that one process made when the design was chosen: bare chunks, no ledger, no checks."""


@dataclass(frozen=True)
class Measured:
    """One row."""

    name: str
    queries: int
    seconds: float
    ideal_s: float
    cpu_s: float
    errors: int
    retried: int
    refused: int = 0

    def line(self) -> str:
        """The row as text."""
        share = 100 * self.ideal_s / self.seconds
        cpu_us = 1e6 * self.cpu_s / self.queries
        return (
            f"{self.name:34}{self.queries / self.seconds:9,.0f}{self.queries / self.ideal_s:9,.0f}"
            f"{share:8.1f} %{cpu_us:12.0f}{self.errors:8}{self.retried:9}{self.refused:9}"
        )


HEAD: Final = (
    f"{'':34}{'queries/s':>9}{'ideal':>9}{'share':>10}{'CPU µs/query':>12}"
    f"{'errors':>8}{'retried':>9}{'refused':>9}"
)


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
    name: str,
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
        name: of the row.
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
    tally = info.tally
    return Measured(
        name, count, done, ideal_s, cpu_s, tally.get("error", 0), tally.get("retried", 0), refused
    )


def linear(processes: Sequence[int], rates: Sequence[float]) -> str:
    """Says how near to linear the rates of more processes are.

    Args:
        processes: numbers of worker processes.
        rates: queries a second and process.

    >>> linear([1, 2, 4], [250.0, 245.0, 240.0])
    'linear, against 1 process: 98.0 % with 2, 96.0 % with 4 (goal: 95 %)'
    """
    shares = ", ".join(
        f"{100 * rate / rates[0]:.1f} % with {number}"
        for number, rate in zip(processes[1:], rates[1:], strict=True)
    )
    return f"linear, against {processes[0]} process: {shares} (goal: {GOAL_PCT} %)"


def _finished(store: RunStore, run: str) -> float:
    info = store.info(run)
    assert info.state == "finished"
    assert info.done == info.total
    return (info.duration_ms or 0) / 1000


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(prog="bench_queries", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each row at the ideal rate")
    parser.add_argument("--in-flight", type=int, nargs="*", default=IN_FLIGHT)
    parser.add_argument("--processes", type=int, nargs="*", default=PROCESSES)
    parser.add_argument("--refused", type=int, default=100, help="in flight of the row with refusals")
    options = parser.parse_args()
    mark_this_session()
    print(HEAD)
    with RedisServer() as server:
        seconds = options.seconds
        for number in options.in_flight:
            row = measure(
                server, f"1 process, {number} in flight", processes=1, in_flight=number, seconds=seconds
            )
            print(row.line(), flush=True)
        rates = []
        for number in options.processes:
            name = f"{number} processes, {PER_PROCESS} in flight each"
            row = measure(server, name, processes=number, in_flight=PER_PROCESS, seconds=seconds)
            rates.append(row.queries / row.seconds / number)
            print(row.line(), flush=True)
        if len(rates) > 1:
            print(linear(options.processes, rates))
        row = measure(
            server, "10 % refused with 429", processes=1, in_flight=options.refused, seconds=seconds, every=10
        )
        print(row.line())
        row = measure(
            server,
            f"hidden limit of {HIDDEN_PER_S:g}/s",
            processes=2,
            in_flight=options.refused // 2,
            seconds=HIDDEN_SECONDS * seconds,
            per_s=HIDDEN_PER_S,
        )
        print(row.line())
    print(f"reference: {REFERENCE:,} requests/s of one process without ledger and checks")
    kill_all(marked_processes())


if __name__ == "__main__":
    main()
