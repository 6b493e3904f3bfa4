"""The embedded server in trouble: frozen, loading, killed, its files broken or swept; never two on one."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import psutil
import pytest
import redis

from shared.errors import RedisUnreachableError
from shared.server.embedded import RunningServer, ensure, launcher
from tests.support.embedded import end_servers_of, ends, guard_pid, server_pid, servers_of
from tests.support.eventually import eventually, pause
from tests.support.processes import is_running
from tests.support.redis_server import break_snapshots

IDLE_S = 5.0


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose server is gone after the test."""
    folder = tmp_path / "data"
    yield folder
    end_servers_of(folder)


@pytest.fixture
def server(data_dir: Path) -> Iterator[RunningServer]:
    """A running server with some data."""
    with ensure(data_dir, idle_s=IDLE_S) as running:
        running.client.set("old", "data")
        yield running


def write_aof(data_dir: Path, commands: bytes) -> None:
    """Writes an append-only file as a server before us would have left it."""
    folder = data_dir / "appendonlydir"
    folder.mkdir(parents=True)
    (folder / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    (folder / "appendonly.aof.1.incr.aof").write_bytes(commands)


def command(*words: str) -> bytes:
    """Encodes one command as it stands in an append-only file."""
    lines = [f"*{len(words)}"]
    for word in words:
        lines += [f"${len(word)}", word]
    return "\r\n".join([*lines, ""]).encode()


@pytest.mark.chaos
def test_a_frozen_server_is_still_a_server(data_dir: Path, server: RunningServer) -> None:
    """With the server frozen, a caller waits for its patience and gives up; no second server is started."""
    frozen = server_pid(server)
    os.kill(frozen, signal.SIGSTOP)
    with pytest.raises(
        RedisUnreachableError, match=f"process {frozen}.* does not answer within 1.2 s"
    ) as caught:
        ensure(data_dir, idle_s=IDLE_S, patience_s=1.2)
    assert f"kill -CONT {frozen}" in caught.value.hint
    assert [process.pid for process in servers_of(data_dir)] == [frozen]
    os.kill(frozen, signal.SIGCONT)
    with ensure(data_dir, idle_s=IDLE_S) as again:
        assert server_pid(again) == frozen


@pytest.mark.chaos
def test_a_frozen_server_that_thaws_in_time_is_joined(data_dir: Path, server: RunningServer) -> None:
    """A caller whose patience outlasts the freeze gets the same server."""
    frozen = server_pid(server)
    os.kill(frozen, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        caller = pool.submit(ensure, data_dir, idle_s=IDLE_S, patience_s=10.0)
        with pytest.raises(TimeoutError):
            caller.result(0.5)
        os.kill(frozen, signal.SIGCONT)
        with caller.result(10) as again:
            assert server_pid(again) == frozen


@pytest.mark.chaos
def test_a_frozen_guard_keeps_nobody_out(data_dir: Path, server: RunningServer) -> None:
    """Joining needs no answer of the guard."""
    guard = guard_pid(server)
    os.kill(guard, signal.SIGSTOP)
    with ensure(data_dir, idle_s=IDLE_S) as again:
        assert server_pid(again) == server_pid(server)
    os.kill(guard, signal.SIGCONT)


@pytest.mark.slow
def test_a_loading_server_is_a_server_and_is_waited_for(data_dir: Path) -> None:
    """All callers wait while a big file loads, longer than they would for silence, and get one server."""
    slow = command("EVAL", "for i = 1, 10000 do end return redis.call('incr', KEYS[1])", "1", "count")
    write_aof(data_dir, slow * 65_536)  # a loading server answers after each 1,024 commands, 64 times in all
    begun = monotonic()
    with ThreadPoolExecutor() as pool, ExitStack() as stack:
        callers = [pool.submit(ensure, data_dir, idle_s=IDLE_S, patience_s=0.8) for _ in range(3)]
        servers = [stack.enter_context(caller.result(60)) for caller in callers]
        assert monotonic() - begun > 0.8, "it loaded too fast to show anything"
        assert len({server_pid(server) for server in servers}) == 1
        assert servers[0].client.get("count") == b"65536"
    log = (data_dir / "server.log").read_text()
    assert log.count("just started") == 1
    assert "DB loaded from append only file" in log or "DB loaded from incr file" in log


def test_a_broken_file_is_reported_with_the_servers_own_message(data_dir: Path) -> None:
    """A server that refuses its data ends at once: the error quotes its last line, and nothing runs on."""
    write_aof(data_dir, command("SET", "a", "1") + b"*garbage\r\n" + command("SET", "b", "2"))
    with pytest.raises(RedisUnreachableError, match=r"ended at once: .*Bad file format") as caught:
        ensure(data_dir, idle_s=IDLE_S)
    assert caught.value.exit_code == 3
    assert str(data_dir / "server.log") in caught.value.hint
    assert not servers_of(data_dir)


def test_a_file_cut_short_by_a_crash_is_no_obstacle(data_dir: Path) -> None:
    """A half-written last command, as after a power cut, costs that command only."""
    write_aof(data_dir, command("SET", "a", "1") + command("SET", "b", "2")[:-4])
    with ensure(data_dir, idle_s=IDLE_S) as server:
        assert server.client.keys() == [b"a"]


@pytest.mark.chaos
def test_a_killed_server_is_started_again(data_dir: Path, server: RunningServer) -> None:
    """After SIGKILL of the server the guard starts it again, on the same socket, with all data."""
    killed = server_pid(server)
    os.kill(killed, signal.SIGKILL)

    def is_back() -> int:
        assert server.client.get("old") == b"data"
        return server_pid(server)

    assert eventually(is_back) != killed
    assert len(servers_of(data_dir)) == 1


@pytest.mark.chaos
def test_a_server_that_keeps_crashing_is_given_up(data_dir: Path, server: RunningServer) -> None:
    """After some crashes in a minute the guard gives up, and the next caller starts afresh."""
    guard = guard_pid(server)

    def only_server() -> psutil.Process:
        (process,) = servers_of(data_dir)
        return process

    for _ in range(6):
        process = eventually(only_server)
        process.kill()
        ends(process.pid)
    ends(guard)
    assert not servers_of(data_dir)
    with ensure(data_dir, idle_s=IDLE_S) as fresh:
        assert fresh.client.get("old") == b"data"


@pytest.mark.chaos
def test_a_swept_socket_folder_is_made_again(data_dir: Path, server: RunningServer) -> None:
    """When the runtime folder is deleted, as at log-out, the server listens there again, with its data."""

    def is_watched() -> None:
        assert len(server.client.client_list()) > 1

    eventually(is_watched)
    shutil.rmtree(server.socket.parent.parent)
    with ensure(data_dir, idle_s=IDLE_S) as again:
        assert again.socket == server.socket
        assert again.client.get("old") == b"data"
    assert server.client.get("old") == b"data"
    assert len(servers_of(data_dir)) == 1


@pytest.mark.chaos
def test_a_deleted_data_folder_takes_its_server_with_it(data_dir: Path, server: RunningServer) -> None:
    """A server whose data were deleted ends; a caller that comes at once gets a new, empty one."""
    old, guard = server_pid(server), guard_pid(server)
    shutil.rmtree(data_dir)
    with ensure(data_dir, idle_s=IDLE_S) as fresh:
        new = server_pid(fresh)
        assert new != old
        assert fresh.client.keys() == []
        ends(old)
        ends(guard)
        assert is_running(new)
        assert fresh.client.ping()


def test_a_held_lock_is_not_waited_for_forever(data_dir: Path, server: RunningServer) -> None:
    """A process that hangs while it holds the folder's lock costs others their patience, not their day."""
    with (data_dir / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RedisUnreachableError, match="another process holds its lock"):
            ensure(data_dir, idle_s=IDLE_S, patience_s=0.3)
    assert isinstance(server.client, redis.Redis)


def test_a_queue_of_slow_starters_is_waited_for(
    data_dir: Path, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five starters that hold the lock for long, each shorter than the patience, all get the server."""
    answers = launcher._answers

    def slowly(client: redis.Redis) -> bool:
        pause(0.4)
        return answers(client)

    monkeypatch.setattr(launcher, "_answers", slowly)
    with ThreadPoolExecutor() as pool, ExitStack() as stack:
        callers = [pool.submit(ensure, data_dir, idle_s=IDLE_S, patience_s=1.0) for _ in range(5)]
        joined = [stack.enter_context(caller.result(20)) for caller in callers]
        assert {server_pid(one) for one in joined} == {server_pid(server)}


def test_a_server_that_was_idle_before_its_starter_looked_is_started_again(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a starter may look so late that its server has stopped for want of a client."""
    wait, log = launcher._wait, data_dir / "server.log"

    def late(_seconds: float) -> None:
        """The first look after the start comes when the server has gone."""

        def has_gone() -> None:
            """Nobody has used it, and it has ended."""
            assert "nobody has used it" in log.read_text()
            assert not servers_of(data_dir)

        monkeypatch.setattr(launcher, "_wait", wait)
        eventually(has_gone)

    monkeypatch.setattr(launcher, "_wait", late)
    with ensure(data_dir, idle_s=0.5) as server:
        assert server.client.ping()
    assert log.read_text().count("just started") == 2


LIBRARY_LOADED_UNDER_LOCK = """
import json, sys
from pathlib import Path
from shared.server.embedded import ensure, launcher

take, seen = launcher._try_lock, []
launcher._try_lock = lambda *a: seen.append("redis" in sys.modules) or take(*a)
ensure(Path(sys.argv[1]), idle_s=5.0).close()
print(json.dumps(seen))
"""


def test_nothing_is_imported_while_the_lock_is_held(
    data_dir: Path, server: RunningServer, bare_env: dict[str, str], python: str
) -> None:
    """A starter has the client library before it takes the lock, because the import can take seconds."""
    command: list[str | Path] = [python, "-c", LIBRARY_LOADED_UNDER_LOCK, data_dir]
    done = subprocess.run(command, env=bare_env, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)[0] is True
    assert server.client.ping()


@pytest.mark.parametrize(
    "reply", [b"-MISCONF Errors writing to the AOF file: No space left on device", b"+PONG"]
)
def test_any_reply_but_loading_is_a_sign_of_life(reply: bytes) -> None:
    """A server with a full disk refuses even a ping: it can be joined, since reads work."""
    assert launcher._is_ready(reply)
    assert not launcher._is_ready(b"-LOADING Redis is loading the dataset in memory")
    assert not launcher._is_ready(b"")


def test_a_server_with_a_full_disk_is_joined_at_once(data_dir: Path, server: RunningServer) -> None:
    """With MISCONF on every write the next caller gets the server, and can read."""
    break_snapshots(data_dir, server.client)
    with ensure(data_dir, idle_s=IDLE_S, patience_s=5.0) as again:
        assert again.client.get("old") == b"data"
