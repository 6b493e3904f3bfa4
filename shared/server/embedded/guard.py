"""Guards one embedded server: starts it, restarts it after a crash, stops it when it is not used any more.

Run by the launcher as `python -I -S guard.py JSON`, detached, so it outlives every command and imports the
standard library only. The launcher passes it the lock that means "a server runs on this folder"; the guard
passes it to the server and closes its own copy, so that the lock is held exactly as long as the server runs.

The lock that starters hold while they join or start a server is held here while it is stopped or restarted.

It is a single file, because an isolated interpreter cannot import others of ours.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, strftime
from typing import BinaryIO, NamedTuple

LONGEST_TICK_S = 0.5
BINDING_TICK_S = 0.02
BINDING_S = 10.0
SWEPT_S = 0.2
ANSWER_S = 2.0
STOP_S = 5.0
MOST_CRASHES = 5
CRASH_WINDOW_S = 60.0
PR_SET_PDEATHSIG = 1
MOST_DESCRIPTORS = 1024
COMPACT_FROM_BYTES = 16_000_000


class Config(NamedTuple):
    """The arguments from the launcher, as JSON."""

    lock: str
    """Path of the lock for starting, joining and stopping."""
    alive: str
    """Path of the lock that the living server holds."""
    alive_fd: int
    """Its descriptor, locked."""
    socket: str
    """Path of the socket."""
    command: list[str]
    """The server's program and arguments."""
    idle_s: float
    """How long the server may be without clients before it is stopped."""
    lifeline: str
    """How the server dies with the guard: by `signal` (Linux) or by `pipe`."""


def write_log(text: str) -> None:
    """Writes a line into the server's log; a full disk must not end the guard."""
    with suppress(OSError):
        print(f"guard {os.getpid()}: {strftime('%Y-%m-%d %H:%M:%S')} {text}", flush=True)


class Monitor:
    """The guard's own connection to the server, kept open so that it is never mistaken for a client."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection: socket.socket | None = None
        self.received = -1

    def is_used(self) -> bool | None:
        """Whether another client is connected, or was since the last check; None if the server is silent."""
        try:
            clients, received = self._ask()
        except (OSError, ValueError):
            self.close()
            return None
        was_used, self.received = received != self.received, received
        return was_used or clients > 1

    def compacts(self) -> bool:
        """Whether the server is writing its file anew, which is begun here if most of the file is obsolete.

        The next start then has less to load: a third of the bytes, in half of the time.
        """
        try:
            fields = self._info("persistence")
            grown = int(fields[b"aof_current_size"]) - 2 * int(fields[b"aof_base_size"])
            if fields[b"aof_rewrite_in_progress"] == b"1":
                return True
            if grown < COMPACT_FROM_BYTES or fields[b"aof_last_bgrewrite_status"] != b"ok":
                return False
            with self._sent(b"BGREWRITEAOF\r\n") as reply:
                return reply.readline().startswith(b"+")
        except (OSError, ValueError, KeyError):
            self.close()
            return False

    def close(self) -> None:
        """Drops the connection."""
        if self.connection is not None:
            self.connection.close()
        self.connection, self.received = None, -1

    def _ask(self) -> tuple[int, int]:
        # Two commands: servers before 7.0 take one section at a time.
        fields = self._info("clients", "stats")
        return int(fields[b"connected_clients"]), int(fields[b"total_connections_received"])

    def _info(self, *sections: str) -> dict[bytes, bytes]:
        fields: dict[bytes, bytes] = {}
        with self._sent("".join(f"INFO {section}\r\n" for section in sections).encode()) as reply:
            for _ in sections:
                fields |= _section(reply)
        return fields

    def _sent(self, commands: bytes) -> BinaryIO:
        """Sends commands; returns the file of their replies."""
        if self.connection is None:
            self.connection = socket.socket(socket.AF_UNIX)
            self.connection.settimeout(ANSWER_S)
            self.connection.connect(self.path)
        self.connection.sendall(commands)
        return self.connection.makefile("rb")


def _section(reply: BinaryIO) -> dict[bytes, bytes]:
    head = reply.readline()
    if not head.startswith(b"$"):
        raise ValueError(head)
    pairs = (line.partition(b":") for line in reply.read(int(head[1:]) + 2).splitlines())
    return {name: value for name, _, value in pairs}


class Server:
    """The server process, which dies with its guard."""

    def __init__(self, config: Config, alive_fd: int) -> None:
        by_signal = config.lifeline == "signal"
        self.process = subprocess.Popen(
            config.command,
            pass_fds=(alive_fd,),
            preexec_fn=_dying_with(os.getpid()) if by_signal else None,  # noqa: PLW1509 - the guard has one thread
        )
        os.close(alive_fd)
        self.watcher = None if by_signal else _start_watcher(self.process.pid)

    def code(self) -> int | None:
        """The exit code, negative for a signal; None while the server lives."""
        code = self.process.poll()
        if code is not None:
            self._dismiss_watcher()
        return code

    def stop(self) -> None:
        """Stops the server orderly, or else by force."""
        if self.code() is None:
            self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_S)
        self.kill()

    def kill(self) -> None:
        """Ends the server by force, if it still lives."""
        if self.code() is None:
            self.process.kill()
            self.process.wait()
            self._dismiss_watcher()

    def _dismiss_watcher(self) -> None:
        """Without this, it would later kill whatever process has the dead server's id by then."""
        if self.watcher is not None:
            pid, lifeline = self.watcher
            os.write(lifeline, b".")
            os.close(lifeline)
            os.waitpid(pid, 0)
            self.watcher = None


def _dying_with(guard: int) -> Callable[[], None]:
    """Asks Linux, in the server before it is one, to kill it when its guard dies."""
    prctl = ctypes.CDLL(None).prctl

    def arrange() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # it died just before
            os._exit(1)

    return arrange


def _start_watcher(server: int) -> tuple[int, int]:
    """Starts a process that kills the server when the guard is gone, for systems without a signal for it.

    Returns:
        Its id, and the end of a pipe that the guard keeps open as long as it lives.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(read_end)
        return pid, write_end
    # Above all the other end of the pipe, and the lock of a restart.
    os.closerange(3, read_end)
    os.closerange(read_end + 1, MOST_DESCRIPTORS)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.read(read_end, 1) == b"":
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
    os._exit(0)


class Guard:
    """Keeps one server."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.monitor = Monitor(config.socket)
        self.inode = os.fstat(config.alive_fd).st_ino
        self.tick_s = min(LONGEST_TICK_S, config.idle_s / 4)
        self.crashes: list[float] = []
        self.is_stop_requested = False
        self.wakeup = self._take_signals()
        self._start(config.alive_fd)

    def _take_signals(self) -> socket.socket:
        wakeup, self.wakeup_end = socket.socketpair()
        for end in (wakeup, self.wakeup_end):
            end.settimeout(0)
        signal.set_wakeup_fd(self.wakeup_end.fileno())

        def stop(*_: object) -> None:
            self.is_stop_requested = True

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, stop)
        # A handler of our own, or the end of the server would not wake us.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        return wakeup

    def run(self) -> int:
        """Watches until the server has ended for good.

        Returns:
            The exit code.
        """
        code = None
        while code is None:
            select.select([self.wakeup], [], [], self.tick_s if self.was_bound else BINDING_TICK_S)
            with suppress(BlockingIOError):
                self.wakeup.recv(4096)
            code = self._look()
        self.monitor.close()
        return code

    def _look(self) -> int | None:
        """Handles the current situation; returns the exit code once there is nothing left to guard."""
        code = self.server.code()
        if self.is_stop_requested:
            write_log("stopping the server on request")
            self.server.stop()
            return 0
        if code is not None:
            return self._after(code)
        if self._is_folder_gone():
            # What the server holds was deleted with it. A clean end would remove a successor's socket.
            write_log("killing the server: its folder is gone")
            self.server.kill()
            return 0
        if self._is_socket_gone():
            return self._restart("its socket is gone")
        idle_s = self._idle_s()
        if idle_s > self.config.idle_s / 2 and self.monitor.compacts():
            return None
        return 0 if idle_s > self.config.idle_s and self._stop_if_unused() else None

    def _after(self, code: int) -> int | None:
        """Restarts the server after an unexpected end, but not too often."""
        now = monotonic()
        self.crashes = [at for at in self.crashes if now - at < CRASH_WINDOW_S]
        if code < 0 and -code not in (signal.SIGTERM, signal.SIGINT) and len(self.crashes) < MOST_CRASHES:
            return self._restart(f"signal {-code} ended it")
        write_log(f"the server ended with {code}")
        return abs(code)

    def _is_folder_gone(self) -> bool:
        try:
            return Path(self.config.alive).stat().st_ino != self.inode
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def _is_socket_gone(self) -> bool:
        """Whether the socket's folder was deleted, so that no new client can connect."""
        now = monotonic()
        if Path(self.config.socket).exists():
            self.was_bound, self.last_bound = True, now
        return now - self.last_bound > (SWEPT_S if self.was_bound else BINDING_S)

    def _idle_s(self) -> float:
        """How long nobody has used the server."""
        if self.monitor.is_used() is not False:
            self.last_used = monotonic()
        return monotonic() - self.last_used

    def _stop_if_unused(self) -> bool:
        """Stops the server unless a client is joining, which holds the lock until it is connected."""
        with Path(self.config.lock).open("rb") as lock:
            if not _try_lock(lock.fileno()) or self.monitor.is_used() is not False:
                return False
            os.utime(lock.fileno())  # shows starters that wait that the holder has changed
            write_log(f"stopping the server: nobody has used it for {self.config.idle_s:g} s")
            self.server.stop()
            with suppress(OSError):
                Path(self.config.socket).parent.rmdir()
            return True

    def _restart(self, why: str) -> int | None:
        """Restarts the server under the lock; returns an exit code if another process has done so."""
        with Path(self.config.lock).open("rb") as lock:
            if not _try_lock(lock.fileno()):
                return None  # a starter is at it; the next look shows what came of it
            os.utime(lock.fileno())  # as above
            write_log(f"restarting the server: {why}")
            self.crashes.append(monotonic())
            self.server.stop()
            alive_fd = os.open(self.config.alive, os.O_RDWR)
            if not _try_lock(alive_fd):
                write_log("somebody else has started a server")
                return 0
            folder = Path(self.config.socket).parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.parent.stat().st_uid != os.geteuid():
                write_log(f"{folder} is below a folder of somebody else")
                return 1
            self._start(alive_fd)
        return None

    def _start(self, alive_fd: int) -> None:
        self.monitor.close()
        self.server = Server(self.config, alive_fd)
        self.was_bound = False
        self.last_bound = self.last_used = monotonic()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main() -> int:
    """Detaches from the launcher, whose child this process was, and guards."""
    if os.fork() != 0:
        os._exit(0)
    os.umask(0o077)
    return Guard(Config(**json.loads(sys.argv[1]))).run()


if __name__ == "__main__":
    sys.exit(main())
