"""Packs the JSON of large runs: what their items have in common is stored once, as the dictionary of the run.

The items of a run repeat each other: keys, checks, prompts, reasons. Deflate (RFC 1951) looks back at a
dictionary of typical texts, which the loader writes once with the run, so an item of 1,900 bytes takes 80.
A packed text begins with a byte that JSON cannot begin with; one that packing would not shorten stays as it
is, and so does everything in a run without a dictionary.
"""

import zlib
from typing import Final

DICTIONARY: Final = "dictionary"
"""Name of the file of a run that holds its dictionary."""
PACKED: Final = b"\x01"
"""First byte of a packed text."""
_LEVEL: Final = 1
_WINDOW_BITS: Final = 13
DICTIONARY_BYTES: Final = 1 << _WINDOW_BITS - 1
"""Most bytes of a dictionary: half of the window, so that long texts reach all of it for a while."""
_MEMORY_LEVEL: Final = 5
"""Small states: allocating the usual 256 kB takes ten times as long as packing an item."""


class Packing:
    r"""Packs and unpacks the texts of one run; safe to share between threads.

    Args:
        dictionary: of the run; empty for a run that stores its texts as they are.

    >>> packing = Packing(b'{"id":"Q-1","response":{"answer":"yes","sources":[{"title":"S"}]}}')
    >>> text = b'{"id":"Q-2","response":{"answer":"yes","sources":[{"title":"S"}]}}'
    >>> len(text), len(packing.pack(text)), packing.unpack(packing.pack(text)) == text
    (66, 9, True)
    >>> PLAIN.pack(text) == packing.unpack(text) == text
    True
    """

    __slots__ = ("_deflate", "_dictionary")

    def __init__(self, dictionary: bytes) -> None:
        self._dictionary = dictionary
        # Copying a state that has read the dictionary takes a third of the time of reading it each time.
        self._deflate = zlib.compressobj(
            _LEVEL, zlib.DEFLATED, -_WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, dictionary
        )

    def pack(self, text: bytes) -> bytes:
        """Returns the form in which a text is stored."""
        if not self._dictionary:
            return text
        deflate = self._deflate.copy()
        packed = b"".join((PACKED, deflate.compress(text), deflate.flush()))
        return packed if len(packed) < len(text) else text

    def unpack(self, stored: bytes) -> bytes:
        """Returns the text."""
        if not stored.startswith(PACKED):
            return stored
        return zlib.decompressobj(-_WINDOW_BITS, self._dictionary).decompress(memoryview(stored)[1:])


PLAIN: Final = Packing(b"")
"""Stores texts as they are."""
