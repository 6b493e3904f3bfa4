"""Keeps the benchmarks alive: they run in small, count every item, and print their tables."""

import os
import sys

import pytest

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
