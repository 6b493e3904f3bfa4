"""Numbers of system calls by processor family, and the filters (seccomp) made of them.

Runs in an isolated interpreter beside zygote.py and imports the standard library only.
"""

import ctypes
import os
import struct
import sys
from typing import NamedTuple

PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
SIGCHLD = 17
PROT_EXEC = 4

LOAD, JUMP_IF, JUMP_FROM, JUMP_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Instructions of the filter: load a word; jump if it is equal, from here up, has bits; return an action."""
KILL, DENY, ALLOW = 0x80000000, 0x00050000 | 1, 0x7FFF0000
"""Actions of a filter: end the process; the call fails as not permitted; the call is made."""
AT_CALL, AT_MACHINE, AT_FIRST_ARGUMENT, AT_THIRD_ARGUMENT = 0, 4, 16, 32
"""Offsets of what a filter reads; of arguments the lower half, which is all that these calls read."""
PLAIN_FORK = 0x01000000 | 0x00200000 | SIGCHLD
"""The flags with which the C library calls `clone` for a fork: no thread, no namespace."""
EVERY_BIT = 0xFFFFFFFF
X32_CALLS = 0x40000000
"""System calls of the x32 way of calling begin here on x86-64; nothing needs them."""


class Machine(NamedTuple):
    """The numbers of one processor family."""

    audit: int
    """What the kernel calls it."""
    allowed: tuple[int, ...]
    """Calls that may be made: read, write, memory, time, signal handlers of one's own, the end."""
    mmap: int
    """Allowed without PROT_EXEC."""
    mprotect: int
    """Allowed without PROT_EXEC."""
    probes: dict[str, int]
    """Calls that the self-test makes."""
    template: tuple[int, ...]
    """Calls that a template makes besides: pipes, waiting for a case, tightening its own lock."""
    clone: int
    """The call `clone`, which a template may make for a plain fork."""
    limits: int
    """The call `prlimit64`, which a template may make for its own limits."""

    @property
    def checked(self) -> "tuple[Checked, ...]":
        """Calls that are allowed as long as an argument lacks some bits."""
        return (
            Checked(self.mmap, AT_THIRD_ARGUMENT, PROT_EXEC),
            Checked(self.mprotect, AT_THIRD_ARGUMENT, PROT_EXEC),
        )


class Checked(NamedTuple):
    """A call whose argument decides whether it may be made."""

    number: int
    """The call's."""
    place: int
    """Offset of its argument in what a filter reads."""
    forbidden: int
    """Bits that the argument may not have."""


X86_64 = Machine(
    0xC000003E,
    (
        *(0, 1, 3, 7, 11, 12, 13, 14, 15, 20, 24, 25, 28, 35, 39, 60, 96, 98),
        *(131, 186, 201, 202, 219, 228, 229, 230, 231, 270, 273, 318, 334),
    ),
    9,
    10,
    {
        "openat": 257,
        "newfstatat": 262,
        "statx": 332,
        "socket": 41,
        "socketpair": 53,
        "clone": 56,
        "clone3": 435,
        "ptrace": 101,
        "io_uring_setup": 425,
        "process_vm_readv": 310,
        "memfd_create": 319,
        "kill": 62,
        "execve": 59,
        "pidfd_open": 434,
        "prctl": 157,
        "unshare": 272,
        "ioctl": 16,
        "userfaultfd": 323,
        "open": 2,
        "stat": 4,
        "access": 21,
        "fork": 57,
        "vfork": 58,
    },
    (33, 57, 61, 110, 157, 293),
    56,
    302,
)
AARCH64 = Machine(
    0xC00000B7,
    (
        *(57, 63, 64, 66, 72, 73, 93, 94, 98, 99, 101, 113, 114, 115, 124, 128, 132, 134),
        *(135, 139, 165, 169, 172, 178, 214, 215, 216, 233, 278, 293),
    ),
    222,
    226,
    {
        "openat": 56,
        "newfstatat": 79,
        "statx": 291,
        "socket": 198,
        "socketpair": 199,
        "clone": 220,
        "clone3": 435,
        "ptrace": 117,
        "io_uring_setup": 425,
        "process_vm_readv": 270,
        "memfd_create": 279,
        "kill": 129,
        "execve": 221,
        "pidfd_open": 434,
        "prctl": 167,
        "unshare": 97,
        "ioctl": 29,
        "userfaultfd": 282,
    },
    (24, 59, 167, 173, 260),
    220,
    261,
)
MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}


class CannotLockError(Exception):
    """This kernel or machine does not give what locking a process needs."""


def this_machine() -> Machine:
    """Returns the numbers of the machine that we run on.

    Raises:
        CannotLockError: they are not known.
    """
    machine = MACHINES.get(os.uname().machine)
    if sys.platform != "linux" or machine is None:
        raise CannotLockError(f"processes cannot be locked on {sys.platform} {os.uname().machine}")
    return machine


def checked(what: str, answer: int) -> int:
    """Returns what a call of the C library answered.

    Raises:
        CannotLockError: it failed.
    """
    if answer < 0:
        raise CannotLockError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return answer


def filter_program(machine: Machine) -> bytes:
    """Makes the filter: only calls of the list, memory without PROT_EXEC, and no second way of calling.

    >>> len(filter_program(X86_64)) % 8
    0
    """
    return _program(machine, machine.allowed, machine.checked)


def template_program(machine: Machine) -> bytes:
    """Makes the filter of a template: the same, and what it needs for plain forks and the answers of cases.

    >>> len(template_program(X86_64)) > len(filter_program(X86_64))
    True
    """
    forks = (
        Checked(machine.clone, AT_FIRST_ARGUMENT, EVERY_BIT & ~PLAIN_FORK),
        Checked(machine.limits, AT_FIRST_ARGUMENT, EVERY_BIT),  # 0 is this process
    )
    return _program(machine, machine.allowed + machine.template, machine.checked + forks)


def _program(machine: Machine, allowed: tuple[int, ...], checked: tuple[Checked, ...]) -> bytes:
    program = [
        (LOAD, 0, 0, AT_MACHINE),
        (JUMP_IF, 1, 0, machine.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, AT_CALL),
        (JUMP_FROM, 0, 1, X32_CALLS),
        (RETURN, 0, 0, KILL),
    ]
    for number, place, forbidden in checked:
        program += [
            (JUMP_IF, 0, 4, number),
            (LOAD, 0, 0, place),
            (JUMP_BITS, 0, 1, forbidden),
            (RETURN, 0, 0, DENY),
            (RETURN, 0, 0, ALLOW),
        ]
    for at, number in enumerate(allowed):
        program.append((JUMP_IF, len(allowed) - at, 0, number))
    program += [(RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


class Filter:
    """A filter that is ready for the kernel; filters of a process add up, and none can be taken away.

    Args:
        program: its instructions.
    """

    def __init__(self, program: bytes) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._text = ctypes.create_string_buffer(program, len(program))
        # struct sock_fprog: a count, and after it, aligned, an address.
        self._head = struct.pack("HP", len(program) // 8, ctypes.addressof(self._text))

    def install(self) -> None:
        """Holds for this process from here on.

        Raises:
            CannotLockError: the kernel does not take it.
        """
        checked("seccomp", self._libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, self._head, 0, 0))
