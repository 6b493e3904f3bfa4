"""Stopping the embedded server: when nobody uses it any more, never before, and whoever was killed how."""

import fcntl
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import psutil
import pytest
import redis

from shared.server.embedded import ensure, launcher
from tests.support.embedded import end_servers_of, ends, guard_pid, server_pid, servers_of
from tests.support.eventually import eventually, pause, stays
from tests.support.processes import Processes, is_running, marked_processes

IDLE_S = 0.3


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose server is gone after the test."""
    folder = tmp_path / "data"
    yield folder
    end_servers_of(folder)


def test_an_unused_server_stops_and_keeps_its_data(data_dir: Path) -> None:
    """Some time after the last client, server and guard end in good order; the next start has all data."""
    with ensure(data_dir, idle_s=IDLE_S) as server:
        server.client.set("old", "data")
        server_id, guard_id = server_pid(server), guard_pid(server)
    ends(server_id)
    ends(guard_id)
    assert not server.socket.parent.exists()
    with ensure(data_dir, idle_s=IDLE_S) as server:
        assert server.started
        assert server.client.get("old") == b"data"


def test_an_unused_server_leaves_out_what_is_obsolete(data_dir: Path) -> None:
    """A file of which most was overwritten is written anew before the server stops, and keeps all data."""
    with ensure(data_dir, idle_s=IDLE_S) as server:
        server_id = server_pid(server)
        for number in range(25):
            server.client.set("large", bytes([number]) * 1_000_000)
    ends(server_id)
    assert sum(file.stat().st_size for file in (data_dir / "appendonlydir").iterdir()) < 3_000_000
    with ensure(data_dir, idle_s=IDLE_S) as server:
        assert server.client.get("large") == bytes([24]) * 1_000_000


def test_a_waiting_client_keeps_the_server(data_dir: Path) -> None:
    """A worker that only waits for work is a client: the server stays, however long nothing happens."""
    with ensure(data_dir, idle_s=IDLE_S) as server:
        server_id = server_pid(server)
        waiting = server.target.client()
        worker = Thread(target=waiting.blpop, args=(["work"],), kwargs={"timeout": 20})
        worker.start()
        server.close()

        def is_alive() -> None:
            assert is_running(server_id)

        stays(is_alive, for_s=5 * IDLE_S)
        with server.target.client() as producer:
            producer.rpush("work", "item")
        worker.join(10)
        assert not worker.is_alive()
        waiting.close()
    ends(server_id)


def test_whoever_is_just_joining_keeps_the_server(data_dir: Path) -> None:
    """The server is stopped only by who holds the lock, and never while somebody else holds it to join."""
    with ensure(data_dir, idle_s=IDLE_S) as server:
        server_id = server_pid(server)
    with (data_dir / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def is_alive() -> None:
            assert is_running(server_id)

        stays(is_alive, for_s=5 * IDLE_S)
        joined = server.target.client()
        joined.ping()
    stays(is_alive, for_s=3 * IDLE_S)
    joined.close()
    ends(server_id)


def test_joining_in_the_moment_of_stopping_always_gives_a_working_server(data_dir: Path) -> None:
    """Callers that come just when the server is about to stop get it, or the next one, and lose nothing."""
    started = 0
    for number in range(20):
        with ensure(data_dir, idle_s=0.1) as server:
            started += server.started
            assert server.client.incr("count") == number + 1
        pause(0.08 + number * 0.003)
    assert 1 < started < 20, "the pauses missed the moment of stopping"


def test_a_client_too_short_to_be_seen_counts_as_use(data_dir: Path) -> None:
    """Commands that connect and leave between two looks of the guard keep the server alive."""
    with ensure(data_dir, idle_s=1.0) as server:
        server_id = server_pid(server)

    def visit() -> None:
        with ensure(data_dir, idle_s=1.0) as visitor:
            assert server_pid(visitor) == server_id

    stays(visit, for_s=2.5)


def test_no_orphan_after_every_client_was_killed(
    data_dir: Path, processes: Processes, bare_env: dict[str, str], python: str
) -> None:
    """When every client is killed with SIGKILL, server and guard are gone soon after."""
    clients = processes.start(
        python, "-m", "tests.support.embedded", data_dir, str(IDLE_S), "3", env=bare_env, cwd=data_dir.parent
    )

    def all_in() -> int:
        lines = clients.output.splitlines()
        assert len(lines) == 3, clients.output_text()
        return int(json.loads(lines[0])["server"])

    server_id = eventually(all_in, 20)
    guard_id = psutil.Process(server_id).ppid()
    clients.kill_tree()
    ends(server_id)
    ends(guard_id)
    assert not [process for process in marked_processes() if str(data_dir) in " ".join(process.cmdline())]


@pytest.mark.parametrize("lifeline", ["signal", "pipe"])
def test_the_server_dies_with_its_guard(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, lifeline: str
) -> None:
    """A killed guard leaves no unguarded server, frozen or not; the next start has all data."""
    monkeypatch.setattr(launcher, "LIFELINE", lifeline)
    with ensure(data_dir, idle_s=IDLE_S) as server:
        server.client.set("old", "data")
        server_id, guard_id = server_pid(server), guard_pid(server)
        os.kill(server_id, signal.SIGSTOP)
        os.kill(guard_id, signal.SIGKILL)
        ends(server_id, within_s=3)
    with ensure(data_dir, idle_s=IDLE_S) as server:
        assert server.started
        assert server.client.get("old") == b"data"


def test_the_pipe_lifeline_leaves_nothing_behind(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the guard needs a watcher, the watcher goes with the server it watched."""
    monkeypatch.setattr(launcher, "LIFELINE", "pipe")
    with ensure(data_dir, idle_s=IDLE_S) as server:
        guard = psutil.Process(guard_pid(server))
        family = [guard, *guard.children(recursive=True)]
        assert len(family) == 3
    for process in family:
        ends(process.pid)


def test_a_guard_that_gets_a_signal_stops_the_server(data_dir: Path) -> None:
    """SIGTERM to the guard ends the server in good order, also with clients connected."""
    with ensure(data_dir, idle_s=IDLE_S) as server:
        server_id, guard_id = server_pid(server), guard_pid(server)
        os.kill(guard_id, signal.SIGTERM)
        ends(server_id)
        ends(guard_id)
        with pytest.raises(redis.ConnectionError):
            server.client.ping()
    assert "ready to exit" in (data_dir / "server.log").read_text()


def test_a_client_killed_at_any_moment_of_its_start_breaks_nothing(
    data_dir: Path, processes: Processes, bare_env: dict[str, str], python: str
) -> None:
    """Clients killed while they start the server leave a folder on which the next one gets one server."""
    arguments = (python, "-m", "tests.support.embedded", data_dir, "20")
    first = processes.start(*arguments, env=bare_env, cwd=data_dir.parent)
    first.wait_for("}")
    first.kill()
    for number in range(4):
        end_servers_of(data_dir)
        (data_dir / "server.pid").unlink(missing_ok=True)
        client = processes.start(*arguments, env=bare_env, cwd=data_dir.parent)
        log = data_dir / "server.log"
        before = log.stat().st_size

        def is_starting(log: Path = log, before: int = before) -> None:
            assert log.stat().st_size > before

        eventually(is_starting)
        pause(number * 0.015)
        client.kill()
    with ensure(data_dir, idle_s=IDLE_S) as server:
        assert [process.pid for process in servers_of(data_dir)] == [server_pid(server)]
