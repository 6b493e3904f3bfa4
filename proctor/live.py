"""Turns of conversations, decided by `proctor serve` while people talk: a client with batches and retries.

    with Producer("http://127.0.0.1:7358", token) as turns:
        decision = turns.send({"threadId": "t1", "message": "Let us go with plan B"}).result()

Turns of one thread keep the order of their `send`. Each gets a `clientRequestId`, so that one that is sent
again after a lost reply counts once.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from os import urandom
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from proctor.errors import ProctorError

if TYPE_CHECKING:
    import asyncio
    from http.client import HTTPConnection

T = TypeVar("T")

MOST_TURNS: Final = 500
"""Turns of one request: as many as the service takes."""
MOST_BYTES: Final = 3 << 20
"""Bytes of one request, unless one turn has more; the service takes 4 MiB."""
RETRIED: Final = frozenset({429, 502, 503, 504})
"""Statuses after which the same turns are sent again."""
SPLIT: Final = frozenset({400, 413})
"""Statuses after which they are sent in two parts: one of them is wrong, or they are too much."""
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 2.0


class QueueFullError(ProctorError):
    """More turns wait in this process than it may keep."""


class TurnError(ProctorError):
    """A turn was not decided; `code` says why."""


@dataclass(frozen=True)
class Decision:
    """What was decided about a turn, and its thread after it."""

    result: Mapping[str, Any] = field(repr=False)
    """All of it, as the service answers."""

    @property
    def decision(self) -> str:
        """`must`, `should` or `skip`."""
        return str(self.result["decision"])

    @property
    def rule(self) -> int:
        """Number of the rule that decided, from 1 to 6."""
        return int(self.result["rule"])

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        return str(self.result["reason"])

    @property
    def etag(self) -> str:
        """State of the thread after the turn, for `thread_memento_etag`."""
        return str(self.result["etag"])

    @property
    def memento(self) -> Mapping[str, Any]:
        """The summary of the thread after the turn."""
        found: Mapping[str, Any] = self.result["memento"]
        return found

    @property
    def response(self) -> str | None:
        """What the model of `proctor serve --model` answered; None where it was not asked."""
        found: str | None = self.result.get("response")
        return found

    @property
    def is_frozen(self) -> bool:
        """Whether the peak guardrail kept the summary as it was."""
        return bool(self.result["peakGuardrailActive"])


class _Waiting(NamedTuple):
    turn: bytes
    future: "Future[Decision]"


class Producer:
    """Sends turns from any thread; one thread of its own makes the requests.

    Args:
        url: of the service, as `proctor serve` prints it.
        token: of the caller.
        max_waiting: turns that may wait; then `send` waits, or raises.
        waits: whether `send` waits for room; otherwise it raises `QueueFullError`.
        timeout_s: how long a turn may take, retries included.

    Raises:
        ProctorError: the URL is not one of HTTP.
    """

    def __init__(
        self, url: str, token: str, *, max_waiting: int = 10_000, waits: bool = True, timeout_s: float = 60.0
    ) -> None:
        self._url, self._token = urlsplit(url), token
        if self._url.scheme not in {"http", "https"} or not self._url.hostname:
            raise ProctorError(f"{url!r} is no URL of a service", hint="such as http://127.0.0.1:7358")
        self._max_waiting, self._waits, self._timeout_s = max_waiting, waits, timeout_s
        self._gathered = deque[_Waiting]()
        self._changed = threading.Condition()
        self._waiting = 0
        self._is_closed = False
        self._connection: HTTPConnection | None = None
        self._thread = threading.Thread(target=self._send_all, name="proctor producer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, turn: Mapping[str, Any]) -> "Future[Decision]":
        """Sends a turn: the object of a line of a turns file.

        Returns:
            A future; its `result()` raises `TurnError` where the turn was refused.

        Raises:
            QueueFullError: too many turns wait, and this producer does not.
            ProctorError: the producer is closed.
        """
        line = json.dumps({"clientRequestId": f"py-{urandom(16).hex()}", **turn}, ensure_ascii=False).encode()
        waiting = _Waiting(line, Future())
        with self._changed:
            if self._waiting >= self._max_waiting and not self._waits:
                raise QueueFullError(f"{self._waiting:,} turns wait", hint="wait for some of their futures")
            self._changed.wait_for(lambda: self._waiting < self._max_waiting or self._is_closed)
            if self._is_closed:
                raise ProctorError("the producer is closed", hint="make a new one")
            self._waiting += 1
            self._gathered.append(waiting)
            self._changed.notify_all()
        return waiting.future

    def send_many(self, turns: Iterable[Mapping[str, Any]]) -> "list[Future[Decision]]":
        """Sends turns in order."""
        return [self.send(turn) for turn in turns]

    def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until no turn waits; returns False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_s)

    def close(self) -> None:
        """Sends what waits, and ends."""
        self.flush(self._timeout_s)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(self._timeout_s)

    def _send_all(self) -> None:
        """Sends batches until the producer is closed."""
        while batch := self._taken():
            self._send_batch(batch, monotonic() + self._timeout_s)
            with self._changed:
                self._waiting -= len(batch)
                self._changed.notify_all()
        if self._connection is not None:
            self._connection.close()

    def _taken(self) -> list[_Waiting]:
        """Waits for turns; empty when the producer is closed. Those that come meanwhile share a request."""
        with self._changed:
            self._changed.wait_for(lambda: self._gathered or self._is_closed)
            taken, size = list[_Waiting](), 0
            while self._gathered and len(taken) < MOST_TURNS:
                size += len(self._gathered[0].turn)
                if taken and size > MOST_BYTES:
                    break
                taken.append(self._gathered.popleft())
            return taken

    def _send_batch(self, batch: list[_Waiting], deadline_s: float) -> None:
        """Sends turns until there is an answer that stays, and hands it out."""
        from http.client import HTTPException  # noqa: PLC0415 - start-up: it costs a third of the package

        body = b'{"turns":[' + b",".join(waiting.turn for waiting in batch) + b"]}"
        pause_s = FIRST_PAUSE_S
        while True:
            error: ProctorError
            try:
                status, answer = self._post(body)
                if status == 200:  # noqa: PLR2004 - the HTTP status
                    for waiting, found in zip(batch, answer["results"], strict=True):
                        _hand_out(waiting.future, _error_of(found) if "error" in found else Decision(found))
                    return
                error = _error_of(answer)
            except (OSError, HTTPException, ValueError, KeyError) as broken:
                why = getattr(broken, "strerror", None) or repr(broken)
                status, error = 503, ProctorError(f"{self._url.geturl()}: {why}", hint="is the service up?")
            if status in SPLIT and len(batch) > 1:
                half = len(batch) // 2
                self._send_batch(batch[:half], deadline_s)
                self._send_batch(batch[half:], deadline_s)
                return
            if status not in RETRIED or monotonic() + pause_s > deadline_s:
                for waiting in batch:
                    _hand_out(waiting.future, error)
                return
            threading.Event().wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _post(self, body: bytes) -> tuple[int, Any]:
        """Makes one request; a connection that broke is made anew by the next one."""
        from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - see above

        if self._connection is None:
            make = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
            self._connection = make(self._url.hostname or "", self._url.port, timeout=self._timeout_s)
        try:
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
            self._connection.request("POST", f"{self._url.path.rstrip('/')}/v1/turns", body, headers)
            response = self._connection.getresponse()
            return response.status, json.loads(response.read())
        except Exception:
            self._connection.close()
            self._connection = None
            raise


async def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    import asyncio  # noqa: PLC0415 - start-up: only coroutines need it

    return await asyncio.to_thread(function, *arguments)


class AsyncProducer:
    """The same for asyncio: futures of the running loop.

    Args:
        url: of the service.
        token: of the caller.
        options: those of `Producer`.
    """

    def __init__(self, url: str, token: str, **options: Any) -> None:
        self._producer = Producer(url, token, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, turn: Mapping[str, Any]) -> "asyncio.Future[Decision]":
        """Sends a turn, once there is room; the future has its decision."""
        import asyncio  # noqa: PLC0415 - start-up: only coroutines need it

        return asyncio.wrap_future(await _in_thread(self._producer.send, turn))

    async def send_many(self, turns: Iterable[Mapping[str, Any]]) -> "list[asyncio.Future[Decision]]":
        """Sends turns in order."""
        return [await self.send(turn) for turn in turns]

    async def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until no turn waits."""
        return await _in_thread(self._producer.flush, timeout_s)

    async def close(self) -> None:
        """Sends what waits, and ends."""
        await _in_thread(self._producer.close)


def _hand_out(future: "Future[Decision]", found: Decision | ProctorError) -> None:
    """Ends the future of one turn, unless its caller has cancelled it; the turn counts all the same."""
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(found, Decision):
        future.set_result(found)
    else:
        future.set_exception(found)


def _error_of(answer: Mapping[str, Any]) -> TurnError:
    """Makes an error of what the service says."""
    said = answer.get("error") or {}
    return TurnError(
        said.get("message", "the service refused"), hint=said.get("hint", ""), code=said.get("code", "")
    )
