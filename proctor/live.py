"""Turns of conversations, decided by `proctor serve` while people talk: a client with batches and retries.

    with Producer("http://127.0.0.1:7358", token) as turns:
        decision = turns.send({"threadId": "t1", "message": "Let us go with plan B"}).result()

Turns of one thread keep the order of their `send`. Each gets a `clientRequestId`, so that one that is sent
again after a lost reply counts once.
"""

import atexit
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from warnings import warn

from proctor.errors import ProctorError, ProctorWarning
from proctor.turn_service import Decision, TurnError, TurnService

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

MOST_TURNS: Final = 500
"""Turns of one request: as many as the service takes."""
MOST_BYTES: Final = 3 << 20
"""Bytes of one request, unless one turn has more; the service takes 4 MiB."""
RETRIED: Final = frozenset({408, 429, 502, 503, 504})
"""Statuses after which the same turns are sent again."""
SPLIT: Final = frozenset({400, 413})
"""Statuses after which they are sent in two parts: one of them is wrong, or they are too much."""
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 2.0
"""Between two attempts, unless the service asks for more with `Retry-After`."""
MOST_RETRY_AFTER_S: Final = 60.0
"""Of which it gets no more than this."""
EXIT_S: Final = 5.0
"""How long the end of the program waits for turns of producers that were not closed."""
JOIN_S: Final = 1.0
"""How long `close` waits for threads that have nothing to do any more."""


class QueueFullError(ProctorError):
    """More turns wait in this process than it may keep."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """A turn without a decision."""

    turn: bytes
    deadline_s: float
    future: "Future[Decision]" = field(default_factory=Future)


class Producer:
    """Sends turns from any thread; one thread of its own makes the requests, another one keeps the deadlines.

    When the program ends, producers that it has not closed send what waits, for at most `EXIT_S`.

    Args:
        url: of the service, as `proctor serve` prints it.
        token: of the caller.
        max_waiting: turns that may wait; then `send` waits, or raises.
        waits: whether `send` waits for room; otherwise it raises `QueueFullError`.
        timeout_s: how long a turn may take from its `send` on, retries included.

    Raises:
        ProctorError: the URL is not one of HTTP, or a header cannot have the token.
    """

    def __init__(
        self, url: str, token: str, *, max_waiting: int = 10_000, waits: bool = True, timeout_s: float = 60.0
    ) -> None:
        self._url, self._token = url, token
        self._max_waiting, self._waits, self._timeout_s = max_waiting, waits, timeout_s
        self._is_closed = False
        self._begin()
        _UNCLOSED[self] = self._begin

    def _begin(self) -> None:
        """Begins without turns, also in a process that was forked: those of its parent are not its own."""
        self._service = TurnService(self._url, self._token)
        self._changed, self._ended = threading.Condition(), threading.Event()
        self._gathered = deque[_Waiting]()
        """Turns of no request yet."""
        self._asked = list[_Waiting]()
        """Turns of the last request."""
        self._open = dict[_Waiting, bool]()
        """Turns whose future has not ended, the earliest deadline first."""
        self._waiting = 0
        """Those, and turns whose callbacks are being called."""
        self._trouble: TurnError | None = None
        """Why the last request is made again."""
        self._threads = list[threading.Thread]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, turn: Mapping[str, Any]) -> "Future[Decision]":
        """Sends a turn: the object of a line of a turns file.

        Returns:
            A future, which ends within `timeout_s`; its `result()` raises `TurnError` without a decision.

        Raises:
            QueueFullError: too many turns wait, and this producer does not.
            ProctorError: the producer is closed.
        """
        line = json.dumps(
            {"clientRequestId": f"py-{os.urandom(16).hex()}", **turn}, ensure_ascii=False
        ).encode()
        with self._changed:
            if threading.current_thread() not in self._threads:  # in a callback, which would wait for itself
                if not self._waits and not self._takes_more():
                    raise QueueFullError(
                        f"{self._waiting:,} turns wait", hint="wait for some of their futures"
                    )
                self._changed.wait_for(self._takes_more)
            if self._is_closed:
                raise ProctorError("the producer is closed", hint="make a new one")
            if not self._threads:
                works = (self._send_all, self._keep_deadlines)
                self._threads += [
                    threading.Thread(target=work, name="proctor producer", daemon=True) for work in works
                ]
                for thread in self._threads:
                    thread.start()
            waiting = _Waiting(line, monotonic() + self._timeout_s)
            self._open[waiting] = True
            self._waiting += 1
            self._gathered.append(waiting)
            self._changed.notify_all()
        return waiting.future

    def send_many(self, turns: Iterable[Mapping[str, Any]]) -> "list[Future[Decision]]":
        """Sends turns in order."""
        return [self.send(turn) for turn in turns]

    def wait_for_room(self) -> None:
        """Waits until `send` does not wait."""
        with self._changed:
            self._changed.wait_for(self._takes_more)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until no turn waits; returns False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_s)

    def close(self, timeout_s: float | None = None) -> None:
        """Sends what waits, and ends.

        Args:
            timeout_s: how long that may take, by default `timeout_s` of the producer; then futures that are
                left end with an error, and a `ProctorWarning` counts them.
        """
        within_s = self._timeout_s if timeout_s is None else timeout_s
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        _UNCLOSED.pop(self, None)
        self.flush(within_s)
        if left := self._still_open(self._open):
            what = f"no decision from {self._service.url} within {within_s:g} s of the end of the producer"
            self._end_all(left, TurnError(what, code="closed"))
            warn(
                f"{len(left):,} turns may be lost: {what}; call close() earlier", ProctorWarning, stacklevel=2
            )
        self._ended.set()
        self._service.interrupt()
        for thread in self._threads:
            thread.join(JOIN_S)

    def _takes_more(self) -> bool:
        return self._waiting < self._max_waiting or self._is_closed

    def _send_all(self) -> None:
        """Sends batches until the producer is closed."""
        while batch := self._taken():
            try:
                self._send_batch(batch)
            except BaseException as defect:  # noqa: BLE001 - whatever it is, nobody else would end these futures
                self._end_all(batch, TurnError(f"a defect of the producer: {defect!r}", code="internal"))
        self._service.close()

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

    def _send_batch(self, batch: list[_Waiting]) -> None:
        """Sends turns until there is an answer that stays, or their time is up."""
        pause_s = FIRST_PAUSE_S
        while batch := self._still_open(batch):
            self._asked = batch
            # The socket's time ends later than the turns': then the other thread says why there is no answer.
            within_s = max(batch[-1].deadline_s - monotonic(), 0) + LONGEST_PAUSE_S
            answer = self._service.ask([waiting.turn for waiting in batch], within_s)
            self._trouble = answer.error if answer.status in RETRIED else None
            if answer.status in SPLIT and len(batch) > 1:
                half = len(batch) // 2
                self._send_batch(batch[:half])
                self._send_batch(batch[half:])
                return
            if answer.status not in RETRIED:
                self._end(zip(batch, answer.outcomes(len(batch)), strict=True))
                return
            self._ended.wait(max(pause_s, min(answer.retry_after_s, MOST_RETRY_AFTER_S)))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S, self._timeout_s / 4)

    def _keep_deadlines(self) -> None:
        """Ends turns whose time is up, whatever the other thread waits for, until the producer is closed."""
        left_s = self._timeout_s
        while not self._ended.wait(left_s):
            now_s = monotonic()
            late = [waiting for waiting in self._still_open(self._open) if waiting.deadline_s <= now_s]
            why = self._trouble or TurnError(f"no answer from {self._service.url}", code="deadline")
            what = f"no decision within {self._timeout_s:g} s: {why.message}"
            self._end_all(late, TurnError(what, hint=why.hint, code=why.code))
            if late and not self._still_open(self._asked):
                self._service.interrupt()
            first = next(iter(self._still_open(self._open)), None)
            left_s = first.deadline_s - monotonic() if first else self._timeout_s

    def _still_open(self, among: Iterable[_Waiting]) -> list[_Waiting]:
        """Returns those turns whose future has not ended."""
        with self._changed:
            return [waiting for waiting in among if waiting in self._open]

    def _end(self, found: Iterable[tuple[_Waiting, Decision | TurnError]]) -> None:
        """Ends futures, each once; what its caller has cancelled has no result, and its turn counts."""
        with self._changed:
            mine = [(waiting.future, each) for waiting, each in found if self._open.pop(waiting, False)]
        for future, each in mine:
            with suppress(BaseException):  # of a callback, such as SystemExit
                if not future.set_running_or_notify_cancel():
                    continue
                if isinstance(each, Decision):
                    future.set_result(each)
                else:
                    future.set_exception(each)
        with self._changed:
            self._waiting -= len(mine)
            self._changed.notify_all()

    def _end_all(self, batch: Iterable[_Waiting], error: TurnError) -> None:
        self._end((waiting, error) for waiting in batch)


_UNCLOSED: Final = dict[Producer, Callable[[], None]]()
"""Producers that are not closed, with what a process calls after it was forked."""


@atexit.register
def _close_all() -> None:
    """Closes what the program has not closed; daemon threads run until after this."""
    deadline_s = monotonic() + EXIT_S
    for producer in tuple(_UNCLOSED):
        producer.close(max(deadline_s - monotonic(), 0.0))


def _begin_all() -> None:
    for begin in _UNCLOSED.values():
        begin()


os.register_at_fork(after_in_child=_begin_all)


async def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    import asyncio  # noqa: PLC0415 - start-up: only coroutines need it

    return await asyncio.to_thread(function, *arguments)


class AsyncProducer:
    """The same for asyncio: futures of the running loop.

    Args:
        url: of the service.
        token: of the caller.
        waits: whether `send` waits for room.
        options: others of `Producer`.
    """

    def __init__(self, url: str, token: str, *, waits: bool = True, **options: Any) -> None:
        self._producer, self._waits = Producer(url, token, waits=False, **options), waits

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, turn: Mapping[str, Any]) -> "asyncio.Future[Decision]":
        """Sends a turn, once there is room; the future has its decision."""
        import asyncio  # noqa: PLC0415 - start-up: only coroutines need it

        while True:
            try:
                return asyncio.wrap_future(self._producer.send(turn))
            except QueueFullError:
                if not self._waits:
                    raise
            await _in_thread(self._producer.wait_for_room)

    async def send_many(self, turns: Iterable[Mapping[str, Any]]) -> "list[asyncio.Future[Decision]]":
        """Sends turns in order."""
        return [await self.send(turn) for turn in turns]

    async def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until no turn waits."""
        return await _in_thread(self._producer.flush, timeout_s)

    async def close(self, timeout_s: float | None = None) -> None:
        """Sends what waits, and ends."""
        await _in_thread(self._producer.close, timeout_s)
