"""Measures turns per second, file to file, through the real command line: `make bench`.

Each row is one `proctor run FILE -o FILE` in a data folder of its own: embedded server, two worker processes,
all start-up included. The last row is the naive Celery application on the same machine in the same minute.
What a bare mailbox in Redis costs, without ledger, leases and ordered results, was measured when the protocol
was designed: 8.1 µs of CPU a turn over all processes. The sum is to be compared with it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from tests.benchmarks.make_turns import made_turns, repeated
from tests.benchmarks.watching import RoleUsage, Watch
from tests.support.eventually import eventually
from tests.support.processes import marked_processes
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT

SIZES: Final = (10_000, 100_000, 1_000_000)
NAIVE_TURNS: Final = 10_000
PROCESSES: Final = 2
ROLES: Final = ("producer", "worker", "redis")
BARE_MAILBOX_US: Final = 8.1
RUN_BUDGET_S: Final = 600.0
SERVERS: Final = ("valkey-server", "redis-server")


@dataclass(frozen=True)
class Measured:
    """One row of the table."""

    name: str
    turns: int
    seconds: float
    roles: Mapping[str, RoleUsage]

    @property
    def per_second(self) -> float:
        """Turns per second, all start-up included."""
        return self.turns / self.seconds

    def cpu_us(self, role: str) -> float:
        """CPU of one role, microseconds a turn."""
        return self.roles.get(role, RoleUsage()).cpu_s / self.turns * 1e6

    def peak_mb(self, role: str) -> float:
        """Largest resident memory of a process of one role."""
        return self.roles.get(role, RoleUsage()).peak_rss / 1e6


def role_of(command: Sequence[str]) -> str | None:
    """The role of a process, by its command line.

    >>> role_of(["python", "-P", "-m", "worker", "--supervise"]), role_of(["/bin/valkey-server *:0"])
    ('worker', 'redis')
    """
    if command and Path(command[0].split(" ")[0]).name in SERVERS:
        return "redis"
    words = set(command)
    if {"worker", "celery"} & words:
        return "worker"
    return "producer" if "producer" in words else None


@contextmanager
def proctor_data() -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder for one run and the environment that keeps everything in it; ends when all servers have."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        settings = {"PROCTOR_DATA_DIR": str(folder / "data"), "PROCTOR_EMBEDDED_IDLE_S": "1"}
        settings |= {"PROCTOR_PROCESSES": str(PROCESSES), "XDG_RUNTIME_DIR": name, "PYTHONPATH": str(ROOT)}
        yield folder, settings

        def all_gone() -> None:
            assert not marked_processes()

        eventually(all_gone, within_s=30)


def count_lines(path: Path) -> int:
    """Lines of a file, without holding it in memory."""
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def bench_proctor(turns: Iterable[bytes], count: int) -> Measured:
    """One `proctor run`, file to file."""
    with Watch(role_of) as watch, proctor_data() as (folder, settings):
        source, target = folder / "turns.jsonl", folder / "out.jsonl"
        with source.open("wb") as file:
            file.writelines(turns)
        command = [sys.executable, "-P", "-m", "producer", "run", str(source), "-o", str(target), "--json"]
        start = time.perf_counter()
        done = subprocess.run(
            command, env={**os.environ, **settings}, capture_output=True, timeout=RUN_BUDGET_S, check=False
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            sys.exit(
                f"proctor run ended with {done.returncode}:\n{done.stdout.decode()}{done.stderr.decode()}"
            )
        assert json.loads(done.stdout)["counts"]["decided"] == count
        assert count_lines(target) == count
    return Measured(f"proctor {count:,}", count, seconds, watch.roles())


def bench_naive(turns: Iterable[bytes], count: int) -> Measured:
    """The naive application: one Celery task per turn, two prefork processes."""
    with Watch(role_of) as watch, RedisServer() as server:
        environment = {**os.environ, "NAIVE_SOCKET": str(server.socket), "PYTHONPATH": str(ROOT)}
        environment["PYTHONWARNINGS"] = "ignore"  # Celery's, about being root
        celery = [sys.executable, "-m", "celery", "-A", "tests.benchmarks.naive_celery", "-q", "worker"]
        options = [
            "-P",
            "prefork",
            "-c",
            str(PROCESSES),
            "-l",
            "ERROR",
            "--without-gossip",
            "--without-mingle",
        ]
        submit = [sys.executable, "-m", "tests.benchmarks.naive_celery", "producer"]
        client = server.client()

        def decided(wanted: int) -> None:
            assert client.hlen("naive:results") == wanted

        workers = subprocess.Popen([*celery, *options], env=environment, stdout=subprocess.DEVNULL)
        try:
            lines = b"".join(turns).splitlines(keepends=True)
            subprocess.run(submit, input=lines[0], env=environment, check=True)
            eventually(lambda: decided(1), within_s=60)  # both processes are up and imported
            client.delete("naive:results")
            start = time.perf_counter()
            subprocess.run(submit, input=b"".join(lines), env=environment, check=True)
            eventually(lambda: decided(count), within_s=RUN_BUDGET_S)
            seconds = time.perf_counter() - start
        finally:
            workers.terminate()
            workers.wait(30)
            client.close()
    return Measured(f"naive Celery {count:,}", count, seconds, watch.roles())


def table(rows: Sequence[Measured]) -> str:
    """All rows with their columns in line."""
    head = f"{'':22}{'seconds':>9}{'turns/s':>10} |{'CPU µs a turn:':>15}{'sum':>7}"
    head += (
        "".join(f"{role:>10}" for role in ROLES) + " | peak MB:" + "".join(f"{role:>10}" for role in ROLES)
    )
    lines = [head, "-" * len(head)]
    for row in rows:
        cpu = [row.cpu_us(role) for role in ROLES]
        line = f"{row.name:22}{row.seconds:9.2f}{row.per_second:10,.0f} |{sum(cpu):22.1f}"
        line += "".join(f"{each:10.1f}" for each in cpu) + " |         "
        lines.append(line + "".join(f"{row.peak_mb(role):10.0f}" for role in ROLES))
    return "\n".join(lines)


def margin(small: Measured, large: Measured) -> str:
    """What one more turn costs, start-up taken out: the difference between two sizes."""
    turns, seconds = large.turns - small.turns, large.seconds - small.seconds
    cpu = {role: (large.roles[role].cpu_s - small.roles[role].cpu_s) / turns * 1e6 for role in ROLES}
    parts = ", ".join(f"{role} {cost:.1f}" for role, cost in cpu.items())
    return (
        f"between the last two sizes: {turns / seconds:,.0f} turns/s, "
        f"{sum(cpu.values()):.1f} µs of CPU a turn ({parts}); a bare mailbox costs {BARE_MAILBOX_US}"
    )


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(prog="bench_turns", description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES, help="how many turns in each run")
    parser.add_argument(
        "--naive", type=int, default=NAIVE_TURNS, help="turns for the naive one; 0: leave it out"
    )
    parser.add_argument("--like", type=Path, metavar="FILE", help="repeat these turns instead of made ones")
    options = parser.parse_args()
    turns = list(made_turns(seed=1))
    if options.like:
        turns = [json.loads(line) for line in options.like.read_bytes().splitlines()]
    rows = []
    for size in options.sizes:
        rows.append(bench_proctor(repeated(turns, size), size))
        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    if options.naive:
        rows.append(bench_naive(repeated(turns, options.naive), options.naive))
    print(table(rows))
    sized = list(islice(rows, len(options.sizes)))
    if len(sized) > 1:
        print(margin(*sized[-2:]))
    if options.naive:
        print(f"times the naive application: {sized[-1].per_second / rows[-1].per_second:,.0f}")


if __name__ == "__main__":
    main()
