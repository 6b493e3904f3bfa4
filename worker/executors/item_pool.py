"""Works on the items of one claimed chunk concurrently, on the process's event loop.

    the chunk's thread          the loop
    claim                  ──►  one task an item: work, wait, work
    judge, commit          ◄──  what ended within a few milliseconds, together

An item ends in one of four ways: with an **answer**, which the thread judges; **postponed**, to be tried
again later by whoever claims it then; **broken**, because the engine itself failed; or **left** as it was,
because the chunk is to stop.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from shared.clock import now_ms
from shared.ledger import ClaimedItem
from shared.observability import tracing
from worker.in_flight_limit import Room
from worker.lease_table import Lease
from worker.loop import Loop

COLLECT_S: Final = 0.004
"""Items that end within this time of each other are committed together."""


class Postponed(NamedTuple):
    """An item is to be tried again later: its wait is too long to be waited here."""

    attempts: int
    """Attempts made so far."""
    wait_s: float
    """From now."""
    error: str
    """What the last attempt ended with."""


class Broken(NamedTuple):
    """The engine itself failed on an item."""

    error: Exception
    """How."""


class Left:
    """The item was left as it was."""


class Begun:
    """Something that is worked on by a task on the loop."""

    __slots__ = ("_calls", "started_ms", "task")

    def __init__(self) -> None:
        self.started_ms = 0
        """When the work on it began."""
        self._calls = 0
        self.task: asyncio.Task[None] | None = None

    @property
    def is_calling(self) -> bool:
        """Whether an upstream is at work for it, so that a pause lets it end."""
        return self._calls > 0

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Marks an attempt; several may be made at a time, and a gentle stop waits until all are over."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1


class Item(Begun):
    """One case or query in hand.

    Args:
        lease: of its chunk.
        claimed: what the ledger knows of it.
    """

    __slots__ = ("attempts", "claimed", "lease", "payload", "span")

    def __init__(self, lease: Lease, claimed: ClaimedItem) -> None:
        super().__init__()
        self.lease = lease
        self.claimed = claimed
        self.payload = claimed.payload
        self.attempts = claimed.attempts
        """Attempts so far; whoever makes one counts it here."""
        self.span = tracing.OFF
        """Of the work on it, until it is judged."""


T = TypeVar("T", bound=Begun)
T_contra = TypeVar("T_contra", bound=Begun, contravariant=True)


class Worked(NamedTuple, Generic[T]):
    """How the work on an item ended on the loop."""

    item: T
    """Which one."""
    end: Any
    """An answer for `judge`, or one of `Postponed`, `Broken`, `Left`."""


class Ended(NamedTuple, Generic[T]):
    """Items that ended together."""

    worked: list[Worked[T]]
    """In the order in which they ended."""
    is_last: bool
    """Whether nothing of the chunk is on the loop any more."""


class Works(Protocol[T_contra]):
    """What is done for an item on the loop."""

    def __call__(self, item: T_contra, /) -> Awaitable[Any]:
        """Returns an answer, or `Postponed`."""


class InHand(Generic[T]):
    """The items of one claim.

    Args:
        loop: the process's.
        room: bounds the items that are under way in the process.
        items: what to work on, in order; `add` brings more.
        work: what to do for each, on the loop.
        most: how many of them may be under way at a time.
    """

    def __init__(self, loop: Loop, room: Room, items: Sequence[T], work: Works[T], *, most: int) -> None:
        self._loop = loop
        self._room = room
        self._items = dict.fromkeys(items)
        self._work = work
        self._beginning = asyncio.Semaphore(max(1, most))
        self._open = len(items)
        self._ended = list[Worked[T]]()
        self._is_collecting = False
        self._is_stopping = False
        self._out: SimpleQueue[Ended[T]] = SimpleQueue()

    def start(self) -> None:
        """Begins, in order; returns at once."""
        self._loop.call(self._begin)

    def add(self, item: T) -> None:
        """Begins with one more item, or again with one that has ended."""
        self._loop.call(self._add, item)

    def collect(self, within_s: float) -> Ended[T] | None:
        """Returns items that have ended; None when none has within this time."""
        try:
            return self._out.get(timeout=within_s)
        except Empty:
            return None

    def stop(self, *, is_hard: bool) -> None:
        """Leaves what has not begun and what waits; with `is_hard` also what an upstream is at work for."""
        self._loop.call(self._stop, is_hard)

    def _begin(self) -> None:
        for item in self._items:
            item.task = asyncio.get_running_loop().create_task(self._run(item))

    def _add(self, item: T) -> None:
        self._items[item] = None
        self._open += 1
        item.task = asyncio.get_running_loop().create_task(self._run(item))

    async def _run(self, item: T) -> None:
        end: Any = Left()
        try:
            async with self._beginning, self._room.calls:
                if not self._is_stopping:
                    item.started_ms = now_ms()
                    end = await self._work(item)
        except asyncio.CancelledError:
            end = Left()
        except Exception as error:  # noqa: BLE001 - an item that breaks the engine must not stop the others
            end = Broken(error)
        self._end(Worked(item, end))

    def _end(self, worked: Worked[T]) -> None:
        self._ended.append(worked)
        self._open -= 1
        if not self._open:
            self._hand_over()
        elif not self._is_collecting:
            self._is_collecting = True
            asyncio.get_running_loop().call_later(COLLECT_S, self._hand_over)

    def _hand_over(self) -> None:
        self._is_collecting = False
        if self._ended:
            self._out.put(Ended(self._ended, is_last=not self._open))
            self._ended = []

    def _stop(self, is_hard: bool) -> None:  # noqa: FBT001 - called through the loop, which takes positions
        self._is_stopping = True
        for item in self._items:
            if item.task is not None and (is_hard or not item.is_calling):
                item.task.cancel()
