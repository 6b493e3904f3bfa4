"""Runs the one event loop of a worker process, in a thread of its own that starts when it is first needed.

Everything that waits for an upstream waits here, thousands at a time, with one HTTP session between them. The
threads of Celery's pool stay outside: they claim and commit chunks, do the work that needs a processor, and
hand coroutines in with `submit`.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from shared.settings import Settings
from shared.upstream.egress import EgressPolicy

if TYPE_CHECKING:
    from concurrent.futures import Future

    import aiohttp

CLOSE_S: Final = 2.0
"""How long ending the loop may take at the end of the process."""

T = TypeVar("T")


class Loop:
    """An event loop in a thread; safe to use from any other thread."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._session: aiohttp.ClientSession | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begins a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for what it returns; never from the loop itself."""
        return self.submit(work).result()

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls a function on the loop, soon."""
        self._running().call_soon_threadsafe(function, *arguments)

    def prepare(self) -> None:
        """Begins to load what the session needs, so that the first item does not wait for it."""
        self.call(self.session)

    def session(self) -> "aiohttp.ClientSession":
        """Returns the process's HTTP session, which calls only what this worker may; only on the loop."""
        if self._session is None:
            from shared.upstream.http_session import open_session  # noqa: PLC0415 - start-up: 90 ms, 9 MB

            self._session = open_session(EgressPolicy.of(Settings.from_environment()))
        return self._session

    def close(self) -> None:
        """Ends the session and the loop; what still runs on it is abandoned."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is None:
            return
        if self._session is not None:
            ending = asyncio.run_coroutine_threadsafe(self._session.close(), loop)
            try:
                ending.result(CLOSE_S)
            except TimeoutError:
                ending.cancel()
        loop.call_soon_threadsafe(loop.stop)
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="loop", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    if not asyncio.all_tasks(loop):  # what still runs is abandoned with its loop
        loop.close()
