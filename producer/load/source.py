"""Reads input: a file that can be read again, or a stream that is read once.

Bytes are read in blocks of bounded size, so that a file with one line of a gigabyte needs no more memory than
a valid file. Errors of the file itself (missing, a folder, not readable) are raised here.
"""

import sys
from collections.abc import Iterator
from difflib import get_close_matches
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from socket import gethostname
from typing import BinaryIO, Final

from shared.errors import InputError

BLOCK_BYTES: Final = 1 << 18
"""How much is read at once."""
STDIN: Final = "-"
"""The name that means standard input."""
NO_FILE: Final = "stdin"
"""What an input without a file is called."""
FILE_KEY: Final = "file"
"""Key in a run's snapshot of what identifies its file."""
KEY_CHARS: Final = 16
_NEAR: Final = 0.8
"""How similar the name of a file is that is suggested; two short names with one suffix are 0.6."""


class Source:
    """One input, by name.

    Args:
        where: the path, or `-` for standard input.
        stdin: what is read instead, once; a path then only says where other files are looked for.
    """

    def __init__(self, where: str | Path, *, stdin: BinaryIO | None = None) -> None:
        self._stdin = stdin
        self._path = None if str(where) == STDIN else Path(where)
        self._stream: BinaryIO | None = None
        self._head: bytes | None = None
        self.name = NO_FILE if self._path is None else str(where)
        """As typed by the user; prefix of every error."""

    @property
    def path(self) -> Path | None:
        """The file; None for standard input."""
        return self._path

    @property
    def repeatable(self) -> bool:
        """Whether it can be read from the start again: a regular file, no pipe."""
        return self._stdin is None and self._path is not None and self._path.is_file()

    def head(self) -> bytes:
        """Returns the first block without using it up: at least one whole line, if the block holds one.

        Raises:
            InputError: there is nothing readable at this place.
        """
        if self._head is None:
            stream = self._open()
            self._head = _fill(stream, self.name)
            if self.repeatable:
                stream.close()
            else:
                self._stream = stream
        return self._head

    def blocks(self) -> Iterator[bytes]:
        """Yields the content from the start; of a stream only once.

        Raises:
            InputError: there is nothing readable at this place, or it broke while being read.
        """
        if self.repeatable:
            stream = self._open()
        else:
            yield self.head()
            if self._stream is None:
                raise InputError(f"{self.name}: a stream cannot be read twice", hint="save it to a file")
            stream, self._stream = self._stream, None
        with stream:
            while block := _read(stream, self.name):
                yield block

    def _open(self) -> BinaryIO:
        """Opens the input, or raises a one-line error."""
        if self._stdin is not None:
            return self._stdin
        if self._path is None:
            return sys.stdin.buffer
        try:
            return self._path.open("rb", buffering=0)
        except FileNotFoundError:
            raise InputError(f"{self.name}: no such file", hint=_nearest_file(self._path)) from None
        except IsADirectoryError:
            raise InputError(f"{self.name}: is a directory", hint="name the file inside it") from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{self.name}: cannot be read: {reason}", hint="check its rights") from None


def _read(stream: BinaryIO, name: str) -> bytes:
    """Reads what is there, at most a block; empty at the end.

    One system call at a time: a buffered `read` would go on to the next one without looking for Ctrl-C.
    """
    read = stream.read1 if isinstance(stream, BufferedReader) else stream.read
    try:
        return read(BLOCK_BYTES) or b""
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: reading broke off: {error}", hint="check the disk or the pipe") from None


def _fill(stream: BinaryIO, name: str) -> bytes:
    """Reads until a line is complete or a block is full; a pipe hands out a little at a time."""
    parts = [_read(stream, name)]
    size = len(parts[0])
    while parts[-1] and size < BLOCK_BYTES and b"\n" not in parts[-1]:
        parts.append(_read(stream, name))
        size += len(parts[-1])
    return b"".join(parts)


def _nearest_file(path: Path) -> str:
    """Suggests a file of nearly this name in the same folder."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except (OSError, ValueError):
        return f"there is no folder {path.parent} either" if not path.parent.exists() else "check the name"
    close = get_close_matches(path.name, names, n=1, cutoff=_NEAR)
    return (
        f"did you mean {path.parent / close[0]}?"
        if close
        else "check the name; relative paths start at the current folder"
    )


def file_key(source: Source) -> str:
    """Returns what identifies a file of this machine, without its path; empty for a stream."""
    if source.path is None:
        return ""
    return sha256(f"{gethostname()}\0{source.path.resolve()}".encode()).hexdigest()[:KEY_CHARS]
