"""Keeps the values of a plan, each found again by its position or its key: few in memory, many in a file."""

import sqlite3
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from shared.errors import InputError

T = TypeVar("T")

FEW: Final = 1_000
"""Values that are kept in memory."""
_TABLE: Final = "CREATE TABLE kept (at INTEGER PRIMARY KEY, key TEXT UNIQUE, value BLOB)"
_FAST: Final = ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF")
"""Nobody reads the file after a crash."""


class KeptValues(Generic[T]):
    """Values in their order.

    Beyond `FEW` they lie in a database without a name, so that memory does not grow with them. SQLite writes
    its pages to a file when they no longer fit into its cache, and deletes the file by itself.

    Args:
        encode: writes a value.
        decode: reads it back.

    >>> kept = KeptValues[str](str.encode, bytes.decode)
    >>> [kept.add(text, key=text[0]) for text in ("apple", "pear", "apricot")]
    [None, None, 0]
    >>> list(kept), kept.get("p"), kept.get("x")
    (['apple', 'pear'], 'pear', None)
    """

    def __init__(self, encode: Callable[[T], bytes], decode: Callable[[bytes], T]) -> None:
        self._encode, self._decode = encode, decode
        self._few: list[T] = []
        self._positions: dict[str, int] = {}
        self._many: sqlite3.Connection | None = None
        self._count = 0

    def add(self, value: T, key: str | None = None) -> int | None:
        """Adds a value at the end.

        Returns:
            None; where another value has the same key, its position, and nothing is added.

        Raises:
            InputError: there is no room for a temporary file.
        """
        if self._many is None and self._count == FEW:
            self._many = self._moved()
        if self._many is not None:
            before = self._insert(self._many, self._count, key, value)
        elif (before := None if key is None else self._positions.get(key)) is None:
            self._few.append(value)
            if key is not None:
                self._positions[key] = self._count
        if before is None:
            self._count += 1
        return before

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        if self._many is None:
            return iter(self._few)
        return (self._decode(value) for (value,) in self._many.execute("SELECT value FROM kept ORDER BY at"))

    def __getitem__(self, at: int) -> T:
        if self._many is None:
            return self._few[at]
        [value] = self._many.execute("SELECT value FROM kept WHERE at = ?", (at,)).fetchone()
        return self._decode(value)

    def position(self, key: str) -> int | None:
        """Returns where the value with a key is; None where nothing has it."""
        if self._many is None:
            return self._positions.get(key)
        found: Any = self._many.execute("SELECT at FROM kept WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    def get(self, key: str) -> T | None:
        """Returns the value with a key; None where nothing has it."""
        at = self.position(key)
        return None if at is None else self[at]

    def keys(self) -> Iterator[str]:
        """Yields all keys, in the order of their values."""
        if self._many is None:
            return iter(self._positions)
        found = self._many.execute("SELECT key FROM kept WHERE key IS NOT NULL ORDER BY at")
        return (key for (key,) in found)

    def _moved(self) -> sqlite3.Connection:
        """Moves everything into a database."""
        many = sqlite3.connect("", check_same_thread=False)
        weakref.finalize(self, many.close)
        for statement in (*_FAST, _TABLE):
            many.execute(statement)
        keys = {at: key for key, at in self._positions.items()}
        for at, value in enumerate(self._few):
            self._insert(many, at, keys.get(at), value)
        self._few, self._positions = [], {}
        return many

    def _insert(self, many: sqlite3.Connection, at: int, key: str | None, value: T) -> int | None:
        """Inserts a value; returns the position of another with the same key, if there is one."""
        try:
            row = (at, key, self._encode(value))
            if many.execute("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", row).rowcount:
                return None
        except sqlite3.OperationalError as error:
            raise InputError(
                f"the temporary file of the plan cannot be written: {error}",
                hint="make room, or name another folder in SQLITE_TMPDIR",
            ) from None
        [before] = many.execute("SELECT at FROM kept WHERE key = ?", (key,)).fetchone()
        return int(before)
