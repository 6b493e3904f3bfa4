"""States how scripts are run: loaded when the server forgot them, sent again while it is away."""

import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import redis
from redis import exceptions

from shared.errors import RedisUnreachableError
from shared.ledger.ledger import Ledger
from shared.ledger.scripts import FOLDER, NAMES, compose, functions_of, ledger_library
from shared.ledger.times import TIMES
from shared.server.client import RedisTarget
from tests.support.ledger_runs import decide_all, rows_of, state_of, submit_cases
from tests.support.redis_server import RedisServer
from worker.upstream.stack import FOLDER as UPSTREAM_FOLDER
from worker.upstream.stack import upstream_library


class FaultyRedis:
    """A client that raises what a test wants, before or after the command reached the server."""

    def __init__(self, client: "redis.Redis") -> None:
        self.client: Any = client
        self.before: list[Exception] = []
        self.after: list[Exception] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def evalsha(self, *args: Any) -> Any:
        """Sends a script, or says that it could not."""
        if self.before:
            raise self.before.pop(0)
        return self.lose(self.client.evalsha(*args))

    def eval(self, *args: Any) -> Any:
        """Sends a script that the server did not know."""
        return self.lose(self.client.eval(*args))

    def lose(self, answer: Any) -> Any:
        """Hands an answer on, or loses it."""
        if self.after:
            raise self.after.pop(0)
        return answer


@pytest.fixture
def faulty(redis_client: "redis.Redis") -> FaultyRedis:
    """A client with faults on an empty server."""
    return FaultyRedis(redis_client)


@pytest.fixture
def ledger(faulty: FaultyRedis) -> Ledger:
    """A ledger on the client with faults, that has a second of patience."""
    return Ledger(faulty, patience_s=1.0)  # type: ignore[arg-type]  # a client in all that is used


@pytest.mark.parametrize("name", NAMES)
def test_every_script_is_understood_and_alone(redis_client: "redis.Redis", name: str) -> None:
    """A script is put together from what it names, and compiles."""
    script = compose(name, ledger_library(TIMES))
    assert redis_client.script_load(script.text) in {script.sha, script.sha.encode()}


FOLDERS = (FOLDER, UPSTREAM_FOLDER)
FILES = [file for folder in FOLDERS for file in sorted(folder.glob("lib/*.lua"))]
FUNCTIONS = {**functions_of(FOLDER), **functions_of(UPSTREAM_FOLDER)}
SCRIPTS = {file.stem: file.read_text() for folder in FOLDERS for file in sorted(folder.glob("*.lua"))}
SOURCES = {**SCRIPTS, **FUNCTIONS}
"""Everything that has a header: scripts and functions."""
LIBRARY = upstream_library(TIMES)


@pytest.mark.parametrize("name", SOURCES)
def test_a_script_or_function_says_what_it_is_for(name: str) -> None:
    """Its first line is a comment."""
    assert SOURCES[name].startswith("-- ")


def test_what_a_script_uses_is_read_from_its_code() -> None:
    """Names in comments and names of its own are no part of it."""
    text = "-- run_key\nlocal chunk_key = BULK -- now\nreturn chunk_key .. tostring(LEASE_MS)\n"
    assert LIBRARY.names_used(text) == ["BULK", "LEASE_MS"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_functions_reads_from_top_to_bottom(file: Path) -> None:
    """A function stands below those of its file that it uses, and something uses it."""
    text = file.read_text()
    places = {name: text.index(source) for name, source in FUNCTIONS.items() if source in text}
    assert text.count("\n\n") == len(places), "no blank line within a function"
    for name, place in places.items():
        assert all(places.get(used, -1) < place for used in LIBRARY.names_used(FUNCTIONS[name])), name
    assert set(places) <= {used for source in SOURCES.values() for used in LIBRARY.names_used(source)}


def test_a_server_that_forgot_the_scripts_gets_them_again(
    ledger: Ledger, redis_client: "redis.Redis"
) -> None:
    """After a restart or SCRIPT FLUSH the next call loads what it needs by itself."""
    wakes = submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    redis_client.script_flush()
    assert len(decide_all(ledger, wakes)) == 3
    assert state_of(redis_client, "r1")["state"] == "finished"


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ConnectionError("Connection reset by peer"),
        exceptions.TimeoutError("Timeout reading from socket"),
        exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
        exceptions.ReadOnlyError("You can't write against a read only replica."),
        exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
        exceptions.MasterDownError("Link with MASTER is down"),
        exceptions.ResponseError("BUSY Redis is busy running a script."),
        exceptions.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"),
    ],
)
def test_passing_faults_are_waited_out(ledger: Ledger, faulty: FaultyRedis, error: Exception) -> None:
    """What passes by itself costs a short wait, not the call."""
    faulty.before = [error, error, error]
    wakes = submit_cases(ledger, "r1", [["0"]])
    assert len(wakes) == 1


def test_a_lost_reply_changes_nothing(ledger: Ledger, faulty: FaultyRedis) -> None:
    """A script whose reply was lost is sent again, and what it did is there once."""
    lost = exceptions.ConnectionError("Connection closed by server.")
    submit_cases(ledger, "r1", [["0", "1"]])
    claim = ledger.claim("r1", "0", "token", "w1")
    faulty.after = [lost]
    assert ledger.claim("r1", "0", "token", "w1") == claim
    faulty.after = [lost]
    rows = rows_of(claim)
    assert ledger.commit("r1", "0", "token", rows, back=False).accepted == [False, False]
    faulty.after = [lost]
    assert ledger.commit("r1", "0", "token", [], back=True).status == "lost"
    assert state_of(faulty.client, "r1")["done"] == "2"


def test_patience_ends(ledger: Ledger, faulty: FaultyRedis) -> None:
    """After the patience is over the call fails with an error for people, and keeps its cause."""
    faulty.before = [exceptions.ConnectionError("Connection refused")] * 1000
    before = monotonic()
    with pytest.raises(RedisUnreachableError, match="does not answer: Connection refused") as caught:
        ledger.tick("w1", ["cases"], 1)
    assert 0.3 < monotonic() - before < 5
    assert isinstance(caught.value.__cause__, exceptions.ConnectionError)
    assert caught.value.exit_code == 3


def test_a_refused_password_is_reported_at_once(ledger: Ledger, faulty: FaultyRedis) -> None:
    """No waiting mends a wrong password."""
    faulty.before = [exceptions.AuthenticationError("WRONGPASS invalid username-password pair")]
    before = monotonic()
    with pytest.raises(RedisUnreachableError, match="WRONGPASS"):
        ledger.tick("w1", ["cases"], 1)
    assert monotonic() - before < 0.4


def test_errors_of_ours_are_not_hidden(ledger: Ledger, faulty: FaultyRedis) -> None:
    """What a script does wrong is an error at once, not a Redis that is away."""
    faulty.before = [exceptions.ResponseError("ERR user_script:1: something")]
    with pytest.raises(exceptions.ResponseError):
        ledger.tick("w1", ["cases"], 1)


def test_a_restarted_server_goes_on(new_redis_server: Callable[..., RedisServer]) -> None:
    """A server killed between two calls comes back with what was on disk, and the client goes on."""
    server = new_redis_server("--appendfsync", "always")
    with closing(server.client()) as client:
        ledger = Ledger(client, patience_s=20)
        wakes = submit_cases(ledger, "r1", [["0"]])
        assert ledger.wait_durable(5) or server.program
        server.restart()
        decide_all(ledger, wakes)
        assert state_of(client, "r1")["state"] == "finished"


def test_threads_share_a_ledger(redis_client: "redis.Redis") -> None:
    """Many threads work through one ledger at a time, each on a connection of its own."""
    ledger = Ledger(redis_client)
    ledger.tick("w1", ["cases"], 32)
    wakes = submit_cases(ledger, "r1", [[str(at)] for at in range(60)])
    queues = [wakes[start::4] for start in range(4)]
    errors: list[Exception] = []

    def work(queue: list[Any]) -> None:
        try:
            decide_all(ledger, queue)
        except Exception as error:  # noqa: BLE001 - reported by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(queue,)) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not errors
    assert state_of(redis_client, "r1")["state"] == "finished"


def test_a_silent_server_costs_the_patience_and_no_more(tmp_path: Path) -> None:
    """A server that accepts and never answers is given up in time."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with closing(RedisTarget.parse(f"unix://{path}").client(socket_timeout_s=0.2)) as client:
            before = monotonic()
            with pytest.raises(RedisUnreachableError):
                Ledger(client, patience_s=0.6).backlog()
            assert monotonic() - before < 10
