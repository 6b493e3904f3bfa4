"""Reports and comparisons as files: written once for each state of their runs, and kept for a while."""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import BinaryIO, Final

MOST: Final = 8
"""Pages that are kept; the one that was asked for longest ago goes first."""


class KeptReports:
    """Keeps pages on disk; two readers of the same page wait for one that is written."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="proctor-view-")
        self._paths = OrderedDict[str, Path]()
        self._locks = dict[str, Lock]()
        self._own, self._number = Lock(), 0

    def path(self, name: str, write: Callable[[BinaryIO], object]) -> Path:
        """Returns the file of a page, which is written if there is none.

        Args:
            name: names the page and the state of what it shows.
            write: writes it.
        """
        with self._own:
            lock = self._locks.setdefault(name, Lock())
        with lock:
            if name not in self._paths:
                self._write(name, write)
            with self._own:
                self._paths.move_to_end(name)
                return self._paths[name]

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        with self._own:
            self._number += 1
            path = Path(self._folder.name) / f"{self._number}.html"
        with path.open("wb") as out:
            write(out)
        with self._own:
            self._paths[name] = path
            while len(self._paths) > MOST:
                old, gone = self._paths.popitem(last=False)
                self._locks.pop(old, None)
                gone.unlink()

    def close(self) -> None:
        """Gives the disk back."""
        self._folder.cleanup()
