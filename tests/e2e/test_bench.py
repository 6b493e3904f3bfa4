"""Keeps the benchmarks alive: they run in small, count every item, and write their figures."""

import compileall
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.benchmarks.bench_guard import FOLDERS, Tree, compare, row
from tests.benchmarks.process_costs import measure
from tests.benchmarks.results import read
from tests.support.processes import Processes
from tests.support.tree import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("workload", ["start-up", "turns", "cases", "queries", "kill", "scrape"])
def test_a_small_bench_writes_compared_figures(processes: Processes, tmp_path: Path, workload: str) -> None:
    """Each workload runs in small, loses no item, and writes JSON with figures beside references."""
    command = [sys.executable, "-m", "tests.benchmarks.bench", workload, "--scale", "0.003"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = processes.run(*command, "-o", str(tmp_path / "bench.json"), within_s=110, env=env)
    assert done.popen.returncode == 0, done.output_text()
    report = read(tmp_path / "bench.json")
    compared = [figure for figure in report.of(workload) if figure.reference]
    assert compared
    assert all(figure.shown() in done.output and figure.compared() in done.output for figure in compared)
    assert not report.missing
    assert report.scale == 0.003


def test_peers_that_are_missing_are_named_beside_the_others(processes: Processes, tmp_path: Path) -> None:
    """Without npm and a registry, Proctor and the bare loops are measured, and the JSON names the rest."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": "", "PIP_NO_INDEX": "1"}
    command = [sys.executable, "-m", "tests.benchmarks.bench_peers", "--scale", "0.003", "--rounds", "1"]
    command += ["--folder", str(tmp_path / "peers"), "-o", str(tmp_path / "peers.json")]
    done = processes.run(*command, within_s=110, env=env)
    assert done.popen.returncode == 0, done.output_text()
    report = read(tmp_path / "peers.json")
    assert [missing.name for missing in report.missing] == ["promptfoo", "Inspect", "lm-eval"]
    assert "promptfoo: needs node and npm on PATH" in done.output
    assert {figure.series for figure in report.figures} == {
        "Proctor",
        "bare aiohttp loop",
        "bare litellm loop",
    }


BURN = "sum(range(20_000_000))"


def planted(folder: Path, statement: str) -> Path:
    """This tree, in which every command begins with a statement."""
    for each in FOLDERS:
        if each != "producer":
            (folder / each).symlink_to(ROOT / each)
    shutil.copytree(ROOT / "producer", folder / "producer", ignore=shutil.ignore_patterns("__pycache__"))
    program = folder / "producer" / "__main__.py"
    program.write_text(f"PLANTED = {statement}\n{program.read_text()}", encoding="utf-8")
    compileall.compile_dir(folder / "producer", quiet=2)
    return folder


@pytest.mark.parametrize(
    ("statement", "expected"), [(BURN, "SLOWER"), ("bytearray(200_000_000)", "LARGER"), ("None", "ok")]
)
def test_the_guard_sees_what_is_planted(tmp_path: Path, statement: str, expected: str) -> None:
    """A tree that computes or holds more than the other fails by that; an equal one does not."""
    (tmp_path / "data").mkdir()
    (tmp_path / "tree").mkdir()
    ours = Tree("ours", ROOT, tmp_path / "data")
    other = Tree("planted", planted(tmp_path / "tree", statement), tmp_path / "data")
    ratios = compare(lambda tree: tree.cost(["--help"], tree.data), ours, other, 5, (1.0, 1.0))
    line, holds = row("help", ratios, (1.0, 1.0))
    assert expected in line, line
    assert holds == (expected == "ok")


def test_processes_that_detach_themselves_are_counted(tmp_path: Path) -> None:
    """The CPU time of a process that has left its parent and its session is that of the command."""
    detached = f"import os\nos.setsid()\nos.fork() and os._exit(0)\n{BURN}"
    command = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {detached!r}])"
    costs = measure([sys.executable, "-c", command], {"PYTHONPATH": str(ROOT)}, tmp_path)
    alone = measure([sys.executable, "-c", BURN], {"PYTHONPATH": str(ROOT)}, tmp_path)
    assert costs.exit_code == 0, costs.errors
    assert costs.cpu_s > 0.7 * alone.cpu_s
