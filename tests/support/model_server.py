"""A model behind an OpenAI-compatible endpoint that answers as a test tells it, and remembers its requests.

    with ModelServer() as server:                     # answers "Hello" to everything, whole or in pieces
        server.script = lambda prompt, nth: Say("no", status=500) if nth == 1 else Say("yes")
        ... api_base=server.api_base ...
        assert server.requests[0].headers["Authorization"] == "Bearer …"

The script gets the last message and how often it came, from 1, and returns a `Say`. Whether an answer comes
in pieces is what the request asks for. `Say` also makes the usual troubles:

    Say("wait", 429, {"Retry-After": "7"})   Say(after_s=5)          Say(end="reset")   nothing, then a reset
    Say(body={"choices": []})                Say(body="<html>")      Say(end="half")    a part, then the end
    Say(usage=None)                          Say(body=b"x" * 6_000_000)

For worker processes of their own: `python -m tests.support.model_server --port 8099 [--latency 0.05]
[--fail 0.1 --retry-after 1]`; answers with {"ok": true} and refuses that share of requests with 429.
"""

import argparse
import asyncio
import json
import random
import socket
import struct
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from aiohttp import web

from tests.support.loop_thread import LoopThread

USAGE: Final = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
PIECES: Final = 3
OK: Final = 200
_RESET: Final = struct.pack("ii", 1, 0)


class Say(NamedTuple):
    """How one request is met."""

    text: str = "Hello"
    """The answer, or what an error says."""
    status: int = 200
    headers: Mapping[str, str] = {}
    after_s: float = 0.0
    """Before anything is sent."""
    body: Any = None
    """Instead of a completion: bytes and text as they are, all else as JSON."""
    usage: Mapping[str, int] | None = USAGE
    end: Literal["whole", "half", "reset"] = "whole"
    piece_s: float = 0.0
    """Between the pieces of a streamed answer."""
    tail: bytes = b""
    """After the end of a streamed answer."""


class Request(NamedTuple):
    """One request, as it arrived."""

    at_s: float
    prompt: str
    nth: int
    """How often this prompt has come, from 1."""
    path: str
    headers: Mapping[str, str]
    body: Any


def always(_prompt: str, _nth: int) -> Say:
    """Answers everything at once."""
    return Say()


@dataclass
class ModelServer:
    """A server in a thread, on a free port of the loopback."""

    script: Callable[[str, int], Say] = always
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    """0: a free one."""
    listener: socket.socket | None = None
    """Serve on this socket instead, which may be another host's."""
    api_base: str = ""

    def __enter__(self) -> Self:
        self._server = LoopThread(self._serve, "the model server")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def leave(self) -> None:
        """Ends the server; its port refuses connections from now on."""
        self._server.stop()

    def come_back(self) -> None:
        """Serves again, at the same port."""
        self.port = urlsplit(self.api_base).port or 0
        self._server = LoopThread(self._serve, "the model server")

    async def _serve(self, is_ready: Callable[[], None], stop: asyncio.Event) -> None:
        """Serves until the block ends."""
        app = web.Application(client_max_size=64_000_000)
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_post("/v1/messages", self._answer)  # Anthropic's form: say it with `body`
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        listener = self.listener or socket.create_server(("127.0.0.1", self.port))
        await web.SockSite(runner, listener).start()
        host, port = listener.getsockname()
        self.api_base = f"http://{host}:{port}/v1"
        is_ready()
        await stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """Meets one request."""
        body = json.loads(await request.text())
        prompt = body["messages"][-1]["content"]
        nth = 1 + sum(earlier.prompt == prompt for earlier in self.requests)
        received = Request(monotonic(), prompt, nth, request.path, dict(request.headers), body)
        self.requests.append(received)
        say = self.script(prompt, nth)
        await asyncio.sleep(say.after_s)
        if say.end == "reset":
            return _reset(request)
        if say.status == 200 and say.body is None and body.get("stream"):
            return await _stream(request, say)
        content = _content(say)
        kind = "text/html" if isinstance(say.body, str) else "application/json"
        headers = {"Content-Type": kind, **say.headers}
        if say.end == "half":
            return await _half(request, content)
        return web.Response(status=say.status, body=content, headers=headers)

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        """Meets one request for embeddings: a text becomes its length and 1."""
        body = json.loads(await request.text())
        prompt = " ".join(body["input"])
        nth = 1 + sum(earlier.prompt == prompt for earlier in self.requests)
        self.requests.append(Request(monotonic(), prompt, nth, request.path, dict(request.headers), body))
        say = self.script(prompt, nth)
        await asyncio.sleep(say.after_s)
        if say.end == "reset":
            return _reset(request)
        usage = {"prompt_tokens": 11, "total_tokens": 11} if say.usage else None
        vectors = [[float(len(text)), 1.0] for text in body["input"]]
        if body.get("encoding_format") == "base64":  # as OpenAI's own client asks
            data: list[Any] = [b64encode(struct.pack("<2f", *vector)).decode() for vector in vectors]
        else:
            data = vectors
        entries = [{"object": "embedding", "index": nth, "embedding": each} for nth, each in enumerate(data)]
        answer = {"object": "list", "model": "m", "data": entries[::-1], "usage": usage}
        content = _content(say if say.status != OK or say.body is not None else Say(body=answer))  # fmt: skip
        return web.Response(status=say.status, body=content, headers={"Content-Type": "application/json"})


def _content(say: Say) -> bytes:
    """The bytes of a body."""
    if isinstance(say.body, bytes | str):
        return say.body if isinstance(say.body, bytes) else say.body.encode()
    if say.body is not None:
        return json.dumps(say.body).encode()
    if say.status != 200:
        return json.dumps({"error": {"message": say.text, "type": "error", "code": None}}).encode()
    choice = {"index": 0, "message": {"role": "assistant", "content": say.text}, "finish_reason": "stop"}
    return json.dumps(_frame("chat.completion", [choice], say.usage)).encode()


def _frame(kind: str, choices: list[Any], usage: Mapping[str, int] | None) -> dict[str, Any]:
    """A completion, or a piece of one."""
    frame = {"id": "c1", "object": kind, "created": 1_700_000_000, "model": "m", "choices": choices}
    return frame if usage is None else {**frame, "usage": usage}


async def _stream(request: web.Request, say: Say) -> web.StreamResponse:
    """Sends an answer in pieces."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **say.headers})
    await response.prepare(request)
    size = max(1, -(-len(say.text) // PIECES))
    texts = [say.text[start : start + size] for start in range(0, len(say.text), size)]
    for nth, text in enumerate(texts):
        delta = {"role": "assistant", "content": text} if nth == 0 else {"content": text}
        await _send(response, [{"index": 0, "delta": delta, "finish_reason": None}])
        if say.end == "half":
            return _reset(request, response)
        await asyncio.sleep(say.piece_s)
    await _send(response, [{"index": 0, "delta": {}, "finish_reason": "stop"}])
    if say.usage is not None:
        await _send(response, [], say.usage)
    await response.write(b"data: [DONE]\n\n" + say.tail)
    return response


async def _send(
    response: web.StreamResponse, choices: list[Any], usage: Mapping[str, int] | None = None
) -> None:
    """Sends one event."""
    frame = json.dumps(_frame("chat.completion.chunk", choices, usage))
    await response.write(f"data: {frame}\n\n".encode())


async def _half(request: web.Request, content: bytes) -> web.StreamResponse:
    """Sends the first half of a body, and resets the connection."""
    headers = {"Content-Length": str(len(content)), "Content-Type": "application/json"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    return _reset(request, response)


def _reset(request: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
    """Resets the connection."""
    if request.transport is not None:
        connection: socket.socket = request.transport.get_extra_info("socket")
        if response is None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            request.transport.abort()
        else:
            request.transport.close()  # not before what was written is sent
    return response or web.Response()


def main() -> None:
    """Serves until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    for option, default in (("--latency", 0.0), ("--fail", 0.0), ("--retry-after", 1.0)):
        parser.add_argument(option, type=float, default=default)
    options, chance = parser.parse_args(), random.Random(7)

    def script(_prompt: str, _nth: int) -> Say:
        if chance.random() < options.fail:
            return Say("too many", 429, {"Retry-After": f"{options.retry_after:g}"})
        return Say('{"ok": true}', after_s=options.latency)

    with ModelServer(script, port=options.port) as server:
        print(server.api_base, flush=True)  # noqa: T201 - whoever started us waits for it
        threading.Event().wait()


if __name__ == "__main__":
    main()
