"""One query through the real client against sockets that misbehave: each end has its documented text.

What an HTTP server can do wrong is in `test_query_faults.py`, through real workers; here are the ends below
HTTP, and bodies byte by byte.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from email.utils import formatdate
from threading import Thread
from time import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from shared.contracts.query_run import QueryRun
from shared.upstream.failure_reasons import FailureReason
from tests.support.ports import free_port
from tests.support.query_results import Put, baseline, put_once
from worker.queries.checks import query_result
from worker.upstream.query_client import build_request

if TYPE_CHECKING:
    from worker.queries.reply import Reply

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class TwoAddresses(AbstractResolver):
    """Says that a host has two addresses of the loopback."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Names both, whatever the host."""
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=family,
                proto=0,
                flags=socket.AddressInfo.AI_NUMERICHOST,
            )
            for address in ("127.0.0.1", "127.0.0.2")
        ]

    async def close(self) -> None:
        """Has nothing to end."""


class NoSuchHost(TwoAddresses):
    """Knows no host."""

    async def resolve(
        self,
        host: str,
        port: int = 0,  # noqa: ARG002 - the interface's
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - the interface's
    ) -> list[ResolveResult]:
        """Fails as the system's resolver does."""
        raise socket.gaierror(socket.EAI_NONAME, f"{host}: name or service not known")


def put(url: str, *, timeout_s: float = 5.0, resolver: AbstractResolver | None = None) -> Put:
    """Puts one query with the real client."""

    async def inside() -> Put:
        """Has a session while it does so."""
        connector = aiohttp.TCPConnector(resolver=resolver)
        async with aiohttp.ClientSession(connector=connector) as session:
            return await put_once(
                session, build_request(QueryRun(api_url=url, timeout_s=timeout_s), {}), "How?"
            )

    return asyncio.run(inside())


@contextmanager
def raw(reply: bytes) -> Iterator[str]:
    """A server that answers one request with these bytes and closes the connection."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            """Answers once."""
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        thread = Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def answered(
    body: bytes, *, length: int | None = None, status: bytes = b"200 OK", more: bytes = b""
) -> bytes:
    """The bytes of a whole reply, or of one that promises more than it has."""
    size = len(body) if length is None else length
    return b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n" % size + more + b"\r\n" + body


@pytest.mark.parametrize("resolver", [None, TwoAddresses, NoSuchHost])
def test_no_connection_has_the_documented_text(resolver: type[AbstractResolver] | None) -> None:
    """Refused at one address, refused at both, or no such host: one text, status 0, and the run ends."""
    url = f"http://{'rag.example' if resolver else '127.0.0.1'}:{free_port()}"

    async def made() -> AbstractResolver | None:
        """Makes the resolver on a loop, as aiohttp wants it."""
        return resolver() if resolver else None

    reply = put(url, resolver=asyncio.run(made())).reply
    assert reply.as_document() | {"latency_ms": 0} == {
        "response": None,
        "latency_ms": 0,
        "status_code": 0,
        "error": f"Connection refused - backend not running on {url}",
    }
    assert (reply.failure, reply.ends_run) == (FailureReason.UNREACHABLE, True)


def test_a_server_without_tls_is_named() -> None:
    """An https:// address of a plain HTTP server is no refused connection; the error names the right URL."""
    with raw(answered(b"{}")) as url:
        reply = put(url.replace("http://", "https://")).reply
    assert (reply.failure, reply.ends_run, reply.status_code) == (FailureReason.INSECURE, True, 0)
    assert str(reply.error).startswith(f"no TLS connection to {url.removeprefix('http://')}: ")
    assert str(reply.error).endswith("begins with http://")


def test_a_connection_that_is_not_made_in_time_is_a_timeout() -> None:
    """A full queue of connections is silence, not a refusal: the document's timeout, and the run goes on."""
    with (
        closing(socket.socket()) as server,
        closing(socket.socket()) as first,
        closing(socket.socket()) as second,
    ):
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for waiting in (first, second):  # never accepted: they fill the queue
            waiting.settimeout(0)
            waiting.connect_ex(server.getsockname())
        reply = put(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=0.5).reply
    assert (reply.error, reply.failure, reply.ends_run) == (
        "Timeout after 0.5s",
        FailureReason.TIMEOUT,
        False,
    )
    assert reply.latency_ms >= 400


def test_an_answer_that_stops_in_the_middle_is_a_timeout() -> None:
    """The limit holds for the whole body, not only for its first byte."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            """Sends half of a body and keeps the connection."""
            connection, _ = server.accept()
            held.append(connection)
            connection.recv(65536)
            connection.sendall(answered(b'{"answer": ', length=50))

        thread = Thread(target=serve)
        thread.start()
        reply = put(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=0.5).reply
        thread.join(10)
        held[0].close()
    assert (reply.error, reply.failure) == ("Timeout after 0.5s", FailureReason.TIMEOUT)


@pytest.mark.parametrize(
    ("reply", "error", "failure"),
    [
        (b"", "Connection lost before the answer was complete", FailureReason.CONNECTION_LOST),
        (
            b"not HTTP at all\r\n\r\n",
            "Connection lost before the answer was complete",
            FailureReason.CONNECTION_LOST,
        ),
        (
            answered(b'{"answer": ', length=50),
            "Connection lost before the answer was complete",
            FailureReason.CONNECTION_LOST,
        ),
        (
            answered(b"<html>hello</html>"),
            "Invalid response body (not JSON): <html>hello</html>",
            FailureReason.INVALID_REPLY,
        ),
        (answered(b"{}"), "Invalid response body (no /answer): {}", FailureReason.INVALID_REPLY),
        (answered(b"null"), "Invalid response body (no /answer): null", FailureReason.INVALID_REPLY),
        (answered(b"[1]"), "Invalid response body (no /answer): [1]", FailureReason.INVALID_REPLY),
        (answered(b""), "Invalid response body (empty)", FailureReason.INVALID_REPLY),
        (answered(b"x" * 300, status=b"500 Oops"), "x" * 200, FailureReason.SERVER_ERROR),
        (
            answered(b"", status=b"302 Found", more=b"Location: /x\r\n"),
            "HTTP 302 with an empty body",
            FailureReason.REFUSED,
        ),
    ],
)
def test_what_is_no_answer_fails_every_check_and_invents_nothing(
    reply: bytes, error: str, failure: FailureReason
) -> None:
    """Each has its text and code, does not end the run, and fails all six checks of its query."""
    with raw(reply) as url:
        got = put(url).reply
    assert (got.response, got.error, got.failure, got.ends_run) == (None, error, failure, False)
    result = query_result(baseline("Q-01"), got)
    assert result["overall_pass"] is False
    assert not any(check["pass"] for check in result["checks"].values())
    assert result["checks"]["must_not_contain"]["found"] == ["(query failed)"]


@pytest.mark.parametrize(
    ("header", "low_s", "high_s"),
    [
        (b"", None, None),
        (b"Retry-After: 7\r\n", 7, 7),
        (b"Retry-After: soon\r\n", None, None),
        (b"date", 50, 60),
    ],
)
def test_429_tells_what_the_server_asked_to_wait(
    header: bytes, low_s: float | None, high_s: float | None
) -> None:
    """Seconds and dates are read from the header; without one, or with nonsense, only the policy decides."""
    if header == b"date":
        header = f"Retry-After: {formatdate(time() + 60, usegmt=True)}\r\n".encode()
    with raw(answered(b"slow down", status=b"429 Too Many Requests", more=header)) as url:
        got = put(url)
    assert (got.reply.status_code, got.reply.error) == (429, "Rate limited (429)")
    if low_s is None or high_s is None:
        assert got.retry_after_s is None
    else:
        assert low_s <= (got.retry_after_s or 0) <= high_s


@pytest.mark.parametrize(
    ("body", "checks"),
    [
        (
            b'{"answer": null, "metadata": null}',
            {"citation_present": (False, True), "must_contain": (False, True)},
        ),
        (b'{"answer": "yes", "metadata": {"chunksRetrieved": "0"}}', {"citation_present": (False, True)}),
        (b'{"answer": "yes", "metadata": {"chunksRetrieved": 0}}', {"citation_present": (True, False)}),
        (b'{"answer": "yes", "metadata": {"latencyMs": 1e300}}', {"latency": (True, True)}),
        (b'{"answer": "yes", "metadata": {"latencyMs": 99999999}}', {"latency": (False, True)}),
    ],
)
def test_odd_fields_are_judged_and_break_nothing(body: bytes, checks: dict[str, tuple[bool, bool]]) -> None:
    """Null, text for a number and absurd numbers are an answer: the checks say what they make of it."""
    with raw(answered(body)) as url:
        got: Reply = put(url).reply
    assert got.error is None
    found: dict[str, Any] = query_result(baseline("Q-01", must_contain=["yes"]), got)["checks"]
    for name, expected in checks.items():
        assert (found[name]["pass"], found[name].get("applicable", True)) == expected, name
