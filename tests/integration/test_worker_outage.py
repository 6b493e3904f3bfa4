"""Workers while Redis is away: they wait, say so in one line, go on, and give up after their patience."""

from collections.abc import Callable
from pathlib import Path

import pytest

from shared.processes.heartbeat import oldest_beat_s
from tests.support.eventually import eventually, stays
from tests.support.processes import Process, Processes
from tests.support.redis_server import RedisServer, break_snapshots
from tests.support.workers import Desk, conversation, ready, start_supervisor, start_worker

THREADS, TURNS = 1000, 60


@pytest.fixture
def server(new_redis_server: Callable[..., RedisServer], processes: Processes) -> RedisServer:
    """A server of the test's own, which the workers use."""
    started = new_redis_server()
    processes.env["PROCTOR_REDIS_URL"] = started.url
    return started


def begin(server: RedisServer, run: str) -> Desk:
    """Publishes a run that is safely on disk, and waits until a part of it is decided."""
    desk = Desk(server.client(), server.url)
    wakes = desk.load(run, conversation(THREADS, TURNS))
    assert desk.ledger.wait_durable(10)  # as a producer does, before it returns the run's id
    desk.publisher.publish(wakes)

    def is_partly_done() -> None:
        assert desk.info(run).done > 0

    eventually(is_partly_done)
    return desk


def every_turn_once(desk: Desk, run: str) -> None:
    """Waits for the end and asserts that each turn has one result."""
    rows = desk.finished(run, within_s=90)
    assert [row.index for row in rows] == list(range(THREADS * TURNS))
    assert desk.info(run).done == THREADS * TURNS


@pytest.mark.chaos
def test_a_restart_of_redis_is_waited_for(server: RedisServer, processes: Processes) -> None:
    """Redis is killed in the middle and comes back: the same process goes on, without a traceback."""
    worker = start_worker(processes, "-Q", "turns")
    desk = begin(server, "r1")
    server.kill()
    worker.wait_for('"redis away"')  # or it may be back before anybody noticed
    server.start()
    every_turn_once(desk, "r1")
    assert worker.is_running()
    assert "Traceback" not in worker.errors
    assert "the connection to the broker is lost" in worker.errors
    assert worker.errors.count('"redis away"') == worker.errors.count('"redis back"') >= 1


@pytest.mark.chaos
def test_a_short_freeze_ends_no_lease(server: RedisServer, processes: Processes) -> None:
    """A Redis that stands still for some seconds costs these seconds and nothing else."""
    worker = start_worker(processes, "-Q", "turns")
    desk = begin(server, "r1")
    server.freeze()
    with pytest.raises(AssertionError):
        worker.wait(within_s=3)
    server.thaw()
    every_turn_once(desk, "r1")
    assert "Traceback" not in worker.errors


@pytest.mark.chaos
def test_patience_ends_in_one_line_and_a_new_process(server: RedisServer, processes: Processes) -> None:
    """A process whose Redis stays away ends with 3; its supervisor tries again until Redis is back."""
    processes.env |= {"PROCTOR_PATIENCE_S": "1", "PROCTOR_CONNECT_PATIENCE_S": "1"}
    supervisor = start_supervisor(processes, 1, "-Q", "turns")
    desk = begin(server, "r1")
    server.terminate()
    supervisor.wait_for("ended with exit code 3")
    assert '"event": "worker gives up"' in supervisor.errors
    assert '"reason": "Redis does not answer' in supervisor.errors
    server.start()
    ready(supervisor, 2)
    every_turn_once(desk, "r1")
    assert "Traceback" not in supervisor.errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("maxmemory", "1mb", "command not allowed when used memory"),
        ("min-replicas-to-write", "1", "NOREPLICAS"),
        ("save", "3600 1", "MISCONF"),
    ],
    ids=["full", "without replicas", "its disk is full"],
)
def test_a_redis_that_refuses_writes_is_waited_for(
    server: RedisServer, processes: Processes, setting: str, value: str, reason: str
) -> None:
    """Memory, replicas or disk: no process ends, one line says so, the probe is well, work goes on later."""
    processes.env["PROCTOR_PATIENCE_S"] = "2"
    supervisor = start_supervisor(processes, 1, "-Q", "turns")
    desk = begin(server, "r1")
    desk.client.config_set(setting, value)
    if setting == "save":
        break_snapshots(server.folder, desk.client)
    supervisor.wait_for(reason, 20)
    stays(lambda: _assert_running(supervisor), 4)
    assert (oldest_beat_s(Path(processes.env["PROCTOR_DATA_DIR"])) or 0.0) < 3
    desk.client.config_set(setting, "" if setting == "save" else "0")
    every_turn_once(desk, "r1")
    assert "is started again" not in supervisor.errors
    assert "Traceback" not in supervisor.errors
    assert supervisor.errors.count("broker refuses commands") <= 1, supervisor.errors
    assert supervisor.errors.count("redis refuses writes") <= 1, supervisor.errors
    assert "worker gives up" not in supervisor.errors


def _assert_running(process: Process) -> None:
    assert process.is_running(), process.output_text()
