"""Serves from an event loop in a thread of its own, for callers that have no loop."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from queue import SimpleQueue


@contextmanager
def in_thread(serving: Callable[[], AbstractAsyncContextManager[str]], name: str) -> Iterator[str]:
    """Serves while the block runs; yields the address.

    Args:
        serving: serves while its block runs, and yields the address.
        name: of the thread.
    """
    outcome = SimpleQueue[str | BaseException]()
    handles = SimpleQueue[Callable[[], object]]()

    async def until_stopped() -> None:
        """Serves until the block ends."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with serving() as url:
            handles.put(lambda: loop.call_soon_threadsafe(stop.set))
            outcome.put(url)
            await stop.wait()

    def serve_or_say_why() -> None:
        try:
            asyncio.run(until_stopped())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asked
            outcome.put(error)

    thread = threading.Thread(target=serve_or_say_why, name=name)
    thread.start()
    started = outcome.get()
    if isinstance(started, BaseException):
        thread.join()
        raise started
    try:
        yield started
    finally:
        handles.get()()
        thread.join()
