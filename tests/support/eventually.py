"""Waits for something to become true, so that no test ever waits for time to pass."""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Final, TypeVar

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.005
LONGEST_PAUSE_S: Final = 0.1


def pause(seconds: float) -> None:
    """Lets other processes run; only for helpers that look again afterwards."""
    Event().wait(seconds)


def eventually(assertion: Callable[[], T], within_s: float = 10.0) -> T:
    """Calls `assertion` until it raises nothing, and returns what it returned.

    Args:
        assertion: reads the world and asserts about it; any `Exception` means "not yet".
        within_s: budget; the last exception is raised as it is once it is used up.

    >>> eventually(lambda: 3)
    3
    """
    deadline = monotonic() + within_s
    wait_s = FIRST_PAUSE_S
    while True:
        try:
            return assertion()
        except Exception:  # whatever the world says while it is not there yet
            if monotonic() >= deadline:
                raise
        pause(min(wait_s, max(0.0, deadline - monotonic())))
        wait_s = min(wait_s * 1.5, LONGEST_PAUSE_S)


def stays(assertion: Callable[[], object], for_s: float) -> None:
    """Asserts again and again for `for_s` seconds: the way to state that something does *not* happen."""
    deadline = monotonic() + for_s
    while monotonic() < deadline:
        assertion()
        pause(0.02)
    assertion()
