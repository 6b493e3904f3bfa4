"""An API that answers every query after a fixed time and costs little: `python -m … SECONDS EVERY PER_S`.

It is a model too: whoever asks for a completion gets `{"ok": true}`.

Written on a bare asyncio protocol, so that on a machine of two cores the workers are measured and not the
server. Each EVERY-th request (0: none), and what exceeds a token bucket of PER_S (0: any number), is refused
with 429 and `Retry-After: 1`. `GET /counts` says how many were served and refused. Prints its port and serves
until it is ended.
"""

import asyncio
import json
import sys
from time import monotonic
from typing import Final

BODY: Final = (
    b'{"answer":"yes","sources":[{"title":"S"}],"relatedDocs":[],"citations":[],'
    b'"confidence":{"level":"High"},"metadata":{"chunksRetrieved":1,"latencyMs":200}}'
)
COMPLETION: Final = (
    b'{"id":"c1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"{\\"ok\\": true}"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}'
)
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
ANSWER: Final = OK % (len(BODY), BODY)
COMPLETED: Final = OK % (len(COMPLETION), COMPLETION)
REFUSAL: Final = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"


class Server(asyncio.Protocol):
    """One connection: a request at a time, as HTTP clients do."""

    seconds = 0.2
    every = 0
    per_s = 0.0
    requests = refused = 0
    tokens = at_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        """Answers when the request is complete."""
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if len(body) < int(length or 0):
            return
        self._buffer = b""
        if head.startswith(b"GET /counts "):
            served = Server.requests - Server.refused
            counts = json.dumps({"served": served, "refused": Server.refused}).encode()
            self._answer(OK % (len(counts), counts))
            return
        Server.requests += 1
        if (self.every and Server.requests % self.every == 0) or self._is_empty():
            Server.refused += 1
            self._answer(REFUSAL)
        else:
            answer = COMPLETED if b"/chat/completions" in head else ANSWER
            asyncio.get_running_loop().call_later(self.seconds, self._answer, answer)

    def _is_empty(self) -> bool:
        """Takes a token; returns whether there is none."""
        if not self.per_s:
            return False
        now_s = monotonic()
        Server.tokens = min(self.per_s, Server.tokens + (now_s - Server.at_s) * self.per_s)
        Server.at_s = now_s
        if Server.tokens < 1:
            return True
        Server.tokens -= 1
        return False

    def _answer(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


async def serve(seconds: float, every: int, per_s: float) -> None:
    """Serves for ever."""
    Server.seconds, Server.every, Server.per_s = seconds, every, per_s
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
