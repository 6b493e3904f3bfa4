"""Limits how many items one process works on at a time, over all its chunks: `-j` holds for the process."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final

SPARE: Final = 2
"""One more item is claimed for this many that may run."""
POLL_S: Final = 0.2
"""How often a blocked `acquire` checks whether it is to give up."""


class InFlightLimit:
    """Admits chunks until half as many items again as may run are claimed.

    A chunk is admitted whole, for all of its items. What is claimed beyond the limit waits on `semaphore`, so
    that nothing stands idle between the end of one chunk and the claim of the next.

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

    def acquire(self, items: int, is_cancelled: Callable[[], bool]) -> bool:
        """Blocks until a chunk of so many items is admitted; returns False if cancelled."""
        with self._released:
            while self._acquired >= self._admitted_below:
                if is_cancelled():
                    return False
                self._released.wait(POLL_S)
            self._acquired += items
        return True

    def release(self, items: int) -> None:
        """Returns what `acquire` took, once the items are committed."""
        with self._released:
            self._acquired -= items
            self._released.notify_all()
