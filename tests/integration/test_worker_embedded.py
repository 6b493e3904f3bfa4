"""Workers without a URL: the data folder's own server is started, kept, and let go."""

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from shared.embedded import ensure
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.workers import Desk, conversation, start_supervisor


def server_pid(data_dir: Path) -> int:
    """The process id of the data folder's server."""
    with closing(ensure(data_dir, idle_s=1)) as server:
        return int(server.client.info("server")["process_id"])


@pytest.mark.chaos
def test_a_killed_embedded_server_comes_back(processes: Processes, bare_env: dict[str, str]) -> None:
    """A supervisor starts the data folder's server, starts it again after `kill -9`, and the work goes on."""
    supervisor = start_supervisor(processes, 1, "-Q", "turns", env=bare_env)
    data_dir = Path(bare_env["PROCTOR_DATA_DIR"])
    killed = server_pid(data_dir)
    os.kill(killed, signal.SIGKILL)

    def is_back() -> None:
        assert "Connected" in supervisor.errors.split("connection to the broker is lost")[1]

    eventually(is_back, 20)
    with closing(ensure(data_dir, idle_s=1)) as server:
        desk = Desk(server.client, server.target.redis_url)
        desk.submit("r1", conversation(threads=5, turns=5))
        desk.finished("r1", within_s=60)
    assert server_pid(data_dir) != killed
    assert supervisor.stop() == 0


def test_one_process_alone_starts_the_server_too(processes: Processes, bare_env: dict[str, str]) -> None:
    """`python -m worker --burst` needs nothing: it starts a server, finds no work, and ends."""
    worker = processes.start(sys.executable, "-m", "worker", "--burst", env=bare_env)
    assert worker.wait(within_s=20) == 0
    assert (Path(bare_env["PROCTOR_DATA_DIR"]) / "server.json").exists()
