"""Redis goes away while somebody watches: the command says so, waits, goes on, and gives up in time."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import Cli
from tests.support.processes import is_running
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT

EXAMPLE: Final = ROOT / "examples" / "turns.jsonl"

pytestmark = pytest.mark.chaos


@pytest.fixture
def server(new_redis_server: Callable[..., RedisServer], cli: Cli) -> RedisServer:
    """A server of the test's own that every command of the test uses."""
    server = new_redis_server()
    cli.processes.env["PROCTOR_REDIS_URL"] = server.url
    return server


def test_watch_goes_on_when_redis_is_back(cli: Cli, server: RedisServer) -> None:
    """`watch` tells that Redis is away and, once it is back and the run is worked, ends with the run."""
    run = cli("submit", EXAMPLE).out.strip()
    watching = cli.start("watch", run)
    watching.wait_for("no worker is alive")
    server.kill()
    watching.wait_for("Redis does not answer; waiting for it")
    server.start()
    assert cli("worker", "--processes", "1", "-Q", "turns", "--burst").code == 0
    assert watching.wait(20) == 0, watching.output_text()
    assert "finished: 61 turns" in watching.output


def test_watch_gives_up_after_its_patience(cli: Cli, server: RedisServer) -> None:
    """A Redis that stays away is exit code 3 after the patience, with one line and a way to come back."""
    run = cli("submit", EXAMPLE).out.strip()
    watching = cli.start("watch", run, "--json", env={"PROCTOR_PATIENCE_S": "1"})
    watching.wait_for("no worker is alive")
    server.kill()
    assert watching.wait(20) == 3
    error = json.loads(watching.output)["error"]
    assert error["code"] == "redis_unreachable"
    assert f"proctor watch {run}" in error["hint"]


def test_frozen_redis_is_unreachable_in_time(cli: Cli, server: RedisServer) -> None:
    """A server that accepts connections and never answers is exit code 3 within the connect patience."""
    server.freeze()
    try:
        done = cli("status", "--json", env={"PROCTOR_CONNECT_PATIENCE_S": "1"}, within_s=15)
    finally:
        server.thaw()
    assert done.code == 3
    assert json.loads(done.out)["error"]["code"] == "redis_unreachable"


def test_killed_embedded_redis_is_started_again(cli: Cli, tmp_path: Path) -> None:
    """When the embedded server is killed under a watched run, the watcher starts it again and goes on."""
    run = cli("submit", EXAMPLE).out.strip()
    watching = cli.start("watch", run)
    watching.wait_for("no worker is alive")
    [file] = (tmp_path / "data").glob("*.pid")
    pid = int(file.read_text())
    os.kill(pid, signal.SIGKILL)
    cli.eventually(lambda: not is_running(pid))
    assert cli("worker", "--processes", "1", "-Q", "turns", "--burst").code == 0
    assert watching.wait(20) == 0, watching.output_text()
