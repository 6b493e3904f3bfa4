"""Where an embedded server's files are: data, locks and log in the data folder, the socket outside of it.

A unix socket's path may have 107 bytes (macOS: 103), and data folders are often deeper than that. So the
socket is in `$XDG_RUNTIME_DIR` or the folder for temporary files, under a name made from the data folder.

    DATA/lock           held for moments by who starts, joins or stops the server
    DATA/server.alive   held by the server process itself, as long as it runs, also when it is frozen
    DATA/server.json    the path of the socket, so that all find it whatever their environment says
    RUNTIME/proctor-1000/0123456789ab/s
"""

import errno
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shared.errors import ConfigError, InfrastructureError, ProctorError
from shared.names import DISTRIBUTION

MAX_SOCKET_PATH_BYTES: Final = 107 if sys.platform == "linux" else 103
"""The kernel's `sun_path` without its closing zero."""
PRIVATE: Final = 0o700
DATA_DIR_HINT: Final = "set PROCTOR_DATA_DIR to a folder on a local disk that you can write"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class Places:
    """The files of one data folder's server."""

    folder: Path
    """The data folder, absolute."""

    @property
    def lock(self) -> Path:
        """Held while the server is started, joined or stopped."""
        return self.folder / "lock"

    @property
    def alive(self) -> Path:
        """Locked by the living server process."""
        return self.folder / "server.alive"

    @property
    def record(self) -> Path:
        """Contains the path of the socket."""
        return self.folder / "server.json"

    @property
    def log(self) -> Path:
        """The log of server and guard."""
        return self.folder / "server.log"

    @property
    def pid(self) -> Path:
        """The server's process id, for information; whether it runs is decided by `alive`."""
        return self.folder / "server.pid"


def prepare_data_dir(data_dir: Path) -> Places:
    """Makes the data folder, private to its user.

    Raises:
        ConfigError: it cannot be made or written.
        InfrastructureError: its disk is full.
    """
    places = Places(data_dir.expanduser().absolute())
    try:
        places.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        places.lock.touch(mode=0o600)
    except OSError as error:
        raise unusable(places.folder, error) from None
    return places


def unusable(folder: Path, error: OSError) -> ProctorError:
    """Makes the error that says why a data folder cannot be used, and what to do about it."""
    why = error.strerror or str(error)
    if error.errno in _FULL:
        return InfrastructureError(f"the disk of data folder {folder} is full: {why}", hint="make room on it")
    return ConfigError(f"data folder {folder} cannot be used: {why}", hint=DATA_DIR_HINT)


def socket_path(data_dir: Path) -> Path:
    """Returns where the socket of this data folder's server is, or will be; starts and makes nothing."""
    places = Places(data_dir.expanduser().absolute())
    return recorded_socket(places) or next(_candidates(places.folder))


def recorded_socket(places: Places) -> Path | None:
    """Reads where the server's socket is; None if no server was ever started on this folder."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return Path(json.loads(places.record.read_text(encoding="utf-8"))["socket"])
    return None


def record_socket(places: Places, socket: Path) -> None:
    """Writes where the server's socket will be."""
    draft = places.record.with_suffix(".new")
    draft.write_text(json.dumps({"socket": str(socket)}) + "\n", encoding="utf-8")
    draft.replace(places.record)


def prepare_socket(places: Places) -> Path:
    """Chooses a path for the socket, the last one if it can still be used, and makes its folder.

    Raises:
        ConfigError: no folder is private, writable and short enough; the message says what was tried.
    """
    last = recorded_socket(places)
    refused: dict[Path, str] = {}
    for path in (*([last] if last else []), *_candidates(places.folder)):
        if path not in refused:
            try:
                check_length(path)
                make_socket_folder(path.parent)
            except OSError as error:
                refused[path] = error.strerror or str(error)
            else:
                return path
    tried = "; ".join(f"{path}: {why}" for path, why in refused.items())
    raise ConfigError(
        f"no folder for the embedded server's socket: {tried}",
        hint="set XDG_RUNTIME_DIR or TMPDIR to a folder with a short path that you own",
    )


def check_length(path: Path) -> None:
    """Refuses a path that the kernel would not take.

    Raises:
        OSError: it is too long; the text has both lengths.
    """
    length = len(os.fsencode(path))
    if length > MAX_SOCKET_PATH_BYTES:
        raise OSError(
            errno.ENAMETOOLONG,
            f"its path has {length} bytes, and a socket's may have {MAX_SOCKET_PATH_BYTES}",
        )


def make_socket_folder(folder: Path) -> None:
    """Makes the socket's folder and the user's folder above it, both for the user alone.

    Raises:
        OSError: one of them cannot be made, or belongs to somebody else.
    """
    folder.parent.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        with suppress(FileExistsError):
            each.mkdir(mode=PRIVATE)
        # In a folder for temporary files, somebody else may have been here first: no link is followed.
        found = each.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, f"{each} is not a folder of this user")
        if stat.S_IMODE(found.st_mode) != PRIVATE:
            each.chmod(PRIVATE)


def _candidates(folder: Path) -> Iterator[Path]:
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    for base in _runtime_folders():
        yield base / f"{DISTRIBUTION}-{os.geteuid()}" / name / "s"


def _runtime_folders() -> Iterator[Path]:
    session = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if session.is_absolute():
        yield session
    yield Path(tempfile.gettempdir()).absolute()
    yield Path("/tmp")  # noqa: S108 - short, and the folder made in it is private and its owner checked
