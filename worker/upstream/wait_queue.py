"""Lets callers that wait for a call to end go on one after the other, first come, first served.

Only the first in line asks Redis: when a call of this process has ended, and now and then because calls of
other processes end too.
"""

import asyncio
from collections import deque
from enum import StrEnum
from typing import Final

FIRST_LOOK_S: Final = 0.05
"""How long to wait before asking whether there is room again, until the script says how long."""


class Turn(StrEnum):
    """Why a caller goes on."""

    ENDED = "ended"
    """A call of ours has ended: there is room for one."""
    TIME = "time"
    """There may be room: calls of other processes have ended too."""
    OVER = "over"
    """It waited long enough."""


class Line:
    """Callers of one endpoint that wait for a call to end; first come, first served."""

    def __init__(self) -> None:
        self.callers: deque[asyncio.Future[Turn]] = deque()
        self.look_s = FIRST_LOOK_S
        """How long to wait for the end of a call of ours before asking again, as the script said last."""
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, patience_s: float, *, is_first: bool) -> Turn:
        """Waits to be let in."""
        loop = asyncio.get_running_loop()
        caller: asyncio.Future[Turn] = loop.create_future()
        (self.callers.appendleft if is_first else self.callers.append)(caller)
        self._set_timer()
        patience = loop.call_later(patience_s, self._go, caller, Turn.OVER)
        try:
            return await caller
        except asyncio.CancelledError:
            if caller.done() and not caller.cancelled():
                self.let_in(caller.result())  # its turn is for somebody else
            else:
                self.callers.remove(caller)
            raise
        finally:
            patience.cancel()

    def let_in(self, turn: Turn) -> None:
        """Lets the next caller in."""
        if self.callers:
            self._go(self.callers[0], turn)

    def _go(self, caller: "asyncio.Future[Turn]", turn: Turn) -> None:
        if not caller.done():
            self.callers.remove(caller)
            caller.set_result(turn)
        if self.callers:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.look_s, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.let_in(Turn.TIME)
