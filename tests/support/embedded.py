"""Looks at embedded servers from outside; run as a program, it is a client of one, or several racing for it.

    python -m tests.support.embedded DATA IDLE_S [RACERS]

Each client prints one line of JSON (its process id, the server's, whether it started it) and then holds on.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
import redis  # noqa: F401 - loaded before the fork, so that all racers are at the start together

from shared.server.embedded import RunningServer, ensure
from tests.support.eventually import eventually
from tests.support.processes import is_running, kill_all

PROGRAMS: Final = ("valkey-server", "redis-server")


def server_pid(server: RunningServer) -> int:
    """The server's process id, as it says itself."""
    return int(server.client.info("server")["process_id"])


def guard_pid(server: RunningServer) -> int:
    """The process id of the guard: the server's parent."""
    return psutil.Process(server_pid(server)).ppid()


def servers_of(folder: Path) -> list[psutil.Process]:
    """Lists the running servers of a data folder: a server makes it its working folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            here = process.name() in PROGRAMS and process.cwd().removesuffix(" (deleted)") == str(folder)
            if here and is_running(process.pid):
                found.append(process)
    return found


def ends(pid: int, within_s: float = 10.0) -> None:
    """Waits until a process has ended."""

    def has_ended() -> None:
        assert not is_running(pid), f"process {pid} still runs"

    eventually(has_ended, within_s)


def end_servers_of(folder: Path) -> None:
    """Kills what a test has left on a data folder: guards first, or they would restart their servers."""
    servers = servers_of(folder)
    guards = []
    for server in servers:
        with suppress(psutil.Error):
            guards += [parent for parent in [server.parent()] if parent is not None and parent.pid != 1]
    kill_all([*guards, *servers])


def _client(data_dir: Path, idle_s: float) -> None:
    server = ensure(data_dir, idle_s=idle_s)
    old = server.client.get("old")
    facts = {
        "client": os.getpid(),
        "server": server_pid(server),
        "started": server.started,
        "old": old.decode() if isinstance(old, bytes) else None,
    }
    os.write(1, json.dumps(facts).encode() + b"\n")
    signal.pause()


def main(data_dir: str, idle_s: str, racers: str = "1") -> None:
    """Becomes one client, or forks several that start at the same moment."""
    gate, release = os.pipe()
    for _ in range(int(racers) - 1):
        if os.fork() == 0:
            os.close(release)
            os.read(gate, 1)
            break
    else:
        os.close(release)
    _client(Path(data_dir), float(idle_s))


if __name__ == "__main__":
    main(*sys.argv[1:])
