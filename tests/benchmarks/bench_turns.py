"""Measures recorded turns, file to file, through the real command line.

Each run is one `proctor run FILE -o FILE` in a data folder of its own: embedded server, workers, all start-up
included; CPU is that of all processes. Rates are compared with the naive Celery application on two processes
that are up, CPU with a bare loop that decides and writes the same turns in one process.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

import msgspec

from tests.benchmarks import bare_loops
from tests.benchmarks.make_turns import write_turns
from tests.benchmarks.naive_celery import RESULTS
from tests.benchmarks.process_costs import Costs, measure, proctor
from tests.benchmarks.results import Figure, sized
from tests.support.eventually import eventually
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT

SIZES: Final = (10_000, 100_000, 1_000_000)
NAIVE_TURNS: Final = 10_000
PROCESSES: Final = 2
RUN_BUDGET_S: Final = 600.0
NAIVE: Final = "naive Celery application"
NAIVE_CALLER: Final = (sys.executable, "-m", "tests.benchmarks.naive_celery")
LOOP: Final = "bare loop"
CORES: Final = "CPU: producer, workers and server share the cores"
BOUNDS: Final = ("start-up, about a second", "start-up and CPU", CORES)


def measured(scale: float) -> Iterator[Figure]:
    """Measures both references, then each size, then what one more turn costs."""
    sizes = [sized(size, scale, least=100 * 3**at) for at, size in enumerate(SIZES)]
    with TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        naive = naive_rate(folder, sized(NAIVE_TURNS, scale))
        yield figure(NAIVE, "rate", naive, "turns/s", "one message and one write a turn")
        looped = loop_us(folder, sizes[1])
        yield figure(LOOP, "CPU", looped, "µs/turn", "JSON and the rules")
        runs = []
        for size, bound in zip(sizes, BOUNDS, strict=True):
            costs = run(folder, size)
            runs.append(costs)
            for each in figures(f"{size:,} turns", size, costs, bound, naive=naive, looped=looped):
                yield each.at("Proctor", size)
        more = [large - less for large, less in zip(used(runs[2]), used(runs[1]), strict=True)]
        step = Costs(0, more[0], runs[2].peak_mb, more[1])
        parameter = f"each turn between {sizes[1]:,} and {sizes[2]:,}"
        yield from figures(parameter, sizes[2] - sizes[1], step, CORES, naive=naive, looped=looped)


def used(costs: Costs) -> tuple[float, float]:
    """CPU and wall time of a run."""
    return costs.cpu_s, costs.wall_s


def figure(parameter: str, measure: str, value: float, unit: str, bound: str) -> Figure:
    """One figure of this workload."""
    return Figure(workload="turns", parameter=parameter, measure=measure, value=value, unit=unit, bound=bound)


def figures(
    parameter: str, count: int, costs: Costs, bound: str, *, naive: float, looped: float
) -> Iterator[Figure]:
    """What a run of so many turns amounts to, beside the references."""
    yield figure(parameter, "rate", count / costs.wall_s, "turns/s", bound).beside(NAIVE, naive)
    yield figure(parameter, "CPU", 1e6 * costs.cpu_s / count, "µs/turn", bound).beside(LOOP, looped)


def run(folder: Path, count: int) -> Costs:
    """One `proctor run`, file to file."""
    source, target = folder / "turns.jsonl", folder / "out.jsonl"
    write_turns(source, count)
    with TemporaryDirectory(dir=folder) as data:
        env = {"PROCTOR_PROCESSES": str(PROCESSES)}
        costs = proctor(["run", source, "-o", target, "--json"], Path(data), env=env)
    assert msgspec.json.decode(costs.output)["counts"]["decided"] == count
    assert count_lines(target) == count
    return costs


def loop_us(folder: Path, count: int) -> float:
    """CPU of a bare loop over a file, in microseconds a turn."""
    source, target = folder / "turns.jsonl", folder / "out.jsonl"
    write_turns(source, count)
    costs = measure([*bare_loops.COMMAND, "turns", source, target], bare_loops.ENV, folder)
    assert count_lines(target) == count, costs.errors
    return 1e6 * costs.cpu_s / count


def count_lines(path: Path) -> int:
    """Lines of a file, without holding it in memory."""
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


@contextmanager
def naive_application(processes: int) -> Iterator[tuple[Any, dict[str, str]]]:
    """Runs the naive application, and yields a client of its server and the environment of its callers."""
    with RedisServer() as server, closing(server.client()) as client:
        environment = {**os.environ, "NAIVE_SOCKET": str(server.socket), "PYTHONPATH": str(ROOT)}
        environment["PYTHONWARNINGS"] = "ignore"  # Celery's, about being root
        celery = [sys.executable, "-m", "celery", "-A", "tests.benchmarks.naive_celery", "-q", "worker"]
        celery += ["-P", "prefork", "-c", str(processes), "-l", "ERROR"]
        celery += ["--without-gossip", "--without-mingle"]
        workers = subprocess.Popen(celery, env=environment, stdout=subprocess.DEVNULL)
        try:
            yield client, environment
        finally:
            workers.terminate()
            workers.wait(30)


def naive_rate(folder: Path, count: int) -> float:
    """Turns a second of the naive application, with two prefork processes that are up."""
    source = folder / "turns.jsonl"
    write_turns(source, count)
    lines = source.read_bytes().splitlines(keepends=True)
    with naive_application(PROCESSES) as (client, environment):

        def decided(wanted: int) -> None:
            assert client.hlen(RESULTS) == wanted

        subprocess.run(NAIVE_CALLER, input=lines[0], env=environment, check=True)
        eventually(lambda: decided(1), within_s=60)  # both processes are up and imported
        client.delete(RESULTS)
        start = perf_counter()
        subprocess.run(NAIVE_CALLER, input=b"".join(lines), env=environment, check=True)
        eventually(lambda: decided(count), within_s=RUN_BUDGET_S)
        return count / (perf_counter() - start)
