"""Ends a process whose parent is gone, so that `kill -9` of a supervisor leaves nothing behind.

Two ways, because neither serves everywhere: on Linux the kernel kills the child in the moment its parent
dies; elsewhere the child reads a pipe that only its parent holds open.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

PR_SET_PDEATHSIG: Final = 1
"""Option of `prctl`, from <sys/prctl.h>."""


def die_with_parent() -> None:
    """Requests SIGKILL from the kernel when the parent dies; does nothing where that is not supported."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def on_stdin_end(then: Callable[[], object]) -> None:
    """Calls `then`, from a thread of its own, when standard input ends."""

    def wait() -> None:
        with suppress(OSError):
            while os.read(0, 1024):
                pass
        then()

    threading.Thread(target=wait, name="stdin", daemon=True).start()
