"""Makes the system calls that a locked process must not make, for the self-test of the lock."""

import ctypes
import os
import struct
from collections.abc import Callable

from worker.sandbox.filters import PROT_EXEC, SIGCHLD, this_machine
from worker.sandbox.lockdown import PR_SET_PDEATHSIG, SIGKILL

PROT_READ, PROT_WRITE = 1, 2
PRIVATE_ANONYMOUS = 0x22
AT_FDCWD = -100
NO_SUCH_PROCESS = 3


def probes() -> dict[str, Callable[[], bool]]:
    """Names the calls that a locked process must not make; each returns whether the kernel allowed it.

    They are made ready before the lock. Each is harmless where it works. `execve` comes last: where it works,
    nothing after it would run. Longer than 40 lines because it is a table.
    """
    machine = this_machine()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = libc.mmap.restype = ctypes.c_long
    parent, buffer = os.getppid(), ctypes.create_string_buffer(256)

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
        "newfstatat": lambda: call("newfstatat", AT_FDCWD, b"/", buffer, 0),
        "statx": lambda: call("statx", AT_FDCWD, b"/", 0, 0, buffer),
        "socket (TCP)": lambda: call("socket", 2, 1, 0),
        "socket (UDP)": lambda: call("socket", 2, 2, 0),
        "socket (unix)": lambda: call("socket", 1, 1, 0),
        "socketpair": lambda: call("socketpair", 1, 1, 0, buffer),
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
    for name, arguments in (
        ("open", (b"/", 0)),
        ("stat", (b"/", buffer)),
        ("access", (b"/", 0)),
        ("fork", ()),
    ):
        if name in machine.probes:
            found[name] = lambda name=name, arguments=arguments: call(name, *arguments)  # type: ignore[misc] # the defaults bind this round's values
    found["execve"] = lambda: call("execve", b"/bin/true", None, None)
    return found
