"""Runs a program and ends it, with all that it has started, as soon as whoever wanted it says so or is gone.

Run as `python -I -S keeper.py FD MEMORY_BYTES PROGRAM ARGUMENT…`. It owns a program of its own session and,
on Linux, whatever that leaves behind. The end of the pipe FD is the word to end; that it also comes when its
writer is killed is why a process stands between the two.

The program reads calls from 0 and answers on 3; what it prints goes to 2, where it breaks no answer.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

REPLIES_FD = 3
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: processes whose parent has ended become children of this one."""
_UNUSABLE = 127
_SIGNALLED = 128


class _ProgramEnded(Exception):  # noqa: N818 - the end of the wait, which is no error
    """The program has ended by itself."""


def main(life: int, memory_bytes: int, command: list[str]) -> int:
    """Runs the program to its end, or to that of the pipe.

    Args:
        life: descriptor of the pipe.
        memory_bytes: that each process may have.
        command: of the program.

    Returns:
        Its exit code; 128 and the signal that ended it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    status = list[int]()
    signal.signal(signal.SIGCHLD, lambda *_: _reap(program, status))
    program = 0
    with _blocked():
        program = os.fork()
        if not program:
            _become(life, memory_bytes, command)
        for descriptor in (0, 1):
            os.close(descriptor)
    with suppress(_ProgramEnded):
        os.read(life, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end_all(program)
    return os.waitstatus_to_exitcode(status[0]) % 256 if status else _SIGNALLED + signal.SIGKILL


@contextmanager
def _blocked() -> Iterator[None]:
    """Keeps SIGCHLD until the program's number is known."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    yield
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _become(life: int, memory_bytes: int, command: list[str]) -> None:
    """Turns the fork into the program."""
    try:
        os.close(life)
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        # Of data alone: address space that is only reserved, as JavaScript's engine does, costs nothing.
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(1, REPLIES_FD)
        os.dup2(2, 1)
        os.execvp(command[0], command)  # noqa: S606 - the program that is asked for
    finally:
        os._exit(_UNUSABLE)


def _reap(program: int, status: list[int]) -> None:
    """Takes in processes that have ended; leaves the wait when the program is one of them."""
    with suppress(ChildProcessError):
        while True:
            ended, code = os.waitpid(-1, os.WNOHANG)
            if not ended:
                return
            if ended == program:
                status.append(code)
                raise _ProgramEnded


def _end_all(program: int) -> None:
    """Kills the program's group, then whatever else has become a child of this process."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            for child in _children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def _children() -> list[int]:
    """The processes whose parent is this one; only those of its group are known without /proc."""
    own, found = str(os.getpid()), list[int]()
    with suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - pathlib is not loaded here
            with suppress(OSError), open(f"/proc/{name}/stat") as file:  # noqa: PTH123 - as above; digits and a name
                if file.read().rpartition(")")[2].split()[1] == own:
                    found.append(int(name))
    return found


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
