"""Serves HTTP: on an address, until a signal, or from a thread for callers without an event loop."""

import asyncio
import os
import resource
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from queue import SimpleQueue
from time import monotonic
from typing import Final

from aiohttp import web

from shared.errors import (
    IdempotencyConflictError,
    InfrastructureError,
    NoRoomError,
    ProctorError,
    RunStateError,
    UnknownRunError,
)

TAKEN_HINT: Final = "choose another port, or --port 0 for a free one"
HOST_HINT: Final = "--host is an address of this machine, such as 127.0.0.1, ::1 or 0.0.0.0"
MOST_FILES: Final = 65_536
FIRST_REQUEST_S: Final = 10.0
"""How long a new connection may take for the head of its first request."""
HURRIED_S: Final = 1.0
"""The same while there are so many that open files may run out."""
_STATUSES: Final[Sequence[tuple[type[ProctorError], int]]] = (
    (UnknownRunError, 404),
    (RunStateError, 409),
    (IdempotencyConflictError, 409),
    (NoRoomError, 429),
    (InfrastructureError, 503),
)


def status_of(error: ProctorError) -> int:
    """Returns the HTTP status of an error of ours.

    >>> status_of(UnknownRunError("no run is called r")), status_of(ProctorError("wrong"))
    (404, 400)
    """
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 400)


@asynccontextmanager
async def listening(
    runner: web.AppRunner, host: str, port: int, *, hint: str = TAKEN_HINT
) -> AsyncIterator[str]:
    """Serves while the block runs; yields the base URL.

    Args:
        runner: of the application.
        host: the address to listen on.
        port: where to listen; 0 takes a free port.
        hint: what to do when the port is taken.

    Raises:
        InfrastructureError: the port cannot be opened.
    """
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except socket.gaierror as error:  # its number is none of the system's
            raise InfrastructureError(
                f"cannot listen on {host}: {str(error.strerror).lower()}", hint=HOST_HINT
            ) from None
        except OSError as error:
            what = f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0).lower()}"
            raise InfrastructureError(what, hint=hint) from None
        yield f"http://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def raise_open_files() -> int:
    """Raises this process' limit of open files, of which each connection is one; returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


class SilentConnections:
    """Ends connections on which no request comes: each costs an open file, and needs no token.

    Those that have had a request end when they have been idle for as long as aiohttp keeps them.

    Args:
        most: connections above which they end after `HURRIED_S`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._spoke = set[web.RequestHandler]()
        self._since_s = dict[web.RequestHandler, float]()

    def spoke(self, request: web.Request) -> None:
        """Notes that a connection has had a request."""
        self._spoke.add(request.protocol)

    def end(self, connections: Sequence[web.RequestHandler]) -> None:
        """Ends those that have been silent for too long; to be called now and then, with all there are."""
        self._spoke.intersection_update(connections)
        now_s = monotonic()
        silent = [each for each in connections if each not in self._spoke]
        self._since_s = {each: self._since_s.get(each, now_s) for each in silent}
        patience_s = FIRST_REQUEST_S if len(connections) <= self._most else HURRIED_S
        for each, since_s in self._since_s.items():
            if now_s - since_s > patience_s:
                each.force_close()


def stop_signal() -> asyncio.Event:
    """Returns an event of the running loop that SIGINT and SIGTERM set from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


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
