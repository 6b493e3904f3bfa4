"""A server behind sentinels is found by its master's name, by redis-py and Celery alike, with passwords."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from shared.server.client import RedisTarget
from shared.server.in_use import resolve_target
from shared.settings import Settings
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer, program_for_tests


@pytest.fixture
def sentinel_url(tmp_path: Path, processes: Processes) -> Iterator[str]:
    """A server with a password, and one sentinel, with another password, that watches it."""
    port, sentinel_port = free_port(), free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {sentinel_port}\nbind 127.0.0.1\ndir {tmp_path}\nrequirepass other\n"
        f"sentinel monitor main 127.0.0.1 {port} 1\nsentinel auth-pass main right\n"
    )
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer("--bind", "127.0.0.1"))
        with server.client() as client:
            client.config_set("port", port)
            client.config_set("requirepass", "right")
        processes.start(program_for_tests(), config, "--sentinel", env=dict(os.environ), cwd=tmp_path)
        yield f"sentinel://:right@127.0.0.1:{sentinel_port}/main/2?sentinel_password=other"


def test_the_master_is_found_through_its_sentinel(sentinel_url: str, tmp_path: Path) -> None:
    """The start looks at the master, and clients of the target read and write its database."""
    settings = Settings(data_dir=tmp_path, redis_url=sentinel_url, connect_patience_s=10.0)
    connection = resolve_target(settings)
    with connection.target.client(decode=True) as client:
        client.set("a", "b")
        assert client.get("a") == "b"
        assert client.client_info()["db"] == 2
    assert "right" not in connection.target.display
    assert "other" not in connection.target.display


def test_celery_finds_the_same_master(sentinel_url: str) -> None:
    """URL and transport options of the target lead Celery to the same database."""
    target = RedisTarget.parse(sentinel_url)
    app = Celery(broker=target.celery_url, broker_transport_options=dict(target.transport_options))

    def write() -> None:
        with app.connection_for_write() as connection:
            channel: Any = connection.default_channel
            channel.client.set("from", "celery")

    eventually(write)
    with target.client(decode=True) as client:
        assert client.get("from") == "celery"
