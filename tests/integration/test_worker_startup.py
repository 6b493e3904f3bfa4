"""What a worker costs before it works: imports, start-up, memory, and the processor while it waits."""

import subprocess
import sys
from typing import TYPE_CHECKING, Final

import psutil
import pytest

from tests.support.eventually import stays
from tests.support.processes import Processes
from tests.support.tree import ROOT
from tests.support.workers import start_worker

if TYPE_CHECKING:
    from pathlib import Path

HEAVY: Final = ("litellm", "deepdiff", "flower", "tornado", "rouge_score", "rich", "aiohttp", "producer")
"""What a worker must not import before it is needed, or at all."""
STARTUP_CPU_S: Final = 1.5
IDLE_S: Final = 4.0
IDLE_SHARE: Final = 0.05
RSS_BYTES: Final = 120_000_000


def test_a_worker_imports_nothing_heavy() -> None:
    """Importing the app brings Celery and the turns engine, and no library that costs seconds."""
    code = "import sys, worker.app, worker.start; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(HEAVY)


def test_a_supervisor_does_not_import_celery() -> None:
    """What only watches over processes stays small."""
    code = "import sys, worker.start, worker.supervisor; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint({*HEAVY, "celery", "kombu", "msgspec"})


FORKED: Final = """
import sys
from importlib import import_module
from shared.kinds import all_kinds
import worker.start, worker.supervisor
import_module("worker.kinds").preload(all_kinds())
before = set(sys.modules)
options = {"without_mingle": True, "without_gossip": True, "in_flight": 2}
sys.modules["worker.app"].app.Worker(hostname="a@b", queues=["cases"], pool="threads", **options)
print(*sorted(set(sys.modules) - before))
"""


def test_a_forked_worker_finds_everything_imported(bare_env: dict[str, str]) -> None:
    """Celery loads its parts by name; all of them were loaded once, before the fork."""
    command = [sys.executable, "-c", FORKED]
    done = subprocess.run(command, env=bare_env, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_importing_the_app_starts_nothing(bare_env: dict[str, str], tmp_path: "Path") -> None:
    """Without a URL the app is set to the embedded server's place; no server and no folder is made."""
    code = "import worker.app; print(worker.app.app.conf.broker_url)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=bare_env, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("redis+socket://")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_start_up_and_memory_are_small(processes: Processes) -> None:
    """Ready after less than 1.5 s of processor time, in less than 120 MB."""
    worker = psutil.Process(start_worker(processes, "-Q", "turns").pid)
    times = worker.cpu_times()
    assert times.user + times.system < STARTUP_CPU_S
    assert worker.memory_info().rss < RSS_BYTES


@pytest.mark.slow
def test_a_waiting_worker_costs_next_to_nothing(processes: Processes) -> None:
    """An idle process uses less than a twentieth of one core."""
    started = start_worker(processes, "-Q", "turns")
    worker = psutil.Process(started.pid)
    before = worker.cpu_times()

    def runs() -> None:
        assert started.is_running()

    stays(runs, IDLE_S)
    after = worker.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    assert used_s < IDLE_SHARE * IDLE_S
