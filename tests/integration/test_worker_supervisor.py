"""The supervisor of worker processes: it restarts what dies, ends what it started, and leaves no orphan."""

import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from shared.kinds import TURNS
from shared.processes.heartbeat import oldest_beat_s
from tests.support.eventually import eventually, stays
from tests.support.processes import Process, Processes, is_running
from tests.support.workers import Desk, conversation, ready, start_supervisor

if TYPE_CHECKING:
    import redis

WORKER = (sys.executable, "-P", "-m", "worker")


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str) -> Desk:
    """A producer on the session's server."""
    return Desk(redis_client, redis_url)


def children(supervisor: Process) -> list[int]:
    """Process ids of the worker processes that run now."""
    return [each.pid for each in psutil.Process(supervisor.pid).children() if is_running(each.pid)]


def test_each_process_has_a_name_of_its_own(desk: Desk, processes: Processes) -> None:
    """Node names carry the kind, a number, the supervisor's process id and the host."""
    first = start_supervisor(processes, 2, "-Q", "turns")
    second = start_supervisor(processes, 1, "-Q", "turns")
    host = socket.gethostname()

    def all_are_registered() -> None:
        assert sorted(worker.name for worker in desk.store.workers(TURNS)) == sorted(
            [f"turns-{number}.{first.pid}@{host}" for number in (1, 2)] + [f"turns-1.{second.pid}@{host}"]
        )

    eventually(all_are_registered)


def test_a_dead_process_is_replaced(desk: Desk, processes: Processes) -> None:
    """A process that was killed is started again under its name, and the work goes on."""
    supervisor = start_supervisor(processes, 1, "-Q", "turns")
    [before] = children(supervisor)
    os.kill(before, signal.SIGKILL)
    ready(supervisor, 2)
    [after] = children(supervisor)
    assert after != before
    assert "was ended by SIGKILL; it is started again in 0.5 s" in supervisor.errors
    desk.submit("r1", conversation(threads=5, turns=5))
    desk.finished("r1")


@pytest.mark.chaos
def test_kill_9_of_the_supervisor_leaves_no_orphan(processes: Processes) -> None:
    """The worker processes are gone a moment after their supervisor."""
    supervisor = start_supervisor(processes, 2, "-Q", "turns")
    pids = children(supervisor)
    assert len(pids) == 2
    supervisor.kill()

    def all_are_gone() -> None:
        assert not [pid for pid in pids if is_running(pid)]

    eventually(all_are_gone, 5)


def test_a_worker_process_ends_with_its_standard_input(processes: Processes, tmp_path: Path) -> None:
    """Where the kernel does not tell a child of its parent's death, the end of a pipe does."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    worker = processes.start(*WORKER, "-Q", "turns", "--stop-on-eof", stdin=pipe)
    worker.wait_for("ready ")
    os.close(held)
    assert worker.wait(within_s=8) == 0


@pytest.mark.chaos
def test_all_of_it_ends_with_the_program_that_started_it(processes: Processes) -> None:
    """Supervisor and processes end when the command line is killed that started them with a pipe."""
    command = [*WORKER, "--supervise", "--processes", "1", "--stop-on-eof"]
    program = f"import subprocess as s; s.Popen({command!r}, stdin=s.PIPE).wait()"
    parent = processes.start(sys.executable, "-c", program)
    ready(parent, 1)
    family = [each.pid for each in parent.tree()]
    assert len(family) == 2
    parent.kill()

    def all_are_gone() -> None:
        assert not [pid for pid in family if is_running(pid)]

    eventually(all_are_gone, 8)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_of_it(processes: Processes, desk: Desk, number: signal.Signals) -> None:
    """SIGTERM and Ctrl-C end supervisor and processes in good order, with exit code 0."""
    supervisor = start_supervisor(processes, 2, "-Q", "turns")
    pids = children(supervisor)
    supervisor.send(number)
    assert supervisor.wait(within_s=10) == 0
    assert not [pid for pid in pids if is_running(pid)]
    assert desk.store.workers(TURNS) == []
    assert oldest_beat_s_of(processes) is None


def oldest_beat_s_of(processes: Processes) -> float | None:
    """The heartbeat that a probe on this machine would see."""
    return oldest_beat_s(Path(processes.env["PROCTOR_DATA_DIR"]))


def test_a_working_machine_has_a_fresh_heartbeat(processes: Processes) -> None:
    """A probe sees a beat that is seconds old, from the first moment on."""
    start_supervisor(processes, 2, "-Q", "turns")

    def beats() -> None:
        age = oldest_beat_s_of(processes)
        assert age is not None
        assert age < 3

    eventually(beats)
    stays(beats, 2)


def test_a_hanging_process_makes_the_heartbeat_old(processes: Processes) -> None:
    """One process of two that hangs is enough for a probe to notice."""
    supervisor = start_supervisor(processes, 2, "-Q", "turns")
    first, _ = children(supervisor)
    os.kill(first, signal.SIGSTOP)

    def is_old() -> None:
        age = oldest_beat_s_of(processes)
        assert age is not None
        assert age > 3

    eventually(is_old)
    os.kill(first, signal.SIGCONT)


def test_burst_ends_when_nothing_is_left(desk: Desk, processes: Processes) -> None:
    """Every run is decided, then supervisor and processes end with 0."""
    desk.submit("r1", conversation(threads=200, turns=20))
    supervisor = start_supervisor(processes, 2, "-Q", "turns", "--burst")
    assert supervisor.wait(within_s=30) == 0
    assert desk.info("r1").done == 4000


def test_burst_does_not_wait_for_a_paused_run(desk: Desk, processes: Processes) -> None:
    """A paused run waits for a person, and a burst worker does not."""
    desk.load("r1", conversation(threads=2, turns=2))
    desk.ledger.control("r1", "pause")
    supervisor = processes.start(*WORKER, "--supervise", "--processes", "1", "--burst")
    assert supervisor.wait(within_s=20) == 0


def test_burst_waits_for_a_run_that_is_being_loaded(desk: Desk, processes: Processes) -> None:
    """A run whose items are still being written is work to come."""
    loader = "loader-1"
    desk.ledger.open("r1", kind="turns", namespace="", key="", token=loader, snapshot=b"{}", ttl_s=60)
    supervisor = start_supervisor(processes, 1, "-Q", "turns", "--burst")

    def is_there() -> None:
        assert supervisor.is_running()

    stays(is_there, 4)
    desk.ledger.discard("r1", loader)
    assert supervisor.wait(within_s=10) == 0


def test_an_unreachable_redis_is_exit_3_within_seconds(processes: Processes, tmp_path: Path) -> None:
    """A wrong URL is one line and the exit code for infrastructure, not a circle of restarts."""
    env = {
        **processes.env,
        "PROCTOR_REDIS_URL": f"unix://{tmp_path}/nobody",
        "PROCTOR_CONNECT_PATIENCE_S": "1",
    }
    supervisor = processes.start(*WORKER, "--supervise", env=env)
    assert supervisor.wait(within_s=10) == 3
    assert supervisor.errors.startswith("error: Redis at unix://")
    assert "Traceback" not in supervisor.errors


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("-Q", "turn"), "kinds are turns, cases, queries"),
        (("-j", "0"), "argument -j/--in-flight: 0 is below 1"),
        (("--procesess", "2"), "unrecognized arguments: --procesess 2"),
    ],
)
def test_a_wrong_command_line_is_exit_2(
    processes: Processes, options: tuple[str, ...], complaint: str
) -> None:
    """What cannot be understood is reported in one line."""
    worker = processes.run(*WORKER, *options)
    assert worker.popen.returncode == 2
    assert worker.errors.startswith("error: ")
    assert complaint in worker.errors
    assert "Traceback" not in worker.errors
