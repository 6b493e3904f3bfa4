"""Joins the data folder's server, or starts it: never a second one on the same folder.

"A server runs on this folder" means that the server process itself holds a lock (`server.alive`). The kernel
releases it when the process ends and at no other time, so a server that loads, hangs or is frozen still
counts, and a reused process id does not.

Every step takes `DATA/lock` briefly: check, then join, start, or release and check again.
"""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote

from shared.errors import ConfigError, RedisUnreachableError
from shared.server.client import RedisTarget
from shared.server.embedded.server_places import (
    DATA_DIR_HINT,
    Places,
    prepare_data_dir,
    prepare_socket,
    record_socket,
    recorded_socket,
    unusable,
)
from shared.server.embedded.server_program import find_program, last_complaint, server_options

if TYPE_CHECKING:
    import redis

IDLE_S: Final = 15.0
"""How long a server without clients waits for one before it stops."""
PATIENCE_S: Final = 15.0
"""How long to wait for a silent server; one that is loading its data answers."""
PAUSE_S: Final = 0.01
ANSWER_S: Final = 1.0
LOADING: Final = b"-LOADING"
GUARD_START_S: Final = 30.0
MOST_LOG_BYTES: Final = 1_000_000
LIFELINE = "signal" if sys.platform == "linux" else "pipe"
"""How a server ends with its guard; only Linux has a signal for it."""
MOST_STARTS: Final = 2
"""On a busy machine a starter may look so late that its server has ended, since nobody used it."""
GUARD: Final = Path(__file__).with_name("guard.py")


@dataclass
class RunningServer:
    """The data folder's server, and a connection that keeps it from being stopped."""

    socket: Path
    """Path of its socket."""
    client: "redis.Redis"
    """Connected; the server counts as used until this is closed."""
    started: bool
    """Whether this call has started it."""
    target: RedisTarget
    """The same server by URL."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection: without clients, the server stops after a while."""
        self.client.close()


def ensure(data_dir: Path, *, idle_s: float = IDLE_S, patience_s: float = PATIENCE_S) -> RunningServer:
    """Joins the server of a data folder, or starts one; returns when it answers.

    Args:
        data_dir: the data folder; made when missing.
        idle_s: how long a server started now outlives its last client.
        patience_s: how long to wait without any sign of life.

    Raises:
        ConfigError: the data folder cannot be used, or no path is short enough for the socket.
        NoServerError: there is no server program to start.
        RedisUnreachableError: a server runs on the folder but does not answer, or a new one ended at once.
    """
    import redis  # noqa: F401, PLC0415 - start-up: seconds on a busy machine, which others would wait for the lock

    launch = _Launch(prepare_data_dir(data_dir), idle_s, patience_s)
    while True:
        if not launch.is_loading():
            with launch.locked():
                server = launch.join()
                if server is not None:
                    return server
                launch.start_if_dead()
        launch.pause()


@dataclass
class _Launch:
    """One call of `ensure`."""

    places: Places
    idle_s: float
    patience_s: float
    starts: int = 0
    """Servers that this call has started."""
    log_offset: int = 0
    answer: bytes = b""
    last_sign: float = field(default_factory=monotonic)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder's lock; whoever joins, starts or stops the server does it one at a time.

        Raises:
            RedisUnreachableError: one process has held it for too long.
        """
        with self.places.lock.open("rb") as lock:
            begun = held_since = monotonic()
            stamp = -1
            while not _try_lock(lock.fileno(), self.places.folder):
                now, seen = monotonic(), os.fstat(lock.fileno()).st_mtime_ns
                if seen != stamp:
                    stamp, held_since = seen, now
                self._check_patience("another process holds its lock", held_since)
                _wait(PAUSE_S)
            os.utime(lock.fileno())  # shows those who wait that the holder has changed
            # Nobody asked the server meanwhile, so this was no silence of it.
            self.last_sign += monotonic() - begun
            yield

    def pause(self) -> None:
        """Waits a moment before the next look.

        Raises:
            RedisUnreachableError: this has been going on for too long.
        """
        self._check_patience("it is silent", self.last_sign)
        _wait(PAUSE_S)

    def is_loading(self) -> bool:
        """Pings without the lock, because an answer may take a second."""
        path = recorded_socket(self.places)
        self.answer = _ask(path) if path is not None else b""
        if not self.answer.startswith(LOADING):
            return False
        self.last_sign = monotonic()
        return True

    def join(self) -> RunningServer | None:
        """Connects to the server if it has answered; under the lock, so that it is not stopped meanwhile."""
        path = recorded_socket(self.places)
        if path is None or not _is_ready(self.answer) or not _is_ready(_ask(path)):
            return None
        # Before the connection counts, a living server must hold *this* folder: the one of a folder that was
        # deleted and made again answers on the same path until its guard notices.
        if self._take_alive() is not None:
            return None
        target = RedisTarget.parse(f"unix://{quote(str(path))}")
        client = target.client()
        if not _answers(client):
            client.close()
            return None
        return RunningServer(path, client, self.starts > 0, target)

    def start_if_dead(self) -> None:
        """Starts a server if none lives on the folder.

        Raises:
            RedisUnreachableError: those that we have just started have ended.
        """
        alive_fd = self._take_alive(keep=True)
        if alive_fd is None:
            return
        try:
            if self.starts == MOST_STARTS:
                raise self._ended()
            self._spawn(alive_fd)
        except OSError as error:
            raise unusable(self.places.folder, error) from None
        finally:
            os.close(alive_fd)
        self.starts += 1
        self.last_sign = monotonic()

    def _spawn(self, alive_fd: int) -> None:
        program = find_program()
        path = prepare_socket(self.places)
        # A server whose data folder was deleted and made again may still answer here.
        path.unlink(missing_ok=True)
        record_socket(self.places, path)
        if self.places.log.exists() and self.places.log.stat().st_size > MOST_LOG_BYTES:
            self.places.log.replace(self.places.log.with_suffix(".log.1"))
        config = {
            "lock": str(self.places.lock),
            "alive": str(self.places.alive),
            "alive_fd": alive_fd,
            "socket": str(path),
            "command": [str(program.path), *server_options(self.places, path)],
            "idle_s": self.idle_s,
            "lifeline": LIFELINE,
        }
        with self.places.log.open("ab") as log:
            self.log_offset = log.tell()
            # Without site: 10 ms faster, and nothing installed gets into a process that lives so long.
            subprocess.run(
                [sys.executable, "-I", "-S", GUARD, json.dumps(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                pass_fds=(alive_fd,),
                timeout=GUARD_START_S,
                check=True,
            )

    def _take_alive(self, *, keep: bool = False) -> int | None:
        """Takes the lock of the living server; None when a server holds it.

        Args:
            keep: return the open descriptor; otherwise it is closed, and any number means that it was free.
        """
        descriptor = os.open(self.places.alive, os.O_RDWR | os.O_CREAT, 0o600)
        if not _try_lock(descriptor, self.places.folder):
            os.close(descriptor)
            return None
        if not keep:
            os.close(descriptor)
        return descriptor

    def _check_patience(self, why: str, last_sign: float) -> None:
        if monotonic() - last_sign < self.patience_s:
            return
        pid = ""
        with suppress(OSError):
            pid = self.places.pid.read_text().strip()
        who = f"process {pid}" if pid else "a server"
        raise RedisUnreachableError(
            f"the embedded server of {self.places.folder} ({who}) does not answer "
            f"within {self.patience_s:g} s: {why}",
            hint=f"if it is frozen, let it go on (kill -CONT {pid or 'PID'}); its log: {self.places.log}",
        )

    def _ended(self) -> RedisUnreachableError:
        last = "its log is empty"
        with suppress(OSError), self.places.log.open("rb") as log:
            log.seek(self.log_offset)
            last = last_complaint(log.read().decode(errors="replace")) or last
        return RedisUnreachableError(
            f"the embedded server of {self.places.folder} ended at once: {last}",
            hint=f"see {self.places.log}; another folder can be used with PROCTOR_DATA_DIR",
        )


def _ask(path: Path) -> bytes:
    """Pings by hand: this must distinguish silence, loading and absence, and end within a second."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_S)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64)
        except OSError:
            return b""


def _is_ready(answer: bytes) -> bool:
    """Whether a server can be joined: one whose disk is full refuses even a ping, and still reads."""
    return bool(answer) and not answer.startswith(LOADING)


def _answers(client: "redis.Redis") -> bool:
    import redis  # noqa: PLC0415 - start-up: `ensure` has imported it

    try:
        client.ping()
    except redis.ResponseError:  # not raised while it loads
        return True
    except (redis.RedisError, OSError):
        return False
    return True


def _try_lock(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ConfigError(
            f"data folder {folder} is on a file system without locks: {error.strerror}", hint=DATA_DIR_HINT
        ) from None
    return True


def _wait(seconds: float) -> None:
    Event().wait(seconds)
