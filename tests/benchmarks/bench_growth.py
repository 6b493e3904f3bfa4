"""Measures whether time, memory and Redis grow evenly with a run: three sizes of each kind.

Each run is one `proctor run FILE -o FILE` in a data folder of its own, with an embedded server and two worker
processes. What one more item costs is the difference between neighbouring sizes, so that start-up is not in
it: where time is linear, the second difference is the first. Memory is that of single processes. The largest
run is then listed and reported in every format, each command by itself.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared.keys import RUNS_KEY
from shared.server.embedded import ensure
from tests.benchmarks.bench_kinds import kinds
from tests.benchmarks.bench_queries import api
from tests.benchmarks.bench_turns import count_lines
from tests.benchmarks.process_costs import Costs, proctor
from tests.benchmarks.results import Figure, sized
from tests.benchmarks.watching import ROLES, RoleUsage, Watch, proctor_data, role_of

LATENCY_S: Final = 0.02
IN_FLIGHT: Final = 100
SIZES: Final[Mapping[str, Sequence[int]]] = {
    "turns": (100_000, 330_000, 1_000_000),
    "cases, recorded": (10_000, 33_000, 100_000),
    "cases, model": (10_000, 33_000, 100_000),
    "queries": (10_000, 33_000, 100_000),
}
REPORTS: Final = ("md", "json", "jsonl", "csv", "html", "xml")
STEP_BEFORE: Final = "the step before"
SMALLEST: Final = "the smallest run"
THE_RUN: Final = "the run itself"

Command = Callable[[Path, int], Sequence[str | Path]]


@dataclass(frozen=True)
class Grown:
    """One run, from the command to its end."""

    items: int
    seconds: float
    roles: Mapping[str, RoleUsage]
    """CPU of all processes of a role, and the peak of its largest one."""
    redis_bytes: int
    """`used_memory_dataset` when the run is over and kept, less that of an empty server."""
    aof_bytes: int
    """Of the append-only file, which nothing has rewritten."""

    @property
    def cpu_s(self) -> float:
        """CPU of all roles."""
        return sum(role.cpu_s for role in self.roles.values())


@dataclass(frozen=True)
class Reading:
    """A run that is over, to be read."""

    folder: Path
    env: Mapping[str, str]
    client: Any  # redis-py's own annotations mix sync and async answers

    def all(self) -> Iterator[tuple[str, Costs]]:
        """Measures each command that shows or reports the run."""
        run = self.client.zrange(RUNS_KEY, -1, -1)[0].decode()
        commands = (["runs", "list"], ["status"], ["runs", "show", run, "--json"], ["results", run])
        more = (["results", run, "--failed"], ["results", run, "--format", "jsonl"])
        for arguments in (*commands, *more):
            yield " ".join(arguments).replace(run, "RUN"), self._cost(arguments)
        for suffix in REPORTS:
            target = self.folder / f"report.{suffix}"
            yield f"report RUN -o report.{suffix}", self._cost(["report", run, "-o", target])
            target.unlink()

    def _cost(self, arguments: Sequence[str | Path]) -> Costs:
        return proctor(arguments, self.folder / "data", env=self.env)


def measured(scale: float) -> Iterator[Figure]:
    """Measures all kinds."""
    with api(0, LATENCY_S) as url:
        for name, kind in kinds(url, f"{url}/v1", IN_FLIGHT).items():
            if name in SIZES:
                leasts = enumerate(SIZES[name])
                sizes = [sized(size, scale, least=100 * 3**at) for at, size in leasts]
                yield from measured_kind(name, kind.command, sizes)


def measured_kind(name: str, command: Command, sizes: Sequence[int]) -> Iterator[Figure]:
    """Measures three sizes of one kind."""
    runs, reads = list[Grown](), list[tuple[str, Costs]]()
    for items in sizes:
        with grown(command, items) as (run, reading):
            yield figure(name, f"{items:,}", "time", run.seconds, "s").at(name, items)
            runs.append(run)
            if items == sizes[-1]:
                reads = list(reading.all())
    yield from steps(name, runs)
    yield from held(name, runs[0], runs[-1])
    for words, costs in reads:
        read = figure(name, f"{sizes[-1]:,}: {words}", "time", costs.wall_s, "s")
        yield read.beside(THE_RUN, runs[-1].seconds)


def steps(name: str, runs: Sequence[Grown]) -> Iterator[Figure]:
    """What one more item costs, in both steps."""
    small, middle, large = (run.items for run in runs)
    for measure, used in (("time", [run.seconds for run in runs]), ("CPU", [run.cpu_s for run in runs])):
        first = 1e6 * (used[1] - used[0]) / (middle - small)
        second = 1e6 * (used[2] - used[1]) / (large - middle)
        yield figure(name, f"each from {small:,} to {middle:,}", measure, first, "µs")
        step = figure(name, f"each from {middle:,} to {large:,}", measure, second, "µs")
        yield step.beside(STEP_BEFORE, first)


def held(name: str, small: Grown, large: Grown) -> Iterator[Figure]:
    """Memory of processes, and bytes in Redis."""
    for role in ROLES[:2]:
        less, more = (run.roles[role].peak_rss / 1e6 for run in (small, large))
        peak = figure(name, f"{large.items:,}, {role}", "memory", more, "MB")
        yield peak.beside(SMALLEST, less)
    for place, less_bytes, more_bytes in (
        ("in Redis", small.redis_bytes, large.redis_bytes),
        ("in its append-only file", small.aof_bytes, large.aof_bytes),
    ):
        each = figure(name, f"each of {large.items:,}, {place}", "size", more_bytes / large.items, "B")
        yield each.beside(SMALLEST, less_bytes / small.items)


def figure(name: str, parameter: str, measure: str, value: float, unit: str) -> Figure:
    """One figure of this workload."""
    bound = "the server's memory and disk" if measure == "size" else "CPU"
    bound = "pages of rows, whatever the size of the run" if measure == "memory" else bound
    return Figure(
        workload="growth",
        parameter=f"{name}: {parameter}",
        measure=measure,
        value=value,
        unit=unit,
        bound=bound,
    )


@contextmanager
def grown(command: Command, items: int) -> Iterator[tuple[Grown, Reading]]:
    """Runs so many items; yields what that cost, and the run, whose server is still up."""
    with Watch(role_of) as watch, proctor_data() as (folder, settings):
        env = {**os.environ, **settings, "PROCTOR_CONFIRM_CALLS": str(10 * items)}
        run = ["run", "-q", *command(folder, items), "-o", folder / "out.jsonl"]
        data = folder / "data"
        with ensure(data, idle_s=1) as server:
            client: Any = server.client
            before = client.info("memory")["used_memory_dataset"]
            seconds = proctor(run, data, env=env).wall_s
            assert count_lines(folder / "out.jsonl") == items
            held_bytes = client.info("memory")["used_memory_dataset"] - before
            written = sum(path.stat().st_size for path in data.rglob("*.aof"))
            roles = watch.roles()
            found = Grown(items, seconds, {role: roles[role] for role in ROLES}, held_bytes, written)
            yield found, Reading(folder, env, client)
