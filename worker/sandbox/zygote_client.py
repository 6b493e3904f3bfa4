"""Starts the zygote, has it fork and end children, and replaces it when it is gone."""

import os
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from worker.sandbox import protocol

PROGRAM: Final = Path(__file__).with_name("boot.py")
START_S: Final = 30.0
"""How long a zygote may take to start, on a machine that is very busy."""
ORDER_S: Final = 30.0
"""How long it may take to fork or end a child."""
END_S: Final = 5.0
"""How long it may take to end when its socket ends."""


class ZygoteLostError(Exception):
    """The zygote is gone, and all its children with it; a new one is started when it is next needed."""


class ChildLimits(NamedTuple):
    """What a child may use."""

    memory_bytes: int = 512 << 20
    """Address space."""
    cpu_s: int = 60
    """Processor time of all its calls together; each has a deadline of its own."""


class ForkedChild(NamedTuple):
    """A child as it was forked."""

    zygote: "Zygote"
    """The zygote that forked it."""
    pid: int
    """Its process id; valid until `end`, because only this object collects it."""
    requests: int
    """Descriptor that requests are written to."""
    answers: int
    """Descriptor that answers are read from."""


def quickjs_file() -> str:
    """Finds the file of QuickJS, which the extra `proctor[js]` installs; empty where it is not there."""
    spec = find_spec("_quickjs")
    return "" if spec is None or spec.origin is None else spec.origin


class Zygote:
    """One running zygote.

    Args:
        limits: of each child.

    Raises:
        ZygoteLostError: it does not start.
    """

    def __init__(self, limits: ChildLimits) -> None:
        self._busy = threading.Lock()
        self._control, theirs = socket.socketpair()
        self.is_lost = False
        """Whether it is known to be gone."""
        self.quickjs = quickjs_file()
        """The file of QuickJS; empty where it is not installed."""
        command = [sys.executable, "-I", "-S", "-E", str(PROGRAM), str(theirs.fileno())]
        self.process = subprocess.Popen(
            [*command, str(limits.memory_bytes), str(limits.cpu_s), self.quickjs],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        """The process."""
        theirs.close()
        self._control.settimeout(START_S)
        try:
            (length,) = struct.unpack("<I", self._receive(4))
            self.why_unlocked = self._receive(length).decode()
            """Why children cannot be locked on this machine; empty when they are."""
        except OSError as error:
            self.close()
            raise ZygoteLostError(str(error)) from error
        self._control.settimeout(ORDER_S)

    def fork(self, order: bytes, *, is_locked: bool) -> ForkedChild:
        """Forks a child.

        Args:
            order: for what, one of the orders of protocol.py.
            is_locked: whether it is locked before it serves.

        Raises:
            ZygoteLostError: it is gone.
        """
        requests, our_requests = os.pipe()
        our_answers, answers = os.pipe()
        try:
            pid = self._order(order, int(is_locked), [requests, answers])
        except ZygoteLostError:
            os.close(our_requests)
            os.close(our_answers)
            raise
        finally:
            os.close(requests)
            os.close(answers)
        os.set_blocking(our_requests, False)
        return ForkedChild(self, pid, our_requests, our_answers)

    def end(self, pid: int) -> int:
        """Ends a child, if it has not ended, and returns its wait status.

        Raises:
            ZygoteLostError: it is gone.
        """
        return self._order(protocol.END, pid, [])

    def drop(self, pid: int) -> None:
        """Ends a child without waiting for its end; a zygote that is gone has ended it already."""
        with self._busy, suppress(OSError):
            if not self.is_lost:
                self._control.sendall(protocol.ORDER.pack(protocol.DROP, pid))

    def close(self) -> None:
        """Ends the zygote and its children."""
        self.is_lost = True
        self._control.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _order(self, order: bytes, number: int, pipes: list[int]) -> int:
        with self._busy:
            if self.is_lost:
                raise ZygoteLostError("it is gone")
            try:
                data = protocol.ORDER.pack(order, number)
                if pipes:
                    socket.send_fds(self._control, [data], pipes)
                else:
                    self._control.sendall(data)
                reply, answer = protocol.ORDER.unpack(self._receive(protocol.ORDER.size))
            except OSError as error:
                self.is_lost = True
                # Half an answer may be under way, so that the zygote is of no use even if it still runs.
                with suppress(OSError):
                    self.process.kill()
                raise ZygoteLostError(str(error)) from error
        if reply != order:
            raise ZygoteLostError("it answered something else")
        return int(answer)

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._control.recv(size - len(data))
            if not more:
                raise ConnectionResetError("it ended")
            data += more
        return data
