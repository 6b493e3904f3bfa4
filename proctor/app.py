"""Serves functions as models on a loopback port, for the time of a run: applications, and checks as judges.

Workers call it as they call any OpenAI-compatible endpoint, so that limits, retries, ledger and reports are
the same. A function that raises ends its item in an error with the exception's text.
"""

import inspect
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

App = Callable[[Any], Any]
"""A function from a text or messages to a text, an object, pieces of text, or an awaitable of these."""
MOST_BYTES: Final = 64 << 20
"""Longest request."""
POLL_S: Final = 0.05
"""How long the end of a run waits for the server to notice it, at most."""


class CheckPrompt(NamedTuple):
    """The prompt by which a function is asked as a judge: its parts stand between boundaries."""

    boundary: str
    """A text that no answer contains."""

    def __str__(self) -> str:
        return self.boundary.join(
            f"{{{{ {name} }}}}" for name in ("output", "input", "expected", "tool_calls")
        )

    def parts(self, text: str) -> "CheckedAnswer":
        """Reads a filled prompt.

        >>> CheckPrompt("|").parts('Hi|Hello?|null|[]')
        CheckedAnswer(output='Hi', input='Hello?', expected=None, tool_calls=[])
        """
        output, asked, expected, calls = text.split(self.boundary)
        return CheckedAnswer(output, asked, json.loads(expected or "null"), json.loads(calls or "[]"))


class CheckedAnswer(NamedTuple):
    """What a function that takes two parameters is told of an answer."""

    output: str
    """Its text."""
    input: str
    """What was asked."""
    expected: Any
    """The object that the case expects; None without one."""
    tool_calls: list[Mapping[str, Any]]
    """What the model called, in OpenAI's form."""


def judge_of(check: Callable[..., Any], prompt: CheckPrompt) -> App:
    """Makes of a function that checks answers one that replies as a judge does.

    Args:
        check: takes the text of an answer, or this and a `CheckedAnswer`; returns a bool, a score from 0
            to 1, or one of these with a reason. It may be a coroutine.
        prompt: by which it is asked.
    """
    takes_both = len(inspect.signature(check).parameters) > 1

    async def waited(found: Awaitable[Any]) -> Mapping[str, Any]:
        """Asks a check that is a coroutine."""
        return _grade(await found)

    def reply(text: str) -> Any:
        answer = prompt.parts(text)
        found = check(answer.output, answer) if takes_both else check(answer.output)
        return waited(found) if inspect.isawaitable(found) else _grade(found)

    return reply


def _grade(found: Any) -> Mapping[str, Any]:
    """Writes what a function found as judges do.

    >>> _grade((False, "too long")), _grade(0.5)
    ({'reason': 'too long', 'score': 0.0}, {'reason': '', 'score': 0.5})
    """
    score, reason = found if isinstance(found, tuple) else (found, "")
    return {"reason": str(reason), "score": float(score)}


@contextmanager
def served(app: App) -> Iterator[str]:
    """Serves a function until the block is left; yields the base URL of the endpoint."""
    answer = _answering(app)
    server = _Server(answer)
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), name="proctor app", daemon=True)
    thread.start()
    try:
        host, port = server.server_address[:2]
        yield f"http://{host!s}:{port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        answer.close()


class _Answering:
    """Calls the function, and waits for coroutines on a loop of their own."""

    def __init__(self, app: App, *, takes_messages: bool) -> None:
        self._app, self._takes_messages = app, takes_messages
        self._loop: Any = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def pieces(self, messages: list[Mapping[str, Any]]) -> Iterator[str]:
        """Yields what the function answers."""
        answer = self._app(messages if self._takes_messages else _text_of(messages))
        if inspect.isawaitable(answer):
            answer = self._wait(answer)
        if isinstance(answer, str):
            yield answer
        elif isinstance(answer, AsyncIterator):
            while (piece := self._wait(_next(answer))) is not None:
                yield str(piece)
        elif isinstance(answer, Iterable) and not isinstance(answer, Mapping | list | tuple):
            yield from map(str, answer)
        else:
            yield json.dumps(answer)

    def close(self) -> None:
        """Ends the loop."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _wait(self, awaitable: Any) -> Any:
        import asyncio  # noqa: PLC0415 - start-up: only coroutines need it

        async def waited() -> Any:
            return await awaitable

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                run = self._loop.run_forever
                self._thread = threading.Thread(target=run, name="proctor app loop", daemon=True)
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(waited(), self._loop).result()


async def _next(pieces: AsyncIterator[Any]) -> Any:
    return await anext(pieces, None)


def _answering(app: App) -> _Answering:
    """Finds out what the function takes."""
    first = next(iter(inspect.signature(app).parameters), "")
    return _Answering(app, takes_messages=first == "messages")


def _text_of(messages: list[Mapping[str, Any]]) -> str:
    """Returns the text of the last message of the user.

    >>> _text_of([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    'Hi'
    """
    content = next((each["content"] for each in reversed(messages) if each["role"] == "user"), "")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, answer: _Answering) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer


class _Handler(BaseHTTPRequestHandler):
    """Answers requests for completions."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """Answers with a completion, whole or in pieces."""
        size = int(self.headers.get("Content-Length") or 0)
        if size > MOST_BYTES:
            self._reply(413, _error(f"the request has {size:,} bytes"))
            return
        asked = json.loads(self.rfile.read(size))
        try:
            pieces = self.server.answer.pieces(asked["messages"])
            if asked.get("stream"):
                self._stream(pieces)
            else:
                message = {"role": "assistant", "content": "".join(pieces)}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                self._reply(200, {"object": "chat.completion", "choices": [choice]})
        except Exception as error:  # noqa: BLE001 - whatever the function raises is the item's error
            self._reply(400, _error(f"{type(error).__name__}: {error}"))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Writes nothing: the run has the results."""

    def _reply(self, status: int, body: Mapping[str, Any]) -> None:
        written = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

    def _stream(self, pieces: Iterator[str]) -> None:
        first = next(pieces, "")  # a function that raises at once still gets its status
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for piece in (first, *pieces):
            self._event({"choices": [{"index": 0, "delta": {"content": piece}}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _event(self, body: Mapping[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(body).encode() + b"\n\n")
        self.wfile.flush()


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "app_error"}}
