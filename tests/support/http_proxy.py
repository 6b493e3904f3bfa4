"""An HTTP proxy for tests: forwards to ports of the loopback whatever the host is called, and remembers it.

with HttpProxy() as proxy:                          # http:// by absolute URLs, https:// by CONNECT
... HTTPS_PROXY=proxy.url ...
assert proxy.targets == ["api.test:443"]
"""

import asyncio
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from tests.support.loop_thread import LoopThread

PIECE_BYTES: Final = 65_536


@dataclass
class HttpProxy:
    """A proxy in a thread, on a free port of the loopback."""

    refusal: bytes = b""
    """What it answers instead of forwarding, such as `407 Proxy Authentication Required`."""
    targets: list[str] = field(default_factory=list)
    """Host and port of each request."""
    heads: list[str] = field(default_factory=list)
    """Request line and headers of each."""
    url: str = ""

    def __enter__(self) -> Self:
        self._server = LoopThread(self._serve, "the proxy")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    async def _serve(self, is_ready: Callable[[], None], stop: asyncio.Event) -> None:
        """Serves until the block ends."""
        self._talks = set[asyncio.Task[None]]()
        server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        is_ready()
        await stop.wait()
        server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begins a connection."""
        talk = asyncio.create_task(self._forward(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Meets the first request of a connection, and passes on all that follows."""
        with suppress(OSError, asyncio.IncompleteReadError), closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, rest = head.split(b" ", 2)
            place = target.decode() if method == b"CONNECT" else urlsplit(target.decode()).netloc
            self.targets.append(place)
            self.heads.append(head.decode())
            if self.refusal:
                writer.write(b"HTTP/1.1 " + self.refusal + b"\r\nContent-Length: 0\r\n\r\n")
            else:
                await self._pass_on(method, target, rest, reader, writer)

    async def _pass_on(
        self,
        method: bytes,
        target: bytes,
        rest: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Connects both ends."""
        parts = urlsplit(b"//" + target if method == b"CONNECT" else target)
        there, to = await asyncio.open_connection("127.0.0.1", parts.port)
        with closing(to):
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                to.write(b" ".join([method, parts.path or b"/", rest]))
            await asyncio.gather(_pump(reader, to), _pump(there, writer))


async def _pump(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    """Copies until the end."""
    with suppress(OSError):
        while piece := await source.read(PIECE_BYTES):
            to.write(piece)
            await to.drain()
    to.close()
