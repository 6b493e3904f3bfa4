"""Forks and locks the processes that run patterns and validators; itself runs no untrusted code.

Started by boot.py in an isolated interpreter with an empty environment, so that no password or key is in the
memory that its children inherit, and with the allowed modules imported, because no import works after the
lock. The worker sends orders over a socket:

    S + whether to lock, with two pipes    ->  process id of a child that searches patterns (serving.py)
    T + whether to lock, with two pipes    ->  process id of one that forks for each call (template.py)
    J + whether to lock, with two pipes    ->  process id of one that runs JavaScript (scripting.py)
    K + process id                         ->  its end: the wait status
    D + process id                             its end, and no answer

The end of the socket is the end of the worker: the zygote ends then, and every child with it. Each child
leads a process group of its own, and is ended together with whatever it has forked.
"""

import gc
import os
import signal
import socket
import struct
import sys
import warnings
from typing import NoReturn

from worker.sandbox import lockdown, protocol, scripting, serving, template
from worker.sandbox.probes import probes

PAIR = 2

_exit = os._exit


def become_child(parent: int, requests: int, answers: int, *, order: bytes, is_locked: bool) -> NoReturn:
    """Turns a fresh fork into a process that serves; its standard output and error go nowhere."""
    try:
        lockdown.die_with_parent()
        if os.getppid() != parent:
            _exit(0)  # it ended before it could take us with it
        os.setpgid(0, 0)
        os.dup2(requests, 0)
        os.dup2(answers, 1)
        lockdown.close_descriptors()
        sys.stdin = None
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if order == protocol.TEMPLATE:
            cage = lockdown.Cage(is_locked=is_locked)
            lock_or_limit(is_locked=is_locked, is_template=True)
            template.serve_calls(cage)
        if order == protocol.SCRIPTER:
            engine = scripting.load(QUICKJS)
            lock_or_limit(is_locked=is_locked, is_template=False)
            scripting.serve_scripts(engine)
        lock_or_limit(is_locked=is_locked, is_template=False)
        serving.serve_searches()
    finally:
        _exit(1)


def lock_or_limit(*, is_locked: bool, is_template: bool) -> None:
    """Locks this process, or, where no process can be locked, at least bounds it."""
    if is_locked:
        (lockdown.lock_template if is_template else lockdown.lock)(MEMORY_BYTES, CPU_S)
        return
    lockdown.limit(MEMORY_BYTES, CPU_S, lockdown.TEMPLATE_DESCRIPTORS)
    if not is_template:
        lockdown.limit_processes()


def self_test(control: int) -> str:
    """Locks children in both ways and makes them try what must not work.

    Returns:
        Why validators cannot be run; empty when they can.
    """
    return try_lock(control, is_template=False) or try_lock(control, is_template=True)


def try_lock(control: int, *, is_template: bool) -> str:
    """Locks a child, as a template and its case, or at once; returns what it can still reach, or nothing."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        reply = "?"
        try:
            os.dup2(theirs, 1)
            lockdown.close_descriptors()
            calls = probes()
            reached = ["open descriptors"] if is_open(control) else []
            if is_template:
                cage = lockdown.Cage(is_locked=True)
                lockdown.lock_template(MEMORY_BYTES, CPU_S)
                fork_once()
                cage.install()
            else:
                lockdown.lock(MEMORY_BYTES, CPU_S)
            reached += [name for name, probe in calls.items() if probe()]
            reply = f"a locked process can still reach: {', '.join(reached)}" if reached else "locked"
        except BaseException as error:  # noqa: BLE001 - whatever it is, there is no lock
            reply = str(error) or type(error).__name__
        finally:
            os.write(1, reply.encode())
            _exit(0)
    os.close(theirs)
    reply = os.read(ours, 4096).decode()
    os.close(ours)
    os.waitpid(child, 0)
    return "" if reply == "locked" else reply or "the self-test of the lock gave no answer"


def is_open(descriptor: int) -> bool:
    """Whether a descriptor of the zygote's is open in this process."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def fork_once() -> None:
    """Forks and waits for the fork, as templates do.

    Raises:
        OSError: it cannot be done.
    """
    ours, theirs = os.pipe()
    case = os.fork()
    if case == 0:
        _exit(0)
    os.waitpid(case, 0)
    os.close(ours)
    os.close(theirs)


def end(child: int) -> int:
    """Kills a child with all that it forked, and returns its wait status: its own, if it had ended."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue  # it has no group yet, or nothing is left of it
    status = wait_for(child) or 0
    while wait_for(-child) is not None:
        continue  # processes of cases, which became ours when their template ended
    return status


def wait_for(child: int) -> int | None:
    """Waits for the end of a child, or of one of a group; returns its status, None when none is left."""
    try:
        return os.waitpid(child, 0)[1]
    except ChildProcessError:
        return None


def obey(control: socket.socket) -> None:
    """Carries out the orders of the worker until its socket ends."""
    children: set[int] = set()
    zygote = os.getpid()
    try:
        while True:
            data, pipes, _, _ = socket.recv_fds(control, protocol.ORDER.size, PAIR)
            if len(data) < protocol.ORDER.size:
                return
            order, number = protocol.ORDER.unpack(data)
            if order in {protocol.SEARCHER, protocol.TEMPLATE, protocol.SCRIPTER}:
                child = os.fork()
                if child == 0:
                    become_child(zygote, *pipes, order=order, is_locked=bool(number))
                children.add(child)
                for pipe in pipes:
                    os.close(pipe)
                control.sendall(protocol.ORDER.pack(order, child))
            else:
                status = end(number) if number in children else 0
                children.discard(number)
                if order == protocol.END:
                    control.sendall(protocol.ORDER.pack(protocol.END, status))
    except OSError:
        return  # the worker is gone in the middle of a word
    finally:
        for child in children:
            end(child)


def main(quickjs: str, number: int, memory_bytes: int, cpu_s: int) -> None:
    """Reports whether processes can be locked here, then serves the worker.

    Args:
        quickjs: the file of QuickJS; empty where it is not installed.
        number: the control socket's descriptor.
        memory_bytes: what each child may use.
        cpu_s: the same.
    """
    global MEMORY_BYTES, CPU_S, QUICKJS
    MEMORY_BYTES, CPU_S, QUICKJS = memory_bytes, cpu_s, quickjs
    warnings.simplefilter("ignore")  # nobody reads them, and to show one needs files
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lockdown.adopt_orphans()
    with socket.socket(fileno=number) as control:
        reply = self_test(number).encode()
        control.sendall(struct.pack("<I", len(reply)) + reply)
        gc.collect()
        gc.freeze()  # children then touch, and copy, less of what they share
        obey(control)


MEMORY_BYTES = 512 << 20
CPU_S = 60
QUICKJS = ""
