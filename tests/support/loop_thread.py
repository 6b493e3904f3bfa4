"""Serves from an event loop in a thread of its own, for tests that have no loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

START_S = 10.0
"""How long a server may take to start, and to end."""

Serve = Callable[[Callable[[], None], asyncio.Event], Coroutine[Any, Any, None]]
"""Serves until the event is set; calls the function once it can be reached."""


class LoopThread:
    """A server that runs until it is stopped.

    Args:
        serve: the server.
        what: names it where it does not start.
    """

    def __init__(self, serve: Serve, what: str) -> None:
        ready, self._stop = threading.Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        work = serve(ready.set, self._stop)
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(work))
        self._thread.start()
        assert ready.wait(START_S), f"{what} does not start"

    def stop(self) -> None:
        """Ends it, and the thread."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_S)
        self._loop.close()
