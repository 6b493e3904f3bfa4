"""Limits how many items one process works on at a time, over all its chunks: `-j` holds for the process."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from worker.lease_table import Lease

SPARE: Final = 2
"""One more item is claimed for this many that may run."""
POLL_S: Final = 0.2
"""How often a blocked `acquire` checks whether it is to give up."""
DECIDING: Final = 2
"""Chunks of turns that are decided at a time. Deciding is CPU work: a second one covers Redis' answers, a
third would wait and hold memory."""


class InFlightLimit:
    """Admits chunks until half as many items again as may run are claimed and not yet done.

    A chunk is admitted whole, for all of its items, whose places become free one by one: a chunk whose last
    item is slow holds one place. What is claimed beyond the limit waits on `semaphore`, so that nothing
    stands idle between the end of one chunk and the claim of the next.

    Args:
        size: items that may run at a time.
    """

    def __init__(self, size: int) -> None:
        self.semaphore = asyncio.Semaphore(size)
        """Bounds the items that run; for coroutines on the loop."""
        self.size = size
        """Items that may run at a time."""
        self._admitted_below = size + (size // SPARE if size >= SPARE else 0)
        self._acquired = 0
        self._released = threading.Condition()

    def admit(self, items: int, is_cancelled: Callable[[], bool]) -> "Admission | None":
        """Blocks until a chunk of so many items is admitted; returns None if cancelled."""
        with self._released:
            while self._acquired >= self._admitted_below:
                if is_cancelled():
                    return None
                self._released.wait(POLL_S)
            self._acquired += items
            self._wake_next()
        return Admission(self, items)

    def release(self, items: int) -> None:
        """Returns the places of items that are done."""
        with self._released:
            self._acquired -= items
            self._wake_next()

    def _wake_next(self) -> None:
        if self._acquired < self._admitted_below:
            self._released.notify()


class Admission:
    """The places of one chunk.

    Args:
        limit: where they belong.
        items: how many there are.
    """

    def __init__(self, limit: InFlightLimit, items: int) -> None:
        self._limit, self._left = limit, items

    def release(self, items: int) -> None:
        """Returns the places of items that are done; at most those that are left."""
        done = min(items, self._left)
        self._left -= done
        self._limit.release(done)

    def keep(self, items: int) -> None:
        """Returns the places of all but some items, which are under way."""
        self.release(max(0, self._left - items))

    def close(self) -> None:
        """Returns all that are left."""
        self.release(self._left)


class AnswerSlots:
    """Chunks that have answers under way, some at a time, and the line of those that wait for that.

    A turn that asks nothing needs no slot: the threads of a process are more than these, so that its decision
    waits for nobody's answer.

    Args:
        threads: chunks of turns that the process works on at a time.
        wanted: chunks with answers under way, at most; None: all of them.
    """

    def __init__(self, threads: int, wanted: int | None) -> None:
        self._free = threads if wanted is None else min(wanted, max(1, threads - DECIDING))
        self._longest = max(0, threads - DECIDING - self._free)
        self._line = deque[Lease]()
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, lease: Lease, should_stop: Callable[[Lease], bool]) -> Iterator[bool]:
        """Waits for a slot; yields False if the line is full, or the chunk is to stop."""
        with self._changed:
            is_taken = self._free > 0 and not self._line
            if not is_taken and len(self._line) < self._longest:
                self._line.append(lease)
                while not (is_taken := self._free > 0 and self._line[0] is lease) and not should_stop(lease):
                    self._changed.wait(POLL_S)
                self._line.remove(lease)
            self._free -= is_taken
            self._changed.notify_all()
        try:
            yield is_taken
        finally:
            with self._changed:
                self._free += is_taken
                self._changed.notify_all()
