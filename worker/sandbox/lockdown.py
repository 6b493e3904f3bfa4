"""Takes everything from the process that calls it but its memory and its pipes, and proves that it is gone.

Runs in an isolated interpreter beside zygote.py and imports the standard library only. Linux on x86-64 and
aarch64; the system calls are made through ctypes, so that no other package or library is needed.
The layers overlap on purpose: what a filter misses, a limit or landlock still stops.

`lock` is for a process that runs patterns, `lock_template` for one that forks a process for each call of a
validator and executes nothing of the file itself, and `Cage` for the forked one: it inherits all but the
last filter, so that a call pays for one system call and not for the whole lock.
"""

import ctypes
import os
import resource
import struct
import sys

from worker.sandbox.filters import (
    EVERY_BIT,
    CannotLockError,
    Filter,
    checked,
    filter_program,
    template_program,
    this_machine,
)

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
SIGKILL = 9
LANDLOCK_CREATE, LANDLOCK_RESTRICT = 444, 446
LANDLOCK_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights over files each version of landlock has; later ones have 16."""
LANDLOCK_NETWORK, LANDLOCK_SCOPES = 4, 6
"""The versions that brought TCP ports, and signals and abstract sockets."""

CLOSE_RANGE = 436
"""The system call's number, the same on every processor family."""
STANDARD_DESCRIPTORS = 3
TEMPLATE_DESCRIPTORS = 5
"""Standard ones, and a pipe for the answer of a case."""
MOST_DESCRIPTORS = 1 << 20
"""Where the kernel cannot close or list descriptors, a limit above this cannot be walked through in time."""


def lock(memory_bytes: int, cpu_s: int) -> None:
    """Locks this process: no files, no network, no other process, no new code in memory, bounded means.

    Raises:
        CannotLockError: a layer is not to be had; the process must not run what it cannot trust.
    """
    machine = this_machine()
    _lock_but_for_calls(memory_bytes, cpu_s, STANDARD_DESCRIPTORS)
    limit_processes()
    Filter(filter_program(machine)).install()


def lock_template(memory_bytes: int, cpu_s: int) -> None:
    """Locks this process but for what it needs to fork the process of a case and to read its answer.

    Raises:
        CannotLockError: a layer is not to be had.
    """
    machine = this_machine()
    _lock_but_for_calls(memory_bytes, cpu_s, TEMPLATE_DESCRIPTORS)
    Filter(template_program(machine)).install()


def _lock_but_for_calls(memory_bytes: int, cpu_s: int, descriptors: int) -> None:
    """Everything of the lock but the number of processes and the filter, which comes last."""
    libc = ctypes.CDLL(None, use_errno=True)
    checked("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    checked("not dumpable", libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    _landlock(libc)
    limit(memory_bytes, cpu_s, descriptors)


class Cage:
    """Makes the process of a case ready to run untrusted code; made by its template, before its own lock.

    Args:
        is_locked: whether the template is; otherwise only means are bounded.
    """

    def __init__(self, *, is_locked: bool) -> None:
        self._template = os.getpid()
        self._filter = Filter(filter_program(this_machine())) if is_locked else None
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def enter(self) -> None:
        """Ends with the template, forks no more, and makes only the calls of the strict list.

        Raises:
            CannotLockError: a layer is not to be had, or the template is gone already.
        """
        if self._libc is not None:
            self._libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        if os.getppid() != self._template:
            raise CannotLockError("the template is gone")
        self.install()

    def install(self) -> None:
        """The part of it that lasts, whoever the parent is.

        Raises:
            CannotLockError: a layer is not to be had.
        """
        limit_processes()
        if self._filter is not None:
            self._filter.install()


def die_with_parent() -> None:
    """Has the kernel end this process when its parent ends, where the kernel can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Becomes the parent of processes whose parent ends, where the kernel can, so that they are collected."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def close_descriptors() -> None:
    """Closes every descriptor but the standard three, whatever its number.

    The kernel closes them in one call (Linux 5.9); otherwise those that it lists are closed; otherwise all
    numbers below the limit, which does not bound those that were opened before it was lowered.

    Raises:
        CannotLockError: none of the ways is sure to have closed all of them.
    """
    if sys.platform == "linux" and not ctypes.CDLL(None).syscall(
        CLOSE_RANGE, ctypes.c_uint(STANDARD_DESCRIPTORS), ctypes.c_uint(EVERY_BIT), ctypes.c_uint(0)
    ):
        return
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - pathlib is not loaded here
    except OSError:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if not 0 <= most <= MOST_DESCRIPTORS:
            raise CannotLockError("open descriptors can be neither listed nor closed all at once") from None
        os.closerange(STANDARD_DESCRIPTORS, most)
        return
    for number in numbers:
        if number >= STANDARD_DESCRIPTORS:
            try:
                os.close(number)
            except OSError:
                continue  # the one that listed them is closed already


def limit(memory_bytes: int, cpu_s: int, descriptors: int = STANDARD_DESCRIPTORS) -> None:
    """Bounds memory, processor time and descriptors; allows no file to grow, and no core dump."""
    _limit({"AS": memory_bytes, "CPU": cpu_s, "FSIZE": 0, "CORE": 0, "NOFILE": descriptors})
    _limit({"MEMLOCK": 0, "MSGQUEUE": 0})


def limit_processes() -> None:
    """Allows no more processes; lasting, and for its own part bounded to the standard descriptors."""
    _limit({"NPROC": 0, "NOFILE": STANDARD_DESCRIPTORS})


def _limit(wanted: dict[str, int]) -> None:
    for name, most in wanted.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            try:
                resource.setrlimit(number, (most, most))
            except (OSError, ValueError) as error:
                if sys.platform == "linux":
                    raise CannotLockError(f"limit {name}: {error}") from None


def _landlock(libc: ctypes.CDLL) -> None:
    """No path, no TCP port, no signal or abstract socket to others, as far as this kernel's landlock goes.

    A kernel without landlock is no reason to refuse: the filter denies all of it too.
    """
    version = libc.syscall(LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return
    rights = (1 << LANDLOCK_FILE_RIGHTS.get(version, 16)) - 1
    fields = [rights, *(3 for first in (LANDLOCK_NETWORK, LANDLOCK_SCOPES) if version >= first)]
    rules = struct.pack(f"{len(fields)}Q", *fields)
    ruleset = checked("landlock", libc.syscall(LANDLOCK_CREATE, rules, len(rules), 0))
    checked("landlock", libc.syscall(LANDLOCK_RESTRICT, ruleset, 0))
    os.close(ruleset)
