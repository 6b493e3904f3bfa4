"""Imports what validators, and the modules they may use, import: no import works after the lock.

A test compares the list with what the sources of the allowed modules import inside of functions.
"""

from importlib import import_module

ALLOWED = "__future__ ast collections.abc datetime functools itertools json math operator re string typing"
"""What validators may import."""
LAZY = (
    "_strptime calendar contextlib copy enum heapq inspect linecache traceback types unicodedata warnings "
    "weakref"
)
"""What those import when one of their functions is called."""
NEWER = "annotationlib _ast_unparse string.templatelib"
"""The same, of Pythons later than 3.11; absent in earlier ones."""
CODECS = (
    "ascii base64_codec charmap cp1250 cp1251 cp1252 cp437 cp850 hex_codec idna iso8859_15 latin_1 punycode "
    "raw_unicode_escape rot_13 unicode_escape utf_16 utf_16_be utf_16_le utf_32 utf_32_be utf_32_le utf_7 "
    "utf_8 utf_8_sig"
)
"""Encodings that validators may name."""


def load() -> None:
    """Imports all of it."""
    for name in f"{ALLOWED} {LAZY}".split():
        import_module(name)
    for codec in CODECS.split():
        import_module(f"encodings.{codec}")
    for name in NEWER.split():
        try:
            import_module(name)
        except ImportError:
            continue
