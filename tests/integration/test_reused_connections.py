"""Tests of the worker's HTTP session against servers that close connections which it would use again."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from socket import SO_LINGER, SOL_SOCKET
from typing import Final

import aiohttp
import pytest

from shared.contracts.query_run import QueryRun
from shared.upstream.egress import EgressPolicy
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.http_session import open_session
from shared.upstream.model_target import ModelTarget
from worker.upstream import query_client
from worker.upstream.chat import ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_clients import ModelClients

BODY: Final = b'{"answer": "yes", "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}'
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
_RESET: Final = struct.pack("ii", 1, 0)
Script = Callable[[int, int], bytes]
"""What is sent to the n-th request of a connection, by the connection's number; both from 1."""


class Server:
    """A server that answers a request with bytes, and with none by closing the connection."""

    def __init__(self, script: Script, *, is_reset: bool = False, after_s: float = 0.0) -> None:
        self._script, self._is_reset, self._after_s = script, is_reset, after_s
        self.connections = 0
        self.requests: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        self.connections += 1
        connection, nth = self.connections, 0
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                self.requests.append(await reader.readexactly(size))
                nth += 1
                reply = self._script(connection, nth)
                writer.write(reply)
                if reply == ANSWER:
                    continue
                await writer.drain()
                await asyncio.sleep(self._after_s)
                if self._is_reset:
                    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, _RESET)
                return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[aiohttp.ClientSession]:
    """The worker's session, with a server to call."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening, open_session(EgressPolicy()) as session:
        yield session


def with_session(server: Server, work: Callable[[aiohttp.ClientSession], Awaitable[None]]) -> None:
    """Does something with the worker's session."""

    async def run() -> None:
        """Has a session while it works."""
        async with served(server) as session:
            await work(session)

    asyncio.run(run())


def first_only(_connection: int, nth: int) -> bytes:
    """Answers the first request of each connection, and closes it at the second."""
    return ANSWER if nth == 1 else b""


@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("size", [5, 400_000])
def test_a_query_on_a_dead_connection_is_sent_again(size: int, *, is_reset: bool) -> None:
    """Queries whose reused connection ends are sent again whole, once, on a new one: each has its answer."""
    server = Server(first_only, is_reset=is_reset)
    query = "q" * size

    async def ask(session: aiohttp.ClientSession) -> None:
        """Puts queries."""
        request = query_client.build_request(QueryRun(api_url=server.url))
        replies = [await query_client.send_once(session, request, f"{query}{number}") for number in range(4)]
        assert [reply.error for reply in replies] == [None] * 4

    with_session(server, ask)
    bodies = [request for request in server.requests if b"q0" not in request]
    assert len(set(server.requests)) == 4
    assert all(bodies.count(body) <= 2 for body in bodies)


def test_many_dead_connections_are_no_failures() -> None:
    """With several dead connections at hand, the second sending does not take one of them."""
    server = Server(first_only)

    async def ask(session: aiohttp.ClientSession) -> None:
        """Puts queries."""
        clients = ModelClients(lambda: session, {})
        asked = [ModelRequest(ModelTarget("m", api_base=server.url), "", f"{number}") for number in range(5)]
        for _ in range(3):
            replies = await asyncio.gather(*map(clients.complete, asked))
            assert {reply.text for reply in replies} == {"yes"}

    with_session(server, ask)


@pytest.mark.parametrize(
    ("script", "after_s", "sent"),
    [
        (lambda _connection, _nth: b"", 0.0, 1),
        (lambda connection, nth: ANSWER if (connection, nth) == (1, 1) else b"", 0.0, 3),
        (lambda connection, nth: ANSWER if (connection, nth) == (1, 1) else ANSWER[:-9], 0.0, 2),
        (lambda connection, nth: ANSWER if (connection, nth) == (1, 1) else b"", 1.1, 2),
    ],
    ids=["a new one", "the new one too", "within the body", "after a while"],
)
def test_what_was_perhaps_worked_on_is_not_sent_again(script: Script, after_s: float, sent: int) -> None:
    """A new connection, a reply that has begun and a server that took its time: the call has failed."""
    server = Server(script, after_s=after_s)

    async def ask(session: aiohttp.ClientSession) -> None:
        """Puts queries."""
        clients = ModelClients(lambda: session, {})
        request = ModelRequest(ModelTarget("m", api_base=server.url), "", "Hi")
        if sent > 1:
            await clients.complete(request)
        with pytest.raises(UpstreamError) as caught:
            await clients.complete(request)
        assert caught.value.reason is FailureReason.CONNECTION_LOST

    with_session(server, ask)
    assert len(server.requests) == sent
