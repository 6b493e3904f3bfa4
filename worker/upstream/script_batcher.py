"""Runs scripts for coroutines: calls of the same moment go to Redis in one round trip.

One call of an asyncio client costs 50 µs of the loop; here a call costs 10, because calls that come while a
round trip is under way wait for the next one and share it. One thread sends them, in their order.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, NamedTuple

from shared.errors import ProctorError, RedisUnreachableError
from shared.ledger.calls import ScriptCaller

MOST_CALLS: Final = 256
"""Calls in one round trip, so that none waits for hundreds of others."""

Argument = str | bytes | float
logger = logging.getLogger(__name__)


class ScriptFailedError(ProctorError):
    """A script of ours failed on the server, or could not be sent."""


class _Call(NamedTuple):
    name: str
    arguments: tuple[Argument, ...]
    answer: "asyncio.Future[Any] | None"


class _Job(NamedTuple):
    every_s: float
    work: Callable[[], object]


def _end_of_process(error: RedisUnreachableError) -> None:
    logger.error("redis unreachable", extra={"reason": error.message})


class ScriptBatcher:
    """The scripts on one server, for one event loop.

    Args:
        caller: a connection with the scripts; waits patiently for a Redis that is away.
        renew_s: between two renewals of what its users hold in Redis.
        on_unreachable: called, in the batcher's thread, when Redis stayed away for longer than the
            caller's patience.
    """

    def __init__(
        self,
        caller: ScriptCaller,
        *,
        renew_s: float,
        on_unreachable: Callable[[RedisUnreachableError], object] = _end_of_process,
    ) -> None:
        self.caller = caller
        self.renew_s = renew_s
        self._on_unreachable = on_unreachable
        self._queue: SimpleQueue[_Call | None] = SimpleQueue()
        self._jobs: list[_Job] = []
        self._thread: threading.Thread | None = None
        self.is_closed = False
        """Whether what is posted is dropped."""

    def every(self, seconds: float, work: Callable[[], object]) -> None:
        """Calls a function at intervals, in the batcher's thread; to be set before the first call."""
        self._jobs.append(_Job(seconds, work))

    def run(self, name: str, *arguments: Argument) -> "asyncio.Future[Any]":
        """Runs a script and returns its answer, see `ScriptCaller.run`; only on the event loop.

        Raises:
            ScriptFailedError: the batcher is closed.
        """
        if self.is_closed:
            raise ScriptFailedError("the process ends: no upstream is called any more")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(_Call(name, arguments, answer))
        return answer

    def post(self, name: str, *arguments: Argument) -> None:
        """Runs a script without waiting for its answer; after all earlier calls.

        Does nothing once the batcher is closed: what ends with the process is left to its leases.
        """
        if not self.is_closed:
            self._put(_Call(name, arguments, None))

    def close(self) -> None:
        """Ends the thread, after all earlier calls."""
        self.is_closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _put(self, call: _Call) -> None:
        self._queue.put(call)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="upstream scripts", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        due = [monotonic() + job.every_s for job in self._jobs]
        is_open = True
        while is_open:
            wait_s = max(0.0, min(due) - monotonic()) if due else None
            calls, is_open = self._collect(wait_s)
            if calls:
                self._send(calls)
            for place, job in enumerate(self._jobs):
                if monotonic() >= due[place]:
                    self._guard(job.work)
                    due[place] = monotonic() + job.every_s

    def _collect(self, wait_s: float | None) -> tuple[list[_Call], bool]:
        """Waits for a call, and takes with it what has come meanwhile."""
        calls: list[_Call] = []
        try:
            call = self._queue.get(timeout=wait_s)
            while call is not None:
                calls.append(call)
                if len(calls) == MOST_CALLS:
                    return calls, True
                call = self._queue.get_nowait()
        except Empty:
            return calls, True
        return calls, False

    def _send(self, calls: list[_Call]) -> None:
        answers: list[Any] = []

        def send() -> None:
            answers.extend(self.caller.run_many([(call.name, call.arguments) for call in calls]))

        failure = self._guard(send)
        if failure is not None:
            answers = [failure] * len(calls)
        waiting = []
        for call, answer in zip(calls, answers, strict=True):
            if call.answer is not None:
                waiting.append((call.answer, answer))
            elif isinstance(answer, Exception) and failure is None:
                logger.error("script failed", extra={"script": call.name, "reason": str(answer)})
        if waiting:
            loop = waiting[0][0].get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_answer, waiting)

    def _guard(self, work: Callable[[], object]) -> Exception | None:
        """Calls a function; a failure costs that one call, an outage of Redis is reported to the process."""
        try:
            work()
        except RedisUnreachableError as error:
            self._on_unreachable(error)
            return error
        except Exception as error:
            logger.exception("round failed", extra={"job": "upstream scripts"})
            return error
        return None


def _answer(waiting: "list[tuple[asyncio.Future[Any], Any]]") -> None:
    for future, answer in waiting:
        if future.done():
            continue  # who asked was cancelled
        if isinstance(answer, RedisUnreachableError):
            future.set_exception(answer)
        elif isinstance(answer, Exception):
            future.set_exception(ScriptFailedError(f"a script failed on the server: {answer}"))
        else:
            future.set_result(answer)
