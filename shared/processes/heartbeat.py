"""Heartbeat files of the worker processes of this machine, for health checks that do not use Redis.

Each process holds a lock on one small file; its steward touches the file on every tick that reached Redis. A
probe reads the oldest: one hanging process makes the check fail. A file without a lock belonged to a process
that is gone (`kill -9`): the next process that starts here removes it and ends the leases of the dead one at
once. (A process id in the file would not do: in a container the next process may have the same.)

    workers/turns-1.4711@host.alive     touched each second
"""

import fcntl
import glob
import os
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Final

FOLDER: Final = "workers"
"""Inside the data folder."""
SUFFIX: Final = ".alive"


class Heartbeat:
    """The file of one worker process.

    A data folder that cannot be written disables the probe but not the work: no method raises for it.

    Args:
        data_dir: the data folder of this machine's Proctor.
        name: the process's node name.
    """

    def __init__(self, data_dir: Path, name: str) -> None:
        self._path = data_dir / FOLDER / (name.replace("/", "_") + SUFFIX)
        self._held: int | None = None

    def beat(self) -> None:
        """Touches the file."""
        with suppress(OSError):
            if self._held is None or not self._path.exists():
                self._open()
            os.utime(self._path)

    def stop(self) -> None:
        """Removes the file at an orderly shutdown."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._close()

    def _open(self) -> None:
        self._close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Locked before it has its name: a file without lock is that of a dead process at any moment.
        unnamed = self._path.with_suffix(f".{os.getpid()}")
        self._held = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(self._path)

    def _close(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


def oldest_beat_s(data_dir: Path) -> float | None:
    """Returns how long ago the least recent live worker process of this data folder reached Redis.

    Args:
        data_dir: the data folder.

    Returns:
        Seconds; None when no worker process is alive.
    """
    ages = [age for path in (data_dir / FOLDER).glob(f"*{SUFFIX}") if (age := _age_s(path)) is not None]
    return max(ages, default=None)


def sweep_dead(data_dir: Path, host: str) -> list[str]:
    """Removes the files of processes that are gone, and returns their names.

    Args:
        data_dir: the data folder.
        host: only those of this host, the part of their names behind the `@`; hosts may share a folder.
    """
    dead = []
    for path in (data_dir / FOLDER).glob(f"*@{glob.escape(host)}{SUFFIX}"):
        with suppress(OSError):
            if not _is_locked(path):
                path.unlink()
                dead.append(path.name.removesuffix(SUFFIX))
    return dead


def _age_s(path: Path) -> float | None:
    try:
        with path.open("rb") as file:
            if _is_held(file.fileno()):
                return max(0.0, time() - os.fstat(file.fileno()).st_mtime)
    except OSError:
        pass  # removed at this moment, or not ours to read
    return None


def _is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        return _is_held(file.fileno())


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
