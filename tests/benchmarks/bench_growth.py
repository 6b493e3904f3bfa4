"""Measures whether time, memory and Redis grow with a run as they should: three sizes of each kind.

    python -m tests.benchmarks.bench_growth --json growth.json
    python -m tests.benchmarks.bench_growth --kind queries --sizes 10000 33000 100000

Each row is one `proctor run FILE -o FILE` in a data folder of its own, with an embedded server and two
worker processes. What one more item costs is taken between neighbouring sizes, so that start-up is not in
it: where time is linear, the second difference costs what the first does. Peaks of memory are those of
single processes. The largest run is then listed and reported in every format, each command by itself.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from shared.keys import RUNS_KEY
from shared.server.embedded import ensure
from tests.benchmarks.bench_kinds import kinds
from tests.benchmarks.bench_queries import api
from tests.benchmarks.bench_turns import ROLES, count_lines, proctor_data, role_of
from tests.benchmarks.process_costs import Costs, measure
from tests.benchmarks.watching import RoleUsage, Watch
from tests.support.processes import mark_this_session

LATENCY_S: Final = 0.02
IN_FLIGHT: Final = 100
REPEATS: Final = 10
"""Of each case: a bench has 10,000 cases at most."""
SIZES: Final[Mapping[str, Sequence[int]]] = {
    "turns": (100_000, 330_000, 1_000_000),
    "cases, recorded": (10_000, 33_000, 100_000),
    "cases, model": (10_000, 33_000, 100_000),
    "queries": (10_000, 33_000, 100_000),
}
REPORTS: Final = ("md", "json", "jsonl", "csv", "html", "xml")
HEAD: Final = (
    f"{'':28}{'seconds':>9}{'CPU s':>8} |{'one more: µs':>13}{'CPU µs':>8}"
    + "".join(f"{role:>10}" for role in ROLES)
    + f" |{'producer MB':>12}{'worker MB':>10} |{'Redis B':>8}{'AOF B':>8} an item"
)


@dataclass(frozen=True)
class Grown:
    """One run, from the command to its end."""

    kind: str
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

    def row(self, smaller: "Grown | None") -> "Row":
        """The figures of the table; what one more item costs needs a smaller run of the kind."""
        row = Row(
            self.kind,
            self.items,
            round(self.seconds, 2),
            round(self.cpu_s, 2),
            {role: round(usage.peak_rss / 1e6, 1) for role, usage in self.roles.items()},
            round(self.redis_bytes / self.items),
            round(self.aof_bytes / self.items),
        )
        if smaller is not None:
            more = (self.items - smaller.items) / 1e6
            row.more_us = round((self.seconds - smaller.seconds) / more, 1)
            row.more_cpu_us = {
                role: round((usage.cpu_s - smaller.roles[role].cpu_s) / more, 1)
                for role, usage in self.roles.items()
            }
        return row


@dataclass
class Row:
    """One run as figures."""

    kind: str
    items: int
    seconds: float
    cpu_s: float
    peak_mb: dict[str, float]
    redis_bytes_an_item: int
    aof_bytes_an_item: int
    more_us: float | None = None
    """Wall time of one more item than the run before has."""
    more_cpu_us: dict[str, float] = field(default_factory=dict)
    """CPU time of the same, by role."""

    def line(self) -> str:
        """The row as text."""
        text = f"{f'{self.kind} {self.items:,}':28}{self.seconds:9.1f}{self.cpu_s:8.1f} |"
        more = [self.more_us, sum(self.more_cpu_us.values()), *(self.more_cpu_us.get(r) for r in ROLES)]
        widths = (13, 8, 10, 10, 10)
        figures = more if self.more_us is not None else [None] * len(more)
        text += "".join(
            f"{'-' if figure is None else format(figure, ',.1f'):>{width}}"
            for figure, width in zip(figures, widths, strict=True)
        )
        text += f" |{self.peak_mb['producer']:12.1f}{self.peak_mb['worker']:10.1f} |"
        return text + f"{self.redis_bytes_an_item:8,}{self.aof_bytes_an_item:8,}"


@dataclass(frozen=True)
class Read:
    """One command that reads a large run."""

    kind: str
    items: int
    command: str
    seconds: float
    cpu_s: float
    peak_mb: float
    wrote_mb: float = 0.0
    """Size of its report."""

    def line(self) -> str:
        """The row as text."""
        name = f"{self.kind} {self.items:,}: {self.command}"
        return f"{name:52}{self.seconds:9.2f}{self.cpu_s:8.2f}{self.peak_mb:10.1f}{self.wrote_mb:10.1f}"


READ_HEAD: Final = f"{'':52}{'seconds':>9}{'CPU s':>8}{'peak MB':>10}{'wrote MB':>10}"


def proctor(arguments: Sequence[str | Path], env: Mapping[str, str], folder: Path) -> Costs:
    """Runs one command and measures it with all that it starts.

    Raises:
        SystemExit: it ended with neither 0 nor 1.
    """
    costs = measure([sys.executable, "-P", "-m", "producer", *arguments], env, folder)
    if costs.exit_code not in {0, 1}:
        raise SystemExit(f"proctor {' '.join(map(str, arguments))}: exit {costs.exit_code}\n{costs.errors}")
    return costs


@dataclass(frozen=True)
class Reading:
    """A run that is over, to be read."""

    kind: str
    items: int
    folder: Path
    env: Mapping[str, str]
    client: Any

    def all(self) -> Iterator[Read]:
        """Measures each command that shows or reports the run."""
        run = self.client.zrange(RUNS_KEY, -1, -1)[0].decode()
        commands = (["runs", "list"], ["status"], ["runs", "show", run, "--json"], ["results", run])
        more = (["results", run, "--failed"], ["results", run, "--format", "jsonl"])
        for arguments in (*commands, *more):
            yield self._read(arguments)
        for suffix in REPORTS:
            target = self.folder / f"report.{suffix}"
            read = self._read(["report", run, "-o", target])
            yield replace(read, wrote_mb=round(target.stat().st_size / 1e6, 1))
            target.unlink()

    def _read(self, arguments: Sequence[str | Path]) -> Read:
        costs = proctor(arguments, self.env, self.folder)
        name = " ".join(Path(each).name for each in arguments)
        return Read(self.kind, self.items, name, costs.wall_s, costs.cpu_s, costs.peak_mb)


@contextmanager
def grown(
    name: str, command: Callable[[Path, int], Sequence[str | Path]], items: int
) -> Iterator[tuple[Grown, Reading]]:
    """Runs so many items; yields what that cost, and the run, whose server is still up."""
    with Watch(role_of) as watch, proctor_data() as (folder, settings):
        env = {**os.environ, **settings, "PROCTOR_CONFIRM_CALLS": str(10 * items)}
        repeats = REPEATS if name.startswith("cases") else 1
        run = ["run", "-q", *command(folder, items // repeats), "-o", folder / "out.jsonl"]
        run += ["--repeat", str(repeats)] if repeats > 1 else []
        data = Path(settings["PROCTOR_DATA_DIR"])
        with ensure(data, idle_s=1) as server:
            client: Any = server.client  # redis-py's own annotations mix sync and async answers
            before = client.info("memory")["used_memory_dataset"]
            seconds = proctor(run, env, folder).wall_s
            assert count_lines(folder / "out.jsonl") == items
            held = client.info("memory")["used_memory_dataset"] - before
            written = sum(path.stat().st_size for path in data.rglob("*.aof"))
            roles = watch.roles()
            found = Grown(name, items, seconds, {role: roles[role] for role in ROLES}, held, written)
            yield found, Reading(name, items, folder, env, client)


def measured(
    name: str, command: Callable[[Path, int], Sequence[str | Path]], sizes: Sequence[int], *, reads: bool
) -> tuple[list[Row], list[Read]]:
    """Measures and prints one kind."""
    rows, read = list[Row](), list[Read]()
    smaller = None
    for items in sizes:
        with grown(name, command, items) as (run, reading):
            rows.append(run.row(smaller))
            print(rows[-1].line(), flush=True)
            smaller = run
            if reads and items == sizes[-1]:
                read = list(reading.all())
    return rows, read


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(prog="bench_growth", description=__doc__.splitlines()[0])
    parser.add_argument("--kind", action="append", choices=SIZES, help="one of the kinds; may be repeated")
    parser.add_argument("--sizes", type=int, nargs="+", help="items of each run, instead of three sizes")
    parser.add_argument("--no-reports", action="store_true", help="do not list and report the largest run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file, too")
    asked = parser.parse_args()
    mark_this_session()
    rows, reads = list[Row](), list[Read]()
    print(HEAD)
    with api(0, LATENCY_S) as url:
        for name in asked.kind or SIZES:
            command = kinds(url, f"{url}/v1", IN_FLIGHT)[name].command
            grew, read = measured(name, command, asked.sizes or SIZES[name], reads=not asked.no_reports)
            rows += grew
            reads += read
    if reads:
        print(READ_HEAD, *(read.line() for read in reads), sep="\n")
    if asked.json:
        document = {"rows": [asdict(row) for row in rows], "reads": [asdict(read) for read in reads]}
        asked.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
