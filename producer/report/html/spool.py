"""Keeps pieces of a page on disk until their place is known: memory holds three numbers of each."""

from array import array
from collections.abc import Iterator
from tempfile import TemporaryFile


class Spool:
    """Takes pieces in any order and gives them back sorted by their keys.

    >>> spool = Spool()
    >>> for key, piece in ((2, b"c"), (1, b"a"), (1, b"b")):
    ...     spool.add(key, piece)
    >>> list(spool.pieces(most=2)), len(spool)
    ([(1, b'a'), (1, b'b')], 3)
    >>> spool.close()
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._keys, self._ends = array("q"), array("q", [0])

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: int, piece: bytes) -> None:
        """Takes a piece; those with the same key stay in their order."""
        self._file.write(piece)
        self._keys.append(key)
        self._ends.append(self._ends[-1] + len(piece))

    def pieces(self, most: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yields the first pieces with their keys."""
        for at in sorted(range(len(self._keys)), key=self._keys.__getitem__)[:most]:
            self._file.seek(self._ends[at])
            yield self._keys[at], self._file.read(self._ends[at + 1] - self._ends[at])

    def close(self) -> None:
        """Gives the disk back."""
        self._file.close()
