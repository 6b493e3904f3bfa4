"""Takes everything from the process that calls it but its memory and its pipes, and proves that it is gone.

Runs in an isolated interpreter beside zygote.py and imports the standard library only. Linux on x86-64 and
aarch64; the system calls are made through ctypes, so that no other package or library is needed.
The layers overlap on purpose: what a filter forgets, a limit or landlock still stops.
"""

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
SECCOMP_MODE_FILTER = 2
SIGKILL, SIGCHLD = 9, 17
NO_SUCH_PROCESS = 3
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
PRIVATE_ANONYMOUS = 0x22
AT_FDCWD = -100
LANDLOCK_CREATE, LANDLOCK_RESTRICT = 444, 446
LANDLOCK_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights over files each version of landlock knows; later ones know 16."""
LANDLOCK_NETWORK, LANDLOCK_SCOPES = 4, 6
"""The versions that brought TCP ports, and signals and abstract sockets."""

LOAD, JUMP_IF, JUMP_FROM, JUMP_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Instructions of the filter: load a word; jump if it is equal, from here up, has bits; say what is to be."""
KILL, DENY, ALLOW = 0x80000000, 0x00050000 | 1, 0x7FFF0000
"""What a filter says: end the process; the call fails as not permitted; the call is made."""
AT_CALL, AT_MACHINE, AT_THIRD_ARGUMENT = 0, 4, 32
"""Where a filter finds what it looks at."""
X32_CALLS = 0x40000000
"""System calls of the x32 way of calling begin here on x86-64; nobody needs them."""


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
)
MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}


class CannotLockError(Exception):
    """This kernel or machine does not give what locking a process needs."""


def lock(memory_bytes: int, cpu_s: int) -> None:
    """Locks this process: no files, no network, no other process, no new code in memory, bounded means.

    Raises:
        CannotLockError: a layer is not to be had; the process must not run what it cannot trust.
    """
    machine = MACHINES.get(os.uname().machine)
    if sys.platform != "linux" or machine is None:
        raise CannotLockError(f"processes cannot be locked on {sys.platform} {os.uname().machine}")
    libc = ctypes.CDLL(None, use_errno=True)
    _checked("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked("not dumpable", libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    _landlock(libc)
    limit(memory_bytes, cpu_s)
    _seccomp(libc, machine)


def die_with_parent() -> None:
    """Asks the kernel to end this process when its parent ends, where the kernel can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)


def limit(memory_bytes: int, cpu_s: int) -> None:
    """Bounds memory and processor time; allows no file, no process, no core dump."""
    wanted = {
        "AS": memory_bytes,
        "CPU": cpu_s,
        "FSIZE": 0,
        "CORE": 0,
        "NPROC": 0,
        "NOFILE": 3,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
    }
    for name, most in wanted.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            try:
                resource.setrlimit(number, (most, most))
            except (OSError, ValueError) as error:
                if sys.platform == "linux":
                    raise CannotLockError(f"limit {name}: {error}") from None


def _checked(what: str, answer: int) -> int:
    if answer < 0:
        raise CannotLockError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return answer


def _landlock(libc: ctypes.CDLL) -> None:
    """No path, no TCP port, no signal or abstract socket to others, as far as this kernel's landlock goes.

    A kernel without landlock is no reason to refuse: the filter denies all of it too.
    """
    version = libc.syscall(LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return
    rights = (1 << LANDLOCK_FILE_RIGHTS.get(version, 16)) - 1
    fields = [rights] + [3] * (version >= LANDLOCK_NETWORK) + [3] * (version >= LANDLOCK_SCOPES)
    rules = struct.pack(f"{len(fields)}Q", *fields)
    ruleset = _checked("landlock", libc.syscall(LANDLOCK_CREATE, rules, len(rules), 0))
    _checked("landlock", libc.syscall(LANDLOCK_RESTRICT, ruleset, 0))
    os.close(ruleset)


def filter_program(machine: Machine) -> bytes:
    """Makes the filter: only calls of the list, memory without PROT_EXEC, and no second way of calling.

    >>> len(filter_program(X86_64)) % 8
    0
    """
    program = [
        (LOAD, 0, 0, AT_MACHINE),
        (JUMP_IF, 1, 0, machine.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, AT_CALL),
        (JUMP_FROM, 0, 1, X32_CALLS),
        (RETURN, 0, 0, KILL),
    ]
    for number in (machine.mmap, machine.mprotect):
        program += [
            (JUMP_IF, 0, 4, number),
            (LOAD, 0, 0, AT_THIRD_ARGUMENT),
            (JUMP_BITS, 0, 1, PROT_EXEC),
            (RETURN, 0, 0, DENY),
            (RETURN, 0, 0, ALLOW),
        ]
    for place, number in enumerate(machine.allowed):
        program.append((JUMP_IF, len(machine.allowed) - place, 0, number))
    program += [(RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def _seccomp(libc: ctypes.CDLL, machine: Machine) -> None:
    program = filter_program(machine)
    text = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a count, and after it, aligned, an address.
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(text))
    _checked("seccomp", libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0))


def probes() -> dict[str, Callable[[], bool]]:
    """Names the calls that a locked process must not make; each tells whether it worked, asking the kernel.

    They are made ready before the lock. Each is harmless where it works. `execve` comes last: where it works,
    nobody is left to say so. Longer than 40 lines because it is a table.
    """
    machine = MACHINES[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = libc.mmap.restype = ctypes.c_long
    parent, room = os.getppid(), ctypes.create_string_buffer(256)

    def call(name: str, *arguments: object) -> bool:
        padded = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
        answer = libc.syscall(machine.probes[name], *padded, *[ctypes.c_long(0)] * (6 - len(padded)))
        if name in {"clone", "clone3", "fork", "vfork"} and answer == 0:
            os._exit(0)
        return bool(answer >= 0)

    def has_memory(address: int) -> bool:
        return address != -1

    page = libc.mmap(None, 4096, PROT_READ | PROT_WRITE, PRIVATE_ANONYMOUS, -1, 0)
    found: dict[str, Callable[[], bool]] = {
        "openat": lambda: call("openat", AT_FDCWD, b"/", 0),
        "newfstatat": lambda: call("newfstatat", AT_FDCWD, b"/", room, 0),
        "statx": lambda: call("statx", AT_FDCWD, b"/", 0, 0, room),
        "socket (TCP)": lambda: call("socket", 2, 1, 0),
        "socket (UDP)": lambda: call("socket", 2, 2, 0),
        "socket (unix)": lambda: call("socket", 1, 1, 0),
        "socketpair": lambda: call("socketpair", 1, 1, 0, room),
        "clone": lambda: call("clone", SIGCHLD),
        "clone3": lambda: call(
            "clone3", struct.pack("4Q", 0, 0, 0, 0) + struct.pack("4Q", SIGCHLD, 0, 0, 0), 64
        ),
        # Reading another process, which the kernel refuses as not attached only after the filter let it pass.
        "ptrace": lambda: not call("ptrace", 1, parent, 0, 0) and ctypes.get_errno() == NO_SUCH_PROCESS,
        "io_uring_setup": lambda: call("io_uring_setup", 1, ctypes.create_string_buffer(256)),
        "process_vm_readv": lambda: call("process_vm_readv", parent, None, 0, None, 0, 0),
        "memfd_create": lambda: call("memfd_create", b"x", 0),
        "kill": lambda: call("kill", parent, 0),
        "pidfd_open": lambda: call("pidfd_open", parent, 0),
        "prctl": lambda: call("prctl", PR_SET_PDEATHSIG, SIGKILL),
        "unshare": lambda: call("unshare", 0),
        "ioctl": lambda: call("ioctl", 1, 0x5451),
        "userfaultfd": lambda: call("userfaultfd", 1),
        "mmap (write, execute)": lambda: has_memory(libc.mmap(None, 4096, 7, PRIVATE_ANONYMOUS, -1, 0)),
        "mprotect (execute)": lambda: libc.mprotect(ctypes.c_void_p(page), 4096, PROT_READ | PROT_EXEC) == 0,
    }
    for name, arguments in (("open", (b"/", 0)), ("stat", (b"/", room)), ("access", (b"/", 0)), ("fork", ())):
        if name in machine.probes:
            found[name] = lambda name=name, arguments=arguments: call(name, *arguments)  # type: ignore[misc] # the defaults bind this round's values
    found["execve"] = lambda: call("execve", b"/bin/true", None, None)
    return found
