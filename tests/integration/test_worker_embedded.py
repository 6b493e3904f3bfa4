"""Workers without a URL: the data folder's own server is started, kept, and let go."""

import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from shared.server.embedded import ensure
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.workers import Desk, conversation, start_supervisor


def guard_of(data_dir: Path) -> psutil.Process:
    """The guard of the data folder's server, its parent."""
    with closing(ensure(data_dir, idle_s=1)) as server:
        guard = psutil.Process(server.client.info("server")["process_id"]).parent()
    assert guard is not None
    return guard


@pytest.mark.chaos
def test_an_embedded_server_whose_guard_was_killed_comes_back(
    processes: Processes, bare_env: dict[str, str]
) -> None:
    """Guard and server are gone; the supervisor starts them again, and the same process works on."""
    supervisor = start_supervisor(processes, 1, "-Q", "turns", env=bare_env)
    data_dir = Path(bare_env["PROCTOR_DATA_DIR"])
    guard = guard_of(data_dir)
    guard.kill()

    def is_back() -> None:
        assert "Connected" in supervisor.errors.split("connection to the broker is lost")[1]

    eventually(is_back, 30)
    assert guard_of(data_dir).pid != guard.pid
    server = ensure(data_dir, idle_s=1)
    with closing(Desk(server.client, server.target.redis_url)) as desk:
        desk.submit("r1", conversation(threads=5, turns=5))
        desk.finished("r1", within_s=60)
    assert supervisor.errors.count("ready ") == 1
    assert supervisor.stop() == 0


def test_one_process_alone_starts_the_server_too(processes: Processes, bare_env: dict[str, str]) -> None:
    """`python -m worker --burst` needs nothing: it starts a server, finds no work, and ends."""
    worker = processes.start(sys.executable, "-m", "worker", "--burst", env=bare_env)
    assert worker.wait(within_s=20) == 0
    assert (Path(bare_env["PROCTOR_DATA_DIR"]) / "server.json").exists()
