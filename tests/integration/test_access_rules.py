"""A Redis user with the rights that `proctor doctor --acl` prints runs everything; a missing one is named."""

import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

from shared.errors import RedisDeniedError, RedisUnsuitableError
from shared.ledger.ledger import Ledger
from shared.ledger.scripts import compose_all
from shared.server.client import RedisTarget
from shared.server.in_use import resolve_target
from shared.server.requirements import acl_line, commands, server_version
from shared.settings import Settings
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.smoke import Smoke
from worker.upstream.stack import compose_all as upstream_scripts

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD: Final = "s3cret"  # noqa: S105 - of servers that live for a test
CALL: Final = re.compile(r"\b(?:redis\.)?p?call\(\s*'([A-Za-z]+)'")
RARE: Final = {
    "select": "a URL with a database other than 0",
    "rpop": "Celery takes a message without waiting",
    "watch": "Celery gives back what a dead worker had fetched",
    "unwatch": "as above",
    "client|setinfo": "the client library introduces itself",
    "waitaof": "a submit waits for the disk",
    "blpop": "`proctor serve` waits for runs that end",
    "expire": "`proctor runs forget` writes texts anew",
    "memory|usage": "the largest runs of a server that is full",
}
"""Rights that neither a script nor the runs below use, and what does."""
NEEDS_NONE: Final = {"auth", "hello", "quit", "reset"}
"""Commands that every user may call."""


@pytest.fixture
def server(new_redis_server: Callable[..., RedisServer]) -> RedisServer:
    """A server of the test's own, with our user."""
    started = new_redis_server()
    with started.client() as client:
        client.execute_command(*acl_line(server_version(client.info()), password=PASSWORD).split())
    return started


@pytest.fixture
def admin(server: RedisServer) -> Iterator[Any]:
    """A client of the default user, who may do all; redis-py has no types for what is done with it."""
    with server.client(decode_responses=True) as client:
        yield client


@pytest.fixture
def url(server: RedisServer) -> str:
    """The server as our user."""
    return f"unix://proctor:{PASSWORD}@{server.socket}"


def denials(admin: Any) -> list[str]:
    """What the server refused since the log was emptied."""
    return [f"{entry['reason']} {entry['object']} {entry['username']}" for entry in admin.acl_log()]


def test_the_rights_are_enough_and_none_is_left_over(admin: Any, url: str, processes: Processes) -> None:
    """All kinds, looking, changing limits, removing: nothing is refused, and every right has its use."""
    admin.config_resetstat()
    smoke = Smoke(processes, url)
    worker = smoke.worker()
    runs = smoke.all_kinds()
    turns, cases = runs["turns"].run, runs["cases"].run
    for arguments in (
        ("status",),
        ("results", cases),
        ("watch", turns),
        ("limits", "set", "openai/gpt-4o", "--rpm", "5"),
        ("cache", "info"),
        ("threads", "list"),
        ("cache", "clear", "--yes"),
        ("runs", "rm", turns, "--yes"),
        ("worker", "--burst", "--processes", "1"),
    ):
        command = smoke.start(*arguments)
        assert command.wait(40) == 0, command.output_text()
    assert worker.stop() == 0
    assert denials(admin) == []
    known = set(commands(server_version(admin.info())))
    stats: Any = admin.info("commandstats")
    used = {name.removeprefix("cmdstat_") for name in stats}
    scripts = {**compose_all(), **upstream_scripts()}
    called = {name.lower() for script in scripts.values() for name in CALL.findall(script.text)}
    assert called <= known
    left = known - called - used - set(RARE)
    assert not {name for name in left if name.partition("|")[0] not in used}  # 6.2 counts no subcommands


@pytest.mark.parametrize(
    ("change", "what"),
    [("-ping", "'ping' command"), ("-info", "'info' command"), ("resetchannels", "channel")],
)
def test_a_missing_right_is_no_outage(admin: Any, url: str, tmp_path: "Path", change: str, what: str) -> None:
    """At the start: at once, exit code 3, the right that is missing and where to find all of them."""
    admin.execute_command("ACL", "SETUSER", "proctor", change)
    with pytest.raises(RedisDeniedError, match=what) as caught:
        resolve_target(Settings(data_dir=tmp_path, redis_url=url, connect_patience_s=5.0))
    assert "does not answer" not in caught.value.message
    assert "proctor doctor --acl" in caught.value.hint


@pytest.mark.parametrize("change", ["-evalsha", "-hset", "resetkeys"])
def test_a_right_that_is_taken_away_is_no_outage(admin: Any, url: str, change: str) -> None:
    """While working: the ledger does not wait for what no waiting mends."""
    with RedisTarget.parse(url).client() as client:
        ledger = Ledger(client, patience_s=30.0)
        admin.execute_command("ACL", "SETUSER", "proctor", change)
        with pytest.raises(RedisDeniedError, match="denies our user a right"):
            ledger.open("r1", kind="turns", namespace="", key="", token="t", snapshot=b"{}", ttl_s=60)  # noqa: S106 - a claim


@pytest.mark.parametrize("rights", [("evalsha", "eval"), ("brpop",)], ids=["ledger", "broker"])
def test_a_worker_without_its_rights_ends_in_one_line(
    admin: Any, url: str, processes: Processes, rights: tuple[str, ...]
) -> None:
    """Rights taken away under a worker: exit code 3 and one line that names the right, no traceback."""
    worker = Smoke(processes, url).worker()
    admin.execute_command("ACL", "SETUSER", "proctor", *(f"-{right}" for right in rights))
    assert worker.wait(20) == 3, worker.output_text()
    assert re.search(f"denies our user a right: .*{rights[0]}", worker.errors, re.IGNORECASE), (
        worker.output_text()
    )
    assert "Traceback" not in worker.errors


def test_a_worker_that_may_not_listen_does_not_start(admin: Any, url: str, processes: Processes) -> None:
    """Redis compares patterns of PSUBSCRIBE literally, so a wider one is not enough: one line says so."""
    admin.execute_command("ACL", "SETUSER", "proctor", "resetchannels", "&proctor:*")
    worker = processes.start(sys.executable, "-m", "worker", env={**processes.env, "PROCTOR_REDIS_URL": url})
    assert worker.wait(20) == 3, worker.output_text()
    assert "error: Redis at unix://" in worker.errors
    assert "denies our user a right" in worker.errors
    assert "Traceback" not in worker.errors


def test_a_database_that_is_not_there_is_named(server: RedisServer, tmp_path: "Path") -> None:
    """A number beyond the server's databases is a wrong URL, and not an outage."""
    settings = Settings(data_dir=tmp_path, redis_url=f"{server.url}?db=99", connect_patience_s=5.0)
    with pytest.raises(RedisUnsuitableError, match="does not have the database of the URL") as caught:
        resolve_target(settings)
    assert "databases" in caught.value.hint


def test_doctor_prints_the_line(admin: Any, url: str, processes: Processes) -> None:
    """The line fits the server's version and the URL's database, and is all that is printed."""
    command = Smoke(processes, f"{url}?db=2").start("doctor", "--acl")
    assert command.wait(20) == 0, command.output_text()
    assert command.output.strip() == acl_line(server_version(admin.info()), database=2)
    assert not command.errors
