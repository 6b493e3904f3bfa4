"""Reading that outlives a Redis that is away for a while; what is read twice does no harm."""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Final, TypeVar

from shared.ledger.calls import PASSING, REFUSED, unreachable

PAUSE_S: Final = 0.25
"""Between two attempts."""

T = TypeVar("T")


def patiently(read: Callable[[], T], patience_s: float) -> T:
    """Reads until there is an answer.

    Args:
        read: one or more commands.
        patience_s: how long Redis may be away.

    Raises:
        RedisUnreachableError: no answer within the patience.
    """
    pause, deadline = Event(), 0.0
    while True:
        try:
            return read()
        except PASSING as error:
            deadline = deadline or monotonic() + patience_s
            if isinstance(error, REFUSED) or monotonic() + PAUSE_S > deadline:
                raise unreachable(error) from error
        pause.wait(PAUSE_S)
