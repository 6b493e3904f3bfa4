"""Which Redis is used, and how long it takes to say that there is none."""

import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from celery import Celery

from shared.errors import ConfigError, RedisUnreachableError
from shared.server.client import RedisTarget
from shared.server.connection import ping_until
from shared.server.in_use import resolve_target
from shared.settings import Settings
from tests.support.embedded import end_servers_of
from tests.support.redis_server import RedisServer

FRESH_S = 1.0


def unreachable(url: str, folder: Path, patience_s: float = FRESH_S) -> RedisUnreachableError:
    """The error that a URL leads to; fails when it takes much longer than its patience."""
    begun = monotonic()
    with pytest.raises(RedisUnreachableError) as caught:
        resolve_target(Settings(data_dir=folder, redis_url=url, connect_patience_s=patience_s))
    assert monotonic() - begun < patience_s + 1.0
    assert caught.value.exit_code == 3
    return caught.value


def test_a_flag_wins_over_the_environment(redis_url: str, tmp_path: Path) -> None:
    """`--redis` is used for ledger and queue, whatever the environment says."""
    settings = Settings(data_dir=tmp_path, redis_url="redis://nobody:1", broker_url="redis://nobody:2")
    connection = resolve_target(settings, redis_flag=redis_url)
    assert connection.target == connection.broker == RedisTarget.parse(redis_url)
    assert not connection.embedded


def test_the_environment_wins_over_the_embedded_server(redis_url: str, tmp_path: Path) -> None:
    """With a URL, nothing is started and the data folder is not even made."""
    data_dir = tmp_path / "data"
    connection = resolve_target(Settings(data_dir=data_dir, redis_url=redis_url))
    connection.lease.close()
    assert not data_dir.exists()


def test_without_a_url_the_embedded_server_is_used(tmp_path: Path) -> None:
    """Ledger and queue are the data folder's own server, alive as long as the lease."""
    data_dir = tmp_path / "data"
    connection = resolve_target(Settings(data_dir=data_dir, embedded_idle_s=1.0))
    assert connection.embedded
    assert connection.target == connection.broker
    with connection.target.client() as client:
        assert client.config_get("dir")["dir"] == str(data_dir)
    connection.lease.close()
    end_servers_of(data_dir)


def test_the_queue_may_be_another_server(
    redis_url: str, tmp_path: Path, new_redis_server: Callable[[], RedisServer]
) -> None:
    """`PROCTOR_BROKER_URL` is the queue's server only; it is looked at, too."""
    other = new_redis_server()
    connection = resolve_target(Settings(data_dir=tmp_path, redis_url=redis_url, broker_url=other.url))
    assert connection.target.redis_url == redis_url
    assert connection.broker == RedisTarget.parse(other.url)
    with pytest.raises(RedisUnreachableError, match=r"redis://127\.0\.0\.1:1/0"):
        resolve_target(
            Settings(
                data_dir=tmp_path,
                redis_url=redis_url,
                broker_url="redis://127.0.0.1:1",
                connect_patience_s=0.2,
            )
        )


def test_a_refused_connection_is_reported_with_the_host(tmp_path: Path) -> None:
    """Nobody listens: the error names host and port, and says what to do."""
    error = unreachable("redis://:geheim@127.0.0.1:1/0", tmp_path)
    assert "redis://:***@127.0.0.1:1/0 does not answer within 1 s" in str(error)
    assert "Connection refused" in str(error)
    assert "PROCTOR_REDIS_URL" in error.hint


def test_an_unknown_host_is_reported_in_time(tmp_path: Path) -> None:
    """A name that nobody knows: neither a traceback nor a long wait for name servers."""
    assert "no-such-host.invalid" in str(unreachable("redis://no-such-host.invalid", tmp_path))


def test_a_missing_socket_is_reported_with_its_path(tmp_path: Path) -> None:
    """A unix socket that is not there is named."""
    assert f"unix://{tmp_path}/s" in str(unreachable(f"unix://{tmp_path}/s", tmp_path, 0.3))


def test_a_host_that_swallows_everything_is_given_up_in_time(tmp_path: Path) -> None:
    """A server that accepts and never answers costs the patience, not a socket's timeout."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        assert "it is silent" in str(unreachable(f"redis://127.0.0.1:{port}", tmp_path))


@pytest.mark.chaos
def test_a_frozen_server_is_given_up_in_time(
    tmp_path: Path, new_redis_server: Callable[[], RedisServer]
) -> None:
    """A server that hangs costs the patience and no more."""
    server = new_redis_server()
    server.freeze()
    try:
        unreachable(server.url, tmp_path)
    finally:
        server.thaw()


def test_wrong_credentials_are_reported_at_once(
    tmp_path: Path, new_redis_server: Callable[..., RedisServer]
) -> None:
    """A wrong or missing password is not waited for, and not shown."""
    server = new_redis_server()
    with server.client() as client:
        client.acl_setuser(
            "x", enabled=True, passwords="+right", keys=["*"], channels=["*"], categories=["+@all"]
        )
    begun = monotonic()
    error = unreachable(f"unix://x:geheim@{server.socket}", tmp_path, 5.0)
    assert monotonic() - begun < 2.0
    assert "refuses us" in str(error)
    assert "geheim" not in f"{error} {error.hint}"
    connection = resolve_target(Settings(data_dir=tmp_path, redis_url=f"unix://x:right@{server.socket}"))
    assert connection.target.display == f"unix://x:***@{server.socket}"


def test_a_server_that_comes_in_time_is_used(new_redis_server: Callable[[], RedisServer]) -> None:
    """A server that is just being restarted is waited for."""
    server = new_redis_server()
    server.kill()
    server.start(wait=False)
    with RedisTarget.parse(server.url).client() as client:
        ping_until(client, 10.0)


def test_a_wrong_url_reaches_no_network(tmp_path: Path) -> None:
    """A mistyped URL is a configuration error at once, from the flag as from the environment."""
    with pytest.raises(ConfigError, match="'lokalhost' names no Redis server"):
        resolve_target(Settings(data_dir=tmp_path), redis_flag="lokalhost")
    with pytest.raises(ConfigError, match="names no Redis server"):
        resolve_target(Settings(data_dir=tmp_path, redis_url="redis//db"))


def test_celery_reaches_the_server_by_the_same_target(redis_server: RedisServer) -> None:
    """The URL for Celery names the same server and database as the one for redis-py."""
    target = RedisTarget.parse(f"{redis_server.url}?db=3")
    with Celery(broker=target.celery_url).connection_for_write() as connection:
        channel: Any = connection.default_channel
        channel.client.set("from", "celery")
    with target.client(decode=True) as client:
        assert client.get("from") == "celery"
        client.flushdb()
    assert os.environ.get("PROCTOR_REDIS_URL") is None
