"""Serves functions as models on a loopback port, for the time of a run: applications, and checks as judges.

Workers call it as they call any OpenAI-compatible endpoint, so that limits, retries, ledger and reports are
the same. A function that raises ends its item in an error with the exception's text.
"""

import inspect
import json
import threading
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

App = Callable[[Any], Any]
"""A function from a text or messages to a text, an object, pieces of text, or an awaitable of these."""
MOST_BYTES: Final = 64 << 20
"""Longest request."""
POLL_S: Final = 0.05
"""How long the end of a run waits for the server to notice it, at most."""


class AppError(Exception):
    """The function raised; the text is its exception's."""


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


def judge_of(check: Callable[..., Any], prompt: CheckPrompt, name: str) -> App:
    """Makes of a function that checks answers one that replies as a judge does.

    Args:
        check: takes the text of an answer, or this and a `CheckedAnswer`; returns a bool, a score from 0
            to 1, or one of these with a reason. It may be a coroutine.
        prompt: by which it is asked.
        name: what it is called in errors.
    """
    takes_both = len(_parameters(check)) > 1

    async def waited(found: Awaitable[Any]) -> Mapping[str, Any]:
        """Asks a check that is a coroutine."""
        return _grade(await found, name)

    def reply(text: str) -> Any:
        answer = prompt.parts(text)
        found = check(answer.output, answer) if takes_both else check(answer.output)
        return waited(found) if inspect.isawaitable(found) else _grade(found, name)

    return reply


def _grade(found: Any, name: str) -> Mapping[str, Any]:
    """Writes what a function found as judges do.

    Raises:
        TypeError: it is no verdict.

    >>> _grade((False, "too long"), "short"), _grade(0.5, "short")
    ({'reason': 'too long', 'score': 0.0}, {'reason': '', 'score': 0.5})
    """
    score, reason = found if isinstance(found, tuple) and len(found) == 2 else (found, "")  # noqa: PLR2004 - a pair
    if not isinstance(score, int | float) or not 0 <= score <= 1:
        raise TypeError(
            f"{name} returned {found!r}: return a bool, a score from 0 to 1, or one of these with a reason"
        )
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
        yield f"http://{host!s}:{port}/function/v1"  # lists of settings leave out such a port
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

    def pieces(self, messages: list[Mapping[str, Any]]) -> Generator[str, None, None]:
        """Yields what the function answers.

        Raises:
            AppError: it raised, or returned what is no answer.
        """
        with _as_app_error():
            answer = self._app(messages if self._takes_messages else _text_of(messages))
            if inspect.isawaitable(answer):
                answer = self._wait(answer)
            if answer is None:
                raise TypeError("the function returned None instead of an answer")
            yield from map(_text_writer(), self._parts(answer))

    def _parts(self, answer: Any) -> Iterator[Any]:
        """Yields the parts of an answer as they come."""
        if isinstance(answer, AsyncIterator):
            while (part := self._wait(_next(answer))) is not None:
                yield part
        elif isinstance(answer, Iterable) and not isinstance(answer, str | bytes | Mapping | list | tuple):
            yield from answer
        else:
            yield answer if isinstance(answer, str | bytes) else json.dumps(answer)

    def close(self) -> None:
        """Ends the loop."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _wait(self, awaitable: Any) -> Any:
        import asyncio  # noqa: PLC0415 - start-up: only coroutines need it

        async def waited() -> Any:
            with _as_app_error():  # here too: the loop of all coroutines would end with a SystemExit
                return await awaitable

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                run = self._loop.run_forever
                self._thread = threading.Thread(target=run, name="proctor app loop", daemon=True)
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(waited(), self._loop).result()


async def _next(parts: AsyncIterator[Any]) -> Any:
    return await anext(parts, None)


@contextmanager
def _as_app_error() -> Iterator[None]:
    """Raises what a function raised as an `AppError`."""
    try:
        yield
    except AppError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise AppError(f"{type(error).__name__}: {error}") from error


def _text_writer() -> Callable[[Any], str]:
    """Returns what makes text of the parts of one answer; bytes may end within a character."""
    decode = getincrementaldecoder("utf-8")().decode
    return lambda part: decode(part) if isinstance(part, bytes) else str(part)


def _answering(app: App) -> _Answering:
    """Finds out what the function takes.

    Raises:
        TypeError: it is no function.
    """
    return _Answering(app, takes_messages=_parameters(app)[:1] == ["messages"])


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Returns the names of a function's parameters; of built-in classes such as `str` none are known.

    Raises:
        TypeError: it is no function.
    """
    if not callable(function):
        raise TypeError(f"app= and checks= take functions, not {function!r}")
    try:
        return list(inspect.signature(function).parameters)
    except ValueError:
        return []


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
            with closing(self.server.answer.pieces(asked["messages"])) as pieces:
                if asked.get("stream"):
                    self._stream(pieces)
                else:
                    self._answer("".join(pieces))
        except AppError as error:
            self._reply(400, _error(str(error)))
        except ConnectionError:  # the caller has gone, as at the end of a time limit
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Writes nothing: the run has the results."""

    def _reply(self, status: int, body: Mapping[str, Any]) -> None:
        written = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

    def _answer(self, text: str) -> None:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._reply(200, {"object": "chat.completion", "choices": [choice]})

    def _stream(self, pieces: Iterator[str]) -> None:
        piece = next(pieces, "")  # a function that raises at once still gets its status
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self._delta({"content": piece})
        try:
            for piece in pieces:
                self._delta({"content": piece})
            self._delta({}, finish_reason="stop")
        except AppError as error:  # too late for a status
            self._event(_error(str(error)))
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _delta(self, delta: Mapping[str, str], finish_reason: str | None = None) -> None:
        self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    def _event(self, body: Mapping[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(body).encode() + b"\n\n")
        self.wfile.flush()


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "app_error", "code": 400}}
