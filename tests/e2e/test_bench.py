"""Keeps the benchmarks alive: they run in small, count every item, and print their tables."""

import compileall
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.benchmarks.bench_guard import FOLDERS, Tree, compare, row
from tests.benchmarks.process_costs import measure
from tests.support.processes import Processes
from tests.support.tree import ROOT

pytestmark = pytest.mark.slow


def test_bench_prints_both_sides_and_their_ratio(processes: Processes) -> None:
    """Two sizes and the naive application give three rows, the cost of one more turn, and the ratio."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_turns", "300", "600", "--naive", "50"]
    done = processes.run(*command, within_s=110, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.popen.returncode == 0, done.output_text()
    rows = [line.split(" |")[0] for line in done.output.splitlines()]
    assert any(row.startswith("proctor 300 ") for row in rows)
    assert any(row.startswith("proctor 600 ") for row in rows)
    assert any(row.startswith("naive Celery 50 ") for row in rows)
    assert "of CPU a turn" in done.output
    assert "times the naive application" in done.output


def test_the_queries_bench_prints_each_row_beside_its_ideal(processes: Processes) -> None:
    """A row by calls in flight, one by processes, and one with refusals that loses none."""
    options = ["--seconds", "0.6", "--in-flight", "10", "--processes", "1", "--refused", "4"]
    command = [sys.executable, "-m", "tests.benchmarks.bench_queries", *options]
    done = processes.run(*command, within_s=110, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.popen.returncode == 0, done.output_text()
    rows = [line.split("  ")[0] for line in done.output.splitlines()]
    assert rows[1:4] == ["1 process, 10 in flight", "1 processes, 50 in flight each", "10 % refused with 429"]
    assert "reference: " in done.output


def test_the_cases_bench_loses_no_case(processes: Processes) -> None:
    """Three runs whose cases are all counted, and the bare loop beside them."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_cases"]
    command += ["--recorded", "40", "--checked", "50", "--calls", "30", "--limited", "10"]
    done = processes.run(*command, within_s=110, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.popen.returncode == 0, done.output_text()
    rows = done.output.splitlines()[1:]
    assert "passed 36, failed 4, error 0, skipped 0" in rows[0]
    assert "passed 45, failed 5, error 0, skipped 0" in rows[1]
    assert "passed 30, failed 0, error 0, skipped 0" in rows[2]
    assert "passed 10, failed 0, error 0, skipped 0; ideal 0.3 s" in rows[3]
    assert rows[4].startswith("reference: a bare loop over litellm")


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
