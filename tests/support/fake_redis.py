"""A server that speaks just enough of Redis' protocol to say `INFO`: for versions that are not installed."""

from collections.abc import Callable, Mapping
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Self

CURRENT = {
    "redis_version": "7.2.4",
    "redis_mode": "standalone",
    "role": "master",
    "aof_enabled": "1",
    "maxmemory_policy": "noeviction",
}


class FakeRedis:
    """Answers `PING`, `INFO` and `PUBLISH`, anything else with an error; on a free port of loopback."""

    def __init__(self, info: Mapping[str, str], *, ping: bytes = b"+PONG\r\n") -> None:
        self.info = {**CURRENT, **info}
        self.ping = ping
        self.server = ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"redis://127.0.0.1:{self.server.server_address[1]}/0"

    def answer(self, words: list[bytes]) -> bytes:
        """The reply to one command."""
        name = words[0].upper()
        if name == b"PING":
            return self.ping
        if name == b"INFO":
            text = "\r\n".join(f"{key}:{value}" for key, value in self.info.items())
            return f"${len(text)}\r\n{text}\r\n".encode()
        if name == b"PUBLISH":
            return b":0\r\n"
        return b"-ERR unknown command\r\n"

    def _handler(self) -> type[StreamRequestHandler]:
        answer: Callable[[list[bytes]], bytes] = self.answer

        class Handler(StreamRequestHandler):
            """Reads commands as arrays of strings."""

            def handle(self) -> None:
                """Serves one connection."""
                while head := self.rfile.readline():
                    words = []
                    for _ in range(int(head[1:])):
                        length = int(self.rfile.readline()[1:])
                        words.append(self.rfile.read(length + 2)[:-2])
                    self.wfile.write(answer(words))

        return Handler
