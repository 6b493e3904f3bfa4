"""Starts worker processes as forks of their supervisor, which has imported what they need.

Imports are most of what starting a worker costs; a fork has them done and shares their memory. A process may
be forked while no other thread of it holds a lock: the supervisor has one, which looks after the embedded
server and takes `LOOKING` while it does. Only on Linux: elsewhere the system's own libraries do not expect to
continue in a fork, and workers are started as programs.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

IS_SAFE: Final = sys.platform == "linux"
LOOKING: Final = threading.Lock()
"""Held by a thread of the supervisor while it may hold locks of libraries, and while a child is forked."""
_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class ChildProcess(Protocol):
    """What a supervisor uses of a child; `subprocess.Popen` has it, too."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """Ends the child when it is closed."""

    def poll(self) -> int | None:
        """Returns its exit code (negative: the signal that ended it); None while it runs."""

    def send_signal(self, sig: int) -> None:
        """Sends a signal, if it runs."""


class ForkedProcess:
    """A child that works, reads a pipe as its standard input, and ends with the code of its work.

    Like a program of its own it has a process group and the default signal handlers; all its output goes to
    standard error.

    Args:
        work: returns the exit code.
    """

    def __init__(self, work: Callable[[], int]) -> None:
        reads, writes = os.pipe()
        self.stdin: IO[bytes] = os.fdopen(writes, "wb", buffering=0)
        self._process: BaseProcess = multiprocessing.get_context("fork").Process(
            target=_become_worker, args=(reads, writes, work)
        )
        # A signal between the fork and the child's own handlers would be handled as if it were the parent.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(reads)

    def poll(self) -> int | None:
        """Returns its exit code (negative: the signal that ended it); None while it runs."""
        return self._process.exitcode

    def send_signal(self, sig: int) -> None:
        """Sends a signal, if it runs; a child that was not waited for keeps its process id."""
        if self.poll() is None and self._process.pid is not None:
            os.kill(self._process.pid, sig)


def _become_worker(reads: int, writes: int, work: Callable[[], int]) -> None:
    os.close(writes)
    os.setpgid(0, 0)
    os.dup2(reads, 0)
    os.close(reads)
    os.dup2(2, 1)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    sys.exit(work())
