"""Counts the items that one process has at work, over all its chunks, so that `-j` holds for all of them."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final

SPARE: Final = 2
"""One item in so many more is claimed than may be under way."""
LOOK_S: Final = 0.2
"""How often a thread that waits for room looks whether it still should."""


class Room:
    """Room for so many items.

    A chunk is let in while the room is not half as much again taken, and takes room for all of its own: what
    is let in beyond the room waits, claimed, so that no place is empty while a chunk ends and the next comes.

    Args:
        most: items that may be under way at a time.
    """

    def __init__(self, most: int) -> None:
        self.calls = asyncio.Semaphore(most)
        """What exactly is under way; for the loop."""
        self.most = most
        """Items that may be under way."""
        self._enough = most + (most // SPARE if most >= SPARE else 0)
        self._taken = 0
        self._changed = threading.Condition()

    def enter(self, items: int, is_over: Callable[[], bool]) -> bool:
        """Waits until a chunk may begin; returns False when `is_over` says that nothing more is to begin."""
        with self._changed:
            while self._taken >= self._enough:
                if is_over():
                    return False
                self._changed.wait(LOOK_S)
            self._taken += items
        return True

    def leave(self, items: int) -> None:
        """Gives back room that `enter` took, when items are committed."""
        with self._changed:
            self._taken -= items
            self._changed.notify_all()
