"""Measures what one item costs on worker, producer and Redis, for each kind, and the rates of small fleets.

Costs are differences between two runs of different size on the same workers, so that start-up does not
count. They are CPU time (user and system; the servers' own by `INFO cpu`), which hardly changes when others
use the machine. Ledger and broker are two servers here, to separate their costs. Rates are of fleets that
mostly wait for an upstream, which others disturb little, in the middle of a run.

    python -m tests.benchmarks.bench_costs --write tests/benchmarks/measured_costs.json
"""

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, Final, NamedTuple

import psutil

from shared.clock import parse_iso_ms
from shared.runs import RunStore
from tests.benchmarks.bench_kinds import IN_FLIGHT, Kind, kinds
from tests.benchmarks.bench_queries import LATENCY_S, api, workers
from tests.support.cli import PROCTOR
from tests.support.eventually import eventually, pause
from tests.support.processes import kill_all, mark_this_session, marked_processes
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT

QUERY_S: Final = LATENCY_S
"""What the API takes for a query."""
MODEL_S: Final = 0.05
"""What the model takes for an answer."""
REPEATS: Final = 3
"""How often commands and rates are measured; the best counts, since others only make it worse."""
IDLE_S: Final = 10.0
IDLE_PROCESSES: Final = (1, 4)
RUN_BUDGET_S: Final = 300.0
COMMAND: Final = "python -m tests.benchmarks.bench_costs --write tests/benchmarks/measured_costs.json"


class Spent(NamedTuple):
    """What a run has cost, or one item of it; CPU in seconds, of an item in microseconds."""

    worker: float
    """CPU of the worker processes."""
    read: float
    """CPU of `proctor results`."""
    ledger: float
    """CPU of the ledger's server."""
    broker: float
    """CPU of the queue's server."""
    redis_bytes: float
    """In the server's memory, when the run is over and kept."""
    disk_bytes: float
    """Appended to the append-only file."""
    per_second: float
    """Items, in the middle of the run."""

    def per_item(self, small: "Spent", items: int) -> dict[str, float]:
        """What each of the items costs that a larger run has more, with CPU in microseconds.

        >>> Spent(3, 1, 1, 1, 900, 90, 9).per_item(Spent(1, 0, 0, 0, 100, 10, 5), 1_000_000)["worker_us"]
        2.0
        """
        more = [(large - less) / items for large, less in zip(self, small, strict=True)]
        cpu = {f"{name}_us": round(1e6 * each, 1) for name, each in zip(self._fields[:4], more, strict=False)}
        return {**cpu, "redis_bytes": round(more[4]), "disk_bytes": round(more[5])}


class Small(NamedTuple):
    """A small fleet whose rate is measured."""

    kind: str
    processes: int
    in_flight: int
    """Of each process."""


SMALL: Final = (
    Small("queries", 1, 25),
    Small("queries", 1, 50),
    Small("queries", 2, 50),
    Small("queries", 4, 50),
    Small("queries", 1, 200),
    Small("cases, model", 1, 20),
    Small("cases, model", 2, 10),
)
SMALL_S: Final = 8
"""How long the run of each lasts at the ideal rate."""
MIDDLE: Final = (0.1, 0.9)
"""Results from which to which a rate is taken: not while a run begins, and not while it runs dry."""


class Bench:
    """Runs on a ledger, a broker and workers.

    Args:
        ledger: the ledger's server.
        broker: the queue's server, so that the cost of each is known.
        family: the worker processes.
    """

    def __init__(
        self, ledger: RedisServer, broker: RedisServer, family: Sequence[psutil.Process] = ()
    ) -> None:
        self._ledger, self._broker, self._family = ledger, broker, family
        urls = {"PROCTOR_REDIS_URL": ledger.url, "PROCTOR_BROKER_URL": broker.url}
        self._env = {**os.environ, **urls, "PYTHONPATH": str(ROOT)}
        self._client: Any = ledger.client()  # redis-py's own annotations mix sync and async answers
        self._broker_client: Any = broker.client()

    def spend(self, kind: Kind, count: int) -> Spent:
        """Runs so many items from submit to results."""
        store = RunStore(self._client)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            command = kind.command(Path(folder), count)
            self._client.flushall()
            before = self._used()
            run, _ = self._proctor("submit", *command)

            def is_over() -> None:
                info = store.info(run)
                assert (info.state, info.done) == ("finished", count), info

            eventually(is_over, RUN_BUDGET_S)
            used = [now - then for now, then in zip(self._used(), before, strict=True)]
            reads = [self._proctor("results", run, "--format", "jsonl") for _ in range(REPEATS)]
        rows = reads[0][0].splitlines()
        assert len(rows) == count
        worker, ledger, broker, held, written = used
        read = min(read_s for _, read_s in reads)
        return Spent(worker, read, ledger, broker, held, written, middle_rate(rows))

    def submit_us(self, kind: Kind) -> float:
        """Measures what submitting an item costs, on a server without workers; CPU in microseconds."""
        least = []
        for count in (kind.sizes[0], kind.loads):
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                command = kind.command(Path(folder), count)
                self._client.flushall()
                least.append(min(self._proctor("submit", *command)[1] for _ in range(REPEATS)))
        return round(1e6 * (least[1] - least[0]) / (kind.loads - kind.sizes[0]), 1)

    def cost(self, kind: Kind) -> dict[str, float]:
        """Measures what an item costs."""
        self.spend(kind, kind.sizes[0])  # the first run of a process imports what it needs
        small, large = (self.spend(kind, size) for size in kind.sizes)
        return large.per_item(small, kind.sizes[1] - kind.sizes[0])

    def rate(self, kind: Kind, ideal: float) -> float:
        """Measures items a second."""
        self.spend(kind, round(ideal))  # the first run of a process imports what it needs
        return max(self.spend(kind, round(ideal * SMALL_S)).per_second for _ in range(REPEATS))

    def idle(self) -> list[float]:
        """Measures a while without work: CPU of workers, ledger and broker, in seconds a second."""
        before = self._used()
        pause(IDLE_S)
        return [(now - then) / IDLE_S for now, then in zip(self._used()[:3], before, strict=False)]

    def _used(self) -> list[float]:
        """CPU of workers, ledger and broker so far, memory of the ledger and length of its file."""
        worker = sum(_cpu_s(process) for process in self._family)
        memory = self._client.info("memory")["used_memory_dataset"]
        written = sum(path.stat().st_size for path in self._ledger.folder.rglob("*.aof"))
        return [worker, _server_s(self._client), _server_s(self._broker_client), memory, written]

    def _proctor(self, *command: str | Path) -> tuple[str, float]:
        """Runs a command; returns what it printed and its CPU time."""
        arguments = [*PROCTOR, *map(str, command), "--no-progress"]
        with Popen(arguments, env=self._env, stdout=PIPE, stderr=DEVNULL, text=True) as process:
            assert process.stdout is not None
            printed = process.stdout.read().strip()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}\n{printed}")
        return printed, usage.ru_utime + usage.ru_stime


def middle_rate(rows: Sequence[str]) -> float:
    """Reads from results how many ended a second, in the middle of their run.

    >>> middle_rate([f'{{"finished_at": "2026-01-01T00:00:{n:02}.000Z"}}' for n in range(60)])
    1.0
    """
    ended_ms = sorted(parse_iso_ms(json.loads(row)["finished_at"]) for row in rows)
    first, last = (round(share * (len(ended_ms) - 1)) for share in MIDDLE)
    return 1000 * (last - first) / max(1, ended_ms[last] - ended_ms[first])


def _server_s(client: Any) -> float:
    """CPU time of a server so far."""
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user"] + cpu["used_cpu_sys"])


def _cpu_s(process: psutil.Process) -> float:
    """CPU time of a process and of those of its children that have ended."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


@contextmanager
def fleet(processes: int, in_flight: int = IN_FLIGHT) -> Iterator[Bench]:
    """Two servers and worker processes for all kinds, which are up; no processes: servers only."""
    with (
        RedisServer("--auto-aof-rewrite-percentage", "0") as ledger,
        RedisServer() as broker,
        ExitStack() as stack,
    ):
        family = []
        if processes:
            started = workers(
                ledger.url, processes, in_flight, kinds="turns,cases,queries", broker_url=broker.url
            )
            family = stack.enter_context(started)
        yield Bench(ledger, broker, family)


def costs(api_url: str, api_base: str) -> dict[str, dict[str, float]]:
    """Measures and prints what an item of each kind costs."""
    found = {}
    columns = ("worker_us", "submit_us", "read_us", "ledger_us", "broker_us", "redis_bytes", "disk_bytes")
    print(f"{'an item costs':18}" + "".join(f"{name:>12}" for name in columns))
    with fleet(0) as servers, fleet(1) as running:
        for name, kind in kinds(api_url, api_base).items():
            found[name] = {"submit_us": servers.submit_us(kind), **running.cost(kind)}
            print(f"{name:18}" + "".join(f"{found[name][each]:12,.1f}" for each in columns), flush=True)
    return found


def rates(api_url: str, api_base: str) -> list[dict[str, Any]]:
    """Measures and prints the rates of small fleets."""
    found = []
    for small in SMALL:
        latency_s = QUERY_S if small.kind == "queries" else MODEL_S
        together = small.processes * small.in_flight
        with fleet(small.processes, small.in_flight) as running:
            kind = kinds(api_url, api_base, together)[small.kind]
            rate = running.rate(kind, together / latency_s)
        found.append({**small._asdict(), "latency_s": latency_s, "per_second": round(rate, 1)})
        print(f"{small.kind:18}{small.processes:3} x {small.in_flight:<4}{rate:10,.1f} a second", flush=True)
    return found


def idle_cost() -> dict[str, float]:
    """Measures what one more process without work costs itself and Redis, in shares of a core."""
    found = []
    for number in IDLE_PROCESSES:
        with fleet(number) as running:
            pause(2.0)
            found.append(running.idle())
    more = IDLE_PROCESSES[1] - IDLE_PROCESSES[0]
    worker, ledger, broker = ((many - few) / more for few, many in zip(*found, strict=True))
    print(f"an idle process: {worker:.2%} of a core, ledger {ledger:.2%}, broker {broker:.2%}")
    return {"worker": round(worker, 5), "ledger": round(ledger, 5), "broker": round(broker, 5)}


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(prog="bench_costs", description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the figures as JSON")
    options = parser.parse_args()
    mark_this_session()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    with api(0) as api_url, api(0, MODEL_S) as model:
        api_base = f"{model}/v1"
        document = {
            "command": COMMAND,
            "machine": machine,
            "cores": os.cpu_count(),
            "items": costs(api_url, api_base),
            "rates": rates(api_url, api_base),
            "idle_process": idle_cost(),
        }
    if options.write:
        options.write.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    kill_all(marked_processes())


if __name__ == "__main__":
    main()
