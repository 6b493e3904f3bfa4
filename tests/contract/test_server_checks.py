"""Every kind of server is judged alike by `doctor` and at the start, the unfit ones with their reason."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shared.errors import RedisUnreachableError, RedisUnsuitableError
from shared.server import diagnostics
from shared.server.client import RedisTarget
from shared.server.connection import check_server
from shared.server.in_use import resolve_target
from shared.settings import Settings
from tests.support.fake_redis import FakeRedis
from tests.support.redis_server import RedisServer

if TYPE_CHECKING:
    import redis

UNFIT = [
    ({"redis_version": "5.0.14"}, "is version 5.0.14, and 6.2 or newer is needed", "server version"),
    ({"redis_version": "6.0.16"}, "is version 6.0.16, and 6.2 or newer is needed", "server version"),
    ({"redis_mode": "cluster"}, "is a Redis Cluster", "server role"),
    ({"role": "slave"}, "is a read-only replica", "server role"),
    ({"redis_mode": "sentinel"}, "is a sentinel, not a server", "server role"),
    ({"maxmemory_policy": "allkeys-lru"}, r"throws keys away .*allkeys-lru", "eviction"),
]


def settings_for(url: str, folder: Path) -> Settings:
    """Settings that name one server."""
    return Settings(data_dir=folder, redis_url=url, connect_patience_s=2.0)


@pytest.mark.parametrize(("info", "reason", "name"), UNFIT)
def test_an_unfit_server_is_refused_and_reported(
    info: dict[str, str], reason: str, name: str, tmp_path: Path
) -> None:
    """A start ends with exit code 3, the server and the reason; doctor fails the same thing, with a fix."""
    with FakeRedis(info) as server:
        with pytest.raises(RedisUnsuitableError, match=rf"127\.0\.0\.1:\d+ {reason}") as caught:
            resolve_target(settings_for(server.url, tmp_path))
        assert caught.value.exit_code == 3
        assert caught.value.hint
        client = RedisTarget.parse(server.url).client()
        found = {check.name: check for check in (*judge(client.info()),)}
        client.close()
    assert [check.name for check in found.values() if check.status == "fail"] == [name]
    assert found[name].fix


def judge(info: dict[str, object]) -> list[diagnostics.Diagnosis]:
    """All checks that need nothing but `INFO`."""
    return [
        diagnostics.check_version(info),
        diagnostics.check_role(info),
        diagnostics.check_persistence(info, None),
        diagnostics.check_eviction(info),
        diagnostics.check_memory(info),
    ]


@pytest.mark.parametrize("version", ["6.2.0", "7.0.15", "7.2.4", "8.0.1", "10.1.0"])
def test_a_current_version_is_accepted(version: str, tmp_path: Path) -> None:
    """Any version from 6.2 on is fit, also one with two digits in front."""
    with FakeRedis({"redis_version": version}) as server:
        connection = resolve_target(settings_for(server.url, tmp_path))
        connection.lease.close()
    assert not connection.embedded


def test_a_server_that_is_something_else_is_named(tmp_path: Path) -> None:
    """A web server at the address gives an error that names the address, not a traceback."""
    with (
        FakeRedis({}, ping=b"HTTP/1.1 400 Bad Request\r\n\r\n") as server,
        pytest.raises(RedisUnreachableError, match=r"127\.0\.0\.1:\d+/0 does not answer within 0.5 s"),
    ):
        resolve_target(Settings(data_dir=tmp_path, redis_url=server.url, connect_patience_s=0.5))


def test_a_real_server_passes_every_check(redis_client: "redis.Redis") -> None:
    """The server that Proctor would start itself has nothing to complain about."""
    assert check_server(redis_client) == ""
    found = diagnostics.check_server_of(redis_client, workers={"turns": 1})
    assert {check.name: check.status for check in found if check.status != "ok"} == {}
    assert "appendonly yes, appendfsync everysec" in [check.detail for check in found]


def test_a_server_that_evicts_is_refused_as_it_is_configured(redis_server: RedisServer) -> None:
    """The policy is read from the live server."""
    client = redis_server.client()
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(RedisUnsuitableError, match="throws keys away"):
            check_server(client)
    finally:
        client.config_set("maxmemory-policy", "noeviction")
        client.close()


@pytest.mark.parametrize(
    ("info", "appendfsync", "status"),
    [
        ({"aof_enabled": 1}, "everysec", "ok"),
        ({"aof_enabled": 1}, "always", "ok"),
        ({"aof_enabled": 1}, None, "ok"),
        ({"aof_enabled": 1}, "no", "warn"),
        ({"aof_enabled": 0}, "everysec", "warn"),
        ({"aof_enabled": 1, "aof_last_write_status": "err"}, "everysec", "fail"),
    ],
)
def test_what_a_crash_would_lose_is_judged(
    info: dict[str, object], appendfsync: str | None, status: str
) -> None:
    """An append-only file that is off or lazy is a warning, one that cannot be written a failure."""
    assert diagnostics.check_persistence(info, appendfsync).status == status


@pytest.mark.parametrize(
    ("difference_s", "status"), [(0.0, "ok"), (1.9, "ok"), (-3.0, "warn"), (3600.0, "warn")]
)
def test_clocks_that_differ_are_a_warning(difference_s: float, status: str) -> None:
    """Two seconds of difference are normal, more is not; work goes on either way."""
    assert diagnostics.check_clock(1000.0, 1000.0 + difference_s).status == status


def test_a_kind_without_worker_is_a_warning() -> None:
    """Submitting without a worker is allowed, but worth a word."""
    assert diagnostics.check_workers({"turns": 1, "cases": 1}).status == "ok"
    assert diagnostics.check_workers({"turns": 1, "cases": 0}).status == "warn"


def test_this_machine_can_run_an_embedded_server(tmp_path: Path) -> None:
    """On a machine that passes the tests, every check of the machine passes."""
    found = diagnostics.check_machine(tmp_path / "data", embedded=True)
    assert {check.name: check.detail for check in found if check.status == "fail"} == {}
    assert {"python", "server program", "data folder", "locks", "socket path"} <= {
        check.name for check in found
    }


def test_a_data_folder_that_cannot_be_written_fails_and_ends_the_checks_on_it(tmp_path: Path) -> None:
    """The folder's failure is reported with its fix, and nothing else is tried on it."""
    (tmp_path / "file").touch()
    found = {check.name: check for check in diagnostics.check_machine(tmp_path / "file" / "x", embedded=True)}
    assert found["data folder"].status == "fail"
    assert "PROCTOR_DATA_DIR" in found["data folder"].fix
    assert "locks" not in found
