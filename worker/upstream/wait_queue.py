"""A queue of coroutines that wait for a call to end; they are woken one at a time, first come, first served.

Only the first in the queue asks Redis: when a call of this process has ended, and now and then because calls
of other processes end too.
"""

import asyncio
from collections import deque
from enum import StrEnum
from typing import Final

FIRST_POLL_S: Final = 0.05
"""How long to wait before asking whether there is room again, until the script says how long."""


class WakeReason(StrEnum):
    """Why a waiter was woken."""

    CALL_ENDED = "call_ended"
    """A call of ours has ended: there is room for one."""
    POLL = "poll"
    """There may be room: calls of other processes have ended too."""
    TIMED_OUT = "timed_out"
    """It waited long enough."""


class WaitQueue:
    """Coroutines that wait for a call to end; first come, first served."""

    def __init__(self) -> None:
        self.waiters: deque[asyncio.Future[WakeReason]] = deque()
        self.poll_s = FIRST_POLL_S
        """How long to wait for the end of a call of ours before asking again, as the script answered last."""
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, patience_s: float, *, is_first: bool) -> WakeReason:
        """Waits to be woken."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[WakeReason] = loop.create_future()
        (self.waiters.appendleft if is_first else self.waiters.append)(waiter)
        self._set_timer()
        patience = loop.call_later(patience_s, self._wake, waiter, WakeReason.TIMED_OUT)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.wake_next(waiter.result())  # the wake-up belongs to the next one
            else:
                self.waiters.remove(waiter)
            raise
        finally:
            patience.cancel()

    def wake_next(self, reason: WakeReason) -> None:
        """Wakes the first waiter."""
        if self.waiters:
            self._wake(self.waiters[0], reason)

    def _wake(self, waiter: "asyncio.Future[WakeReason]", reason: WakeReason) -> None:
        if not waiter.done():
            self.waiters.remove(waiter)
            waiter.set_result(reason)
        if self.waiters:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.poll_s, self._poll)

    def _poll(self) -> None:
        self._timer = None
        self.wake_next(WakeReason.POLL)
