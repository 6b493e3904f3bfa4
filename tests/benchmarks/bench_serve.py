"""Measures `proctor serve` on two cores with one worker process: latencies, single requests and batches.

Load comes from a process of raw sockets (`http_load.py`). The reference is a Celery task a turn whose caller
waits for its result backend, on one process too: it keeps no order and no state of threads, and a message
that comes twice counts twice.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec
import psutil

from tests.benchmarks.bench_turns import NAIVE, NAIVE_CALLER, naive_application
from tests.benchmarks.http_load import Load
from tests.benchmarks.make_turns import write_turns
from tests.benchmarks.results import Figure, sized
from tests.support.tree import ROOT

RATE: Final = 1_000
SECONDS: Final = 10.0
WARM_S: Final = 2.0
SINGLE_CONNECTIONS: Final = 64
BATCH_TURNS: Final = 500
BATCH_CONNECTIONS: Final = 4
NAIVE_TURNS: Final = 4_000
CORES: Final = "CPU: load, service, worker and Redis share the cores"


class Asked(NamedTuple):
    """A form of load."""

    parameter: str
    options: Sequence[str]
    """Of `http_load.py`."""


LOADS: Final = (
    Asked(f"single turns, {RATE:,} a second", ("--connections", "100", "--rate", str(RATE))),
    Asked(f"single turns, {SINGLE_CONNECTIONS} callers", ("--connections", str(SINGLE_CONNECTIONS))),
    Asked(
        f"batches of {BATCH_TURNS}, {BATCH_CONNECTIONS} callers",
        ("--connections", str(BATCH_CONNECTIONS), "--turns", str(BATCH_TURNS)),
    ),
)


class NaiveTimes(msgspec.Struct, frozen=True):
    """What callers of the naive application saw."""

    rate: float
    p50_ms: float
    p99_ms: float


def measured(scale: float) -> Iterator[Figure]:
    """Measures the reference, then the service under each load."""
    with TemporaryDirectory(prefix="bench-") as name:
        naive = naive_times(Path(name), sized(NAIVE_TURNS, scale, least=200))
        parameter = f"single turns, {SINGLE_CONNECTIONS} under way"
        yield from figures(
            parameter, naive.rate, naive.p50_ms, naive.p99_ms, "one message and one result a turn"
        )
        with serving(Path(name)) as service:
            service.load(("--connections", "20"), WARM_S)
            for asked in LOADS:
                load, cpu_s = service.load(asked.options, max(1.0, SECONDS * scale))
                rate = load.turns / load.wall_s
                for each in figures(asked.parameter, rate, load.p50_ms, load.p99_ms, CORES):
                    yield each.beside(NAIVE, getattr(naive, FIELDS[each.measure]))
                for measure, used_s, whose in (
                    ("CPU", cpu_s, "all but the load's own"),
                    ("CPU of the load", load.cpu_s, "the same cores"),
                ):
                    yield figure(asked.parameter, measure, 1e6 * used_s / load.turns, "µs/turn", whose)


FIELDS: Final = {"rate": "rate", "p50": "p50_ms", "p99": "p99_ms"}


def figures(parameter: str, rate: float, p50_ms: float, p99_ms: float, bound: str) -> Iterator[Figure]:
    """What a form of load amounts to."""
    yield figure(parameter, "rate", rate, "turns/s", bound)
    yield figure(parameter, "p50", p50_ms, "ms", bound)
    yield figure(parameter, "p99", p99_ms, "ms", bound)


def figure(parameter: str, measure: str, value: float, unit: str, bound: str) -> Figure:
    """One figure of this workload."""
    return Figure(workload="serve", parameter=parameter, measure=measure, value=value, unit=unit, bound=bound)


def naive_times(folder: Path, count: int) -> NaiveTimes:
    """What callers of the naive application see, on one process."""
    source = folder / "turns.jsonl"
    write_turns(source, count)
    lines = source.read_bytes()
    with naive_application(processes=1) as (_, env):
        first = lines[: lines.index(b"\n") + 1]
        subprocess.run([*NAIVE_CALLER, "1"], input=first, env=env, check=True, capture_output=True)
        together = str(SINGLE_CONNECTIONS)
        done = subprocess.run(
            [*NAIVE_CALLER, together], input=lines, env=env, check=True, capture_output=True
        )
        return msgspec.json.decode(done.stdout, type=NaiveTimes)


class Service(NamedTuple):
    """A running `proctor serve` with a worker and a Redis of its own."""

    process: "subprocess.Popen[bytes]"
    url: str
    token: str
    data: Path

    def load(self, options: Sequence[str], seconds: float) -> tuple[Load, float]:
        """Sends turns; returns what became of them, and the CPU of all processes of the service."""
        command = [sys.executable, "-m", "tests.benchmarks.http_load", self.url, self.token]
        began_s = self.cpu_s()
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*command, "--seconds", str(seconds), *options], env=env, stdout=subprocess.PIPE, check=True
        )
        return msgspec.json.decode(done.stdout, type=Load), self.cpu_s() - began_s

    def cpu_s(self) -> float:
        """User and system time of the service, its workers and its Redis."""
        family = psutil.Process(self.process.pid)
        redis = [each for each in psutil.process_iter() if _is_of(each, self.data)]
        times = [each.cpu_times() for each in {family, *family.children(recursive=True), *redis}]
        return sum(each.user + each.system for each in times)


def _is_of(process: psutil.Process, data: Path) -> bool:
    """Whether a process has a data folder in its command line."""
    try:
        return str(data) in " ".join(process.cmdline())
    except psutil.Error:
        return False


@contextmanager
def serving(folder: Path) -> Iterator[Service]:
    """Runs `proctor serve` with one worker process."""
    data = folder / "data"
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PROCTOR_DATA_DIR": str(data),
        "XDG_RUNTIME_DIR": str(folder),
    }
    command = [sys.executable, "-P", "-m", "producer", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        first: Any = json.loads(process.stdout.readline())
        yield Service(process, first["url"], first["token"], data)
    finally:
        process.terminate()
        process.wait(30)
