"""Compares the CPU time and memory of this tree with those of a baseline commit: `make bench-guard`.

Seven workloads run in turns, once with the tree of the commit that baseline.toml names, once with this one.
CPU is that of all processes of a run, the embedded server included, so that waiting and other programs on the
machine count little; memory is that of the largest process. A workload fails when the median of its ratios
exceeds the one in baseline.toml by more than 5 %. One that seems to is measured again beside the baseline
against itself: what that differs from 1 is added to the 5 %.

Exits with 1 if a workload fails; without the history that has the commit, says so and exits with 0.
"""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tests.benchmarks.bench_cases import IN_FLIGHT, LATENCY_S, asked, models_at, recorded_checks
from tests.benchmarks.bench_queries import api
from tests.benchmarks.make_turns import write_turns
from tests.benchmarks.process_costs import Costs, proctor
from tests.support.query_desk import numbered
from tests.support.tree import ROOT

BASELINE: Final = Path(__file__).with_name("baseline.toml")
FOLDERS: Final = ("shared", "worker", "producer", "examples")
TOLERANCE: Final = 0.05
ROUNDS: Final = 5
SHORT_ROUNDS: Final = 3
MORE_ROUNDS: Final = 4
"""For a workload that seems slower, together with as many of the baseline against itself."""
HEADS: Final = ("CPU", "at most", "memory", "at most", "pairs", "CPU s", "wall s")
HELPS: Final = 5
"""Starts of `--help` that count as one."""


class Sizes(NamedTuple):
    """How much each workload has to do."""

    cases: int
    recorded: int
    turns: int
    queries: int
    rows: int


FULL: Final = Sizes(cases=1_000, recorded=5_000, turns=268_000, queries=2_500, rows=20_000)
SHORT: Final = Sizes(cases=300, recorded=1_000, turns=40_000, queries=500, rows=3_000)


class Tree(NamedTuple):
    """One of the two trees, and the data folder that has its finished run."""

    name: str
    root: Path
    data: Path

    def cost(self, arguments: Sequence[str | Path], data: Path) -> Costs:
        """Runs `proctor ARGUMENTS` from this tree on a data folder, and measures it."""
        return proctor(arguments, data, tree=self.root)


Workload = Callable[[Tree], Costs]


@dataclass
class Ratios:
    """What was measured of one workload: this tree by the baseline, and the baseline by itself."""

    cpu: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    cpu_of_itself: list[float] = field(default_factory=list)
    memory_of_itself: list[float] = field(default_factory=list)
    last: Costs | None = None

    def add(self, theirs: Costs, ours: Costs) -> None:
        """Counts a pair."""
        self.cpu.append(ours.cpu_s / theirs.cpu_s)
        self.memory.append(ours.peak_mb / theirs.peak_mb)
        self.last = ours

    def add_itself(self, first: Costs, second: Costs) -> None:
        """Counts a pair of the baseline alone."""
        self.cpu_of_itself.append(second.cpu_s / first.cpu_s)
        self.memory_of_itself.append(second.peak_mb / first.peak_mb)


def bound(reached: float, of_itself: Sequence[float]) -> float:
    """The greatest ratio that is no loss.

    >>> bound(1.0, [])
    1.05
    >>> round(bound(0.8, [0.9, 1.1, 1.2]), 3)
    0.92
    """
    noise = abs(median(of_itself) - 1) if of_itself else 0.0
    return reached * (1 + TOLERANCE + noise)


def workloads(folder: Path, sizes: Sizes, api_url: str) -> dict[str, Workload]:
    """Writes the input of all workloads and returns what each runs."""
    one, many = (asked(folder, count, **models_at(api_url)) for count in (1, sizes.cases))
    checked = recorded_checks(folder, sizes.recorded)
    turns, queries = folder / "turns.jsonl", folder / "queries.json"
    write_turns(turns, sizes.turns)
    queries.write_text(json.dumps(numbered(sizes.queries)), encoding="utf-8")
    query_options = ["--api-url", api_url, "--concurrency", str(IN_FLIGHT)]

    def run(*arguments: str | Path) -> Workload:
        def fresh(tree: Tree) -> Costs:
            with TemporaryDirectory(dir=folder) as data:
                return tree.cost(["run", "-q", *arguments], Path(data))

        return fresh

    def helps(tree: Tree) -> Costs:
        each = [tree.cost(["--help"], tree.data) for _ in range(HELPS)]
        return Costs(0, sum(one.cpu_s for one in each), each[0].peak_mb, sum(one.wall_s for one in each))

    return {
        "help": helps,
        "one_case": run(one),
        "cases": run(many),
        "recorded_cases": run(*checked),
        "turns": run(turns, "-o", folder / "decisions.jsonl"),
        "queries": run(queries, *query_options),
        "html_report": lambda tree: tree.cost(["report", "last", "-o", folder / "report.html"], tree.data),
    }


@contextmanager
def baseline_tree(commit: str) -> Iterator[Path | None]:
    """Unpacks a commit's code into a folder; None where the history does not have it."""
    # A checkout may belong to another user than the guard runs as.
    git = ["git", "-C", str(ROOT), "-c", "safe.directory=*"]
    found = subprocess.run([*git, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True, check=False)
    if found.returncode:
        yield None
        return
    with TemporaryDirectory(prefix="bench-guard-") as name:
        archive = subprocess.run(
            [*git, "archive", commit, *FOLDERS], stdout=subprocess.PIPE, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", name], input=archive, check=True)
        yield Path(name)


def compare(work: Workload, theirs: Tree, ours: Tree, rounds: int, reached: tuple[float, float]) -> Ratios:
    """Runs one workload in turns; goes on, beside the baseline against itself, where it seems slower."""
    ratios = Ratios()
    for number in range(rounds):
        pair = {tree: work(tree) for tree in ((theirs, ours) if number % 2 else (ours, theirs))}
        ratios.add(pair[theirs], pair[ours])
    if median(ratios.cpu) > bound(reached[0], []) or median(ratios.memory) > bound(reached[1], []):
        for _ in range(MORE_ROUNDS):
            first, between, second = work(theirs), work(ours), work(theirs)
            ratios.add(first, between)
            ratios.add_itself(first, second)
    return ratios


def row(name: str, ratios: Ratios, reached: tuple[float, float]) -> tuple[str, bool]:
    """Writes the row of a workload; whether it holds."""
    cpu, memory = median(ratios.cpu), median(ratios.memory)
    most_cpu = bound(reached[0], ratios.cpu_of_itself)
    most_memory = bound(reached[1], ratios.memory_of_itself)
    losses = ["SLOWER"] if cpu > most_cpu else []
    losses += ["LARGER"] if memory > most_memory else []
    last = ratios.last
    used = f"{last.cpu_s:9.2f}{last.wall_s:9.2f}" if last else ""
    figures = f"{cpu:9.3f}{most_cpu:9.3f}{memory:9.3f}{most_memory:9.3f}{len(ratios.cpu):9}"
    return f"{name:<16}{figures}{used}  {' '.join(losses) or 'ok'}", not losses


def guard(sizes: Sizes, rounds: int, only: Sequence[str]) -> int:
    """Measures and prints; the exit code."""
    named: Mapping[str, object] = tomllib.loads(BASELINE.read_text(encoding="utf-8"))
    commit, cpu, memory = str(named["commit"]), named["cpu"], named["memory"]
    assert isinstance(cpu, dict)
    assert isinstance(memory, dict)
    with (
        baseline_tree(commit) as root,
        TemporaryDirectory(prefix="bench-guard-") as name,
        api(0, LATENCY_S) as url,
    ):
        if root is None:
            print(f"bench-guard: skipped, this checkout's history lacks {commit}")
            return 0
        folder = Path(name)
        trees = [Tree("baseline", root, folder / "baseline"), Tree("this tree", ROOT, folder / "ours")]
        work = workloads(folder, sizes, url)
        for tree in trees:
            for each in FOLDERS:
                compileall.compile_dir(tree.root / each, quiet=2)
            tree.data.mkdir()
            if not only or "html_report" in only:
                tree.cost(["run", "-q", *recorded_checks(tree.data, sizes.rows)], tree.data)
        print(f"{f'to {commit[:7]}':<16}" + "".join(f"{head:>9}" for head in HEADS), flush=True)
        slower = []
        for title, run in work.items():
            if only and title not in only:
                continue
            reached = float(cpu[title]), float(memory[title])
            line, holds = row(title, compare(run, trees[0], trees[1], rounds, reached), reached)
            print(line, flush=True)
            slower += [] if holds else [title]
    if slower:
        print(f"bench-guard: this tree costs more than {commit[:7]} in {', '.join(slower)}")
    return 1 if slower else 0


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="bench_guard", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--short", action="store_true", help="smaller workloads, at least three pairs of each"
    )
    parser.add_argument("--rounds", type=int, help="pairs of each workload")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORKLOAD",
        help="one of the workloads; may be repeated",
    )
    asked = parser.parse_args()
    rounds = asked.rounds or (SHORT_ROUNDS if asked.short else ROUNDS)
    os.environ.pop("PROCTOR_REDIS_URL", None)
    sys.exit(guard(SHORT if asked.short else FULL, rounds, asked.only))


if __name__ == "__main__":
    main()
