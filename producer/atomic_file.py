"""Writes a file that appears under its name only when it is complete; its errors name it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from os import getpid
from pathlib import Path
from typing import Any, BinaryIO


class NamedFile(FileIO):
    """A file for writing whose errors name it; a failed write of Python's own does not.

    Args:
        file: where it is, or the number of an open one, which stays open.
        shown: the name that errors give.
    """

    def __init__(self, file: Path | int, shown: str) -> None:
        self._shown = shown
        try:
            super().__init__(file, "wb", closefd=not isinstance(file, int))
        except OSError as error:
            error.filename = shown
            raise

    def write(self, data: Any, /) -> int:
        """Writes some bytes."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self._shown
            raise


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that replaces the one at its path when it is closed, unless there was an error.

    A device or a pipe, such as `/dev/stdout`, is written directly: a file must not take its place.

    Raises:
        OSError: it cannot be written; its `filename` is the path.
    """
    if path.exists() and not path.is_file():
        with BufferedWriter(NamedFile(path, str(path))) as out:
            yield out
        return
    target = path.resolve()  # the file that a link names is replaced, and not the link
    draft = target.with_name(f".{target.name}.{getpid()}.part")
    try:
        with BufferedWriter(NamedFile(draft, str(path))) as out:
            yield out
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
