"""Retries reads while Redis is unavailable."""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any, Final, TypeVar

from redis import exceptions

from shared.ledger.calls import PASSING, REFUSED, unreachable
from shared.server.sockets import close_idle

PAUSE_S: Final = 0.25
"""Between two attempts."""

T = TypeVar("T")


def patiently(read: Callable[[], T], patience_s: float, *, client: Any) -> T:
    """Reads, with retries until there is an answer.

    Args:
        read: one or more commands.
        patience_s: how long Redis may be unavailable.
        client: of redis-py, which `read` uses.

    Raises:
        RedisUnreachableError: no answer within the patience.
    """
    pause, deadline = Event(), 0.0
    while True:
        try:
            return read()
        except PASSING as error:
            if isinstance(error, exceptions.TimeoutError):
                close_idle(client)
            deadline = deadline or monotonic() + patience_s
            if isinstance(error, REFUSED) or monotonic() + PAUSE_S > deadline:
                raise unreachable(error) from error
        pause.wait(PAUSE_S)
