"""Answers probes as containers ask them: of pages, and of a Flower that asks for a login."""

import base64
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.processes import Processes

LOGIN: Final = "alice:correct-horse"
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - where Flower listens in a container
PROCTOR: Final = (sys.executable, "-P", "-m", "producer")


class Page(BaseHTTPRequestHandler):
    """Answers /well with 200 and everything else with 503."""

    def do_GET(self) -> None:
        """Answers."""
        self.send_response(200 if self.path == "/well" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a server on loopback."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_page_that_answers_is_well(cli: Cli, page: str) -> None:
    """`health http` ends with 0 and without a word for status 200, also where a proxy is configured."""
    done = cli("health", "http", f"{page}/well", env={"http_proxy": "http://127.0.0.1:1"})
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_page_that_is_unwell_is_named(cli: Cli, page: str) -> None:
    """Status 503, a closed port and what is no address: exit codes 1, 1 and 2, and one line each."""
    for address, code, word in (
        (f"{page}/sick", 1, "503"),
        (f"http://127.0.0.1:{free_port()}/", 1, "refused"),
        ("file:///etc/hostname", 2, "no address"),
    ):
        done = cli("health", "http", address)
        assert done.code == code, done
        assert word in done.err.splitlines()[0], done


def status_of(port: int, login: str | None = None) -> int:
    """Status of Flower's page of workers."""
    headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()} if login else {}
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/workers", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_flower_asks_for_the_login_of_a_file(processes: Processes, cli: Cli, tmp_path: Path) -> None:
    """With PROCTOR_FLOWER_AUTH_FILE pages need the login, its probe does not, no command line has it."""
    secret = tmp_path / "flower-auth"
    secret.write_text(LOGIN + "\n")
    port = free_port()
    flower = processes.start(
        *PROCTOR,
        *("flower", "--address", EVERYWHERE, "--port", str(port)),
        env={**processes.env, "PROCTOR_FLOWER_AUTH_FILE": str(secret)},
    )

    def refuses() -> None:
        assert status_of(port) == 401

    eventually(refuses, 20.0)
    assert status_of(port, LOGIN) == 200
    assert status_of(port, "alice:wrong") == 401
    assert cli("health", "http", f"http://127.0.0.1:{port}/healthcheck").code == 0
    assert "asks for no login" not in flower.errors
    cmdline = Path(f"/proc/{flower.pid}/cmdline")
    assert not cmdline.exists() or LOGIN.encode() not in cmdline.read_bytes()
    assert flower.stop() == 0


def test_an_open_flower_without_a_login_is_warned_of(processes: Processes) -> None:
    """`flower --address 0.0.0.0` without a login says so; on loopback it does not."""
    flower = processes.start(*PROCTOR, "flower", "--address", EVERYWHERE, "--port", str(free_port()))
    flower.wait_for("asks for no login")
    flower.kill_tree()
