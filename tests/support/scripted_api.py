"""An API that answers as a test tells it, and remembers when it was asked what, and how many at a time."""

import asyncio
import json
import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, NamedTuple, Self

from aiohttp import web

from tests.support.loop_thread import LoopThread

ANSWER: Final = {"answer": "yes, of course", "sources": [{"title": "S"}], "metadata": {"chunksRetrieved": 1}}
_RESET: Final = struct.pack("ii", 1, 0)


class Step(NamedTuple):
    """How one request is met."""

    status: int = 200
    body: Any = ANSWER
    after_s: float = 0.0
    headers: Mapping[str, str] = {}
    is_reset: bool = False


class Request(NamedTuple):
    """One request, as it arrived."""

    at_s: float
    query: str
    nth: int
    headers: Mapping[str, str]
    method: str
    path: str
    body: Any


def always(_query: str, _nth: int) -> Step:
    """Answers everything at once."""
    return Step()


@dataclass
class ScriptedApi:
    """A server in a thread, on a free port of the loopback: `with ScriptedApi(script) as api: …`."""

    script: Callable[[str, int], Step] = always
    """Says how the n-th request with a query is met, counted from 1."""
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    """0: a free one."""
    url: str = ""
    in_flight: int = 0
    most_in_flight: int = 0

    def __enter__(self) -> Self:
        self._server = LoopThread(self._serve, "the scripted API")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def asked(self) -> Counter[str]:
        """How often each query was sent."""
        return Counter(request.query for request in self.requests)

    async def _serve(self, is_ready: Callable[[], None], stop: asyncio.Event) -> None:
        """Serves until the block ends."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        is_ready()
        await stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """Meets one request."""
        body = json.loads(await request.text() or "{}")
        query = request.query.get("query") or str(body.get("query", body))
        nth = self.asked()[query] + 1
        received = Request(monotonic(), query, nth, dict(request.headers), request.method, request.path, body)
        self.requests.append(received)
        step = self.script(query, nth)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(step.after_s)
        finally:
            self.in_flight -= 1
        if step.is_reset and request.transport is not None:
            connection: socket.socket = request.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            request.transport.abort()
        text = step.body if isinstance(step.body, str) else json.dumps(step.body)
        return web.Response(status=step.status, text=text, headers=step.headers)
