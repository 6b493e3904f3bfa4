"""The messages between a worker, the zygote and its children; standard library only."""

import struct

ORDER = struct.Struct("<ci")
"""A message between the worker and the zygote: the order, and a number."""
SEARCHER, TEMPLATE, SCRIPTER, END, DROP = b"S", b"T", b"J", b"K", b"D"
"""Orders: fork a child for patterns, for a validators file or for JavaScript, locked or not; end a child and
return its wait status; end a child without an answer."""

ASK = struct.Struct("<I8scI")
"""Head of a request to a child: bytes after the count, its random word, its kind, bytes of its first text."""
LOAD, CALL, CHECK, TRANSFORM, SEARCH, SCRIPT = b"L", b"C", b"K", b"V", b"S", b"J"
"""Requests: compile a validators file and run it once from its top, or compile a script; call a validator
with a text; call a function with a text and a context (the second text holds both, see `joined`); the same,
for any JSON value; search a pattern in a text; run a script with a JSON object that holds output and
context."""

HEAD = struct.Struct("<I8sc")
"""Head of an answer: bytes after the count, the request's word, what kind of answer it is."""
COUNT_BYTES = 4
"""Bytes of the count that a request and an answer begin with."""
DONE, MATCH, NO_MATCH = b"D", b"m", b"n"
TRUE, FALSE, TRUE_SAID, FALSE_SAID = b"T", b"F", b"t", b"f"
NONE, NUMBER, NUMBER_SAID, TEXT, OTHER = b"N", b"i", b"I", b"s", b"o"
RAISED, MEMORY, UNKNOWN, BAD_PATTERN = b"x", b"M", b"u", b"b"
CRASHED, FORGED = b"c", b"!"
VALUE = b"V"
"""Kinds of answers; `NUMBER_SAID` comes with the number, a line end and a reason, `OTHER` with the name of a
type, `RAISED` and `BAD_PATTERN` with a message, `CRASHED` with a wait status, `VALUE` with the name of a
type, a space and JSON, or `undefined` for what JSON does not have."""


def joined(text: str, context: str) -> str:
    """Makes one text of an output and a context.

    >>> parted(joined("a output", "{}"))
    ('a output', '{}')
    """
    return f"{len(text)}:{text}{context}"


def parted(both: str) -> tuple[str, str]:
    """Takes the two apart again."""
    length, _, rest = both.partition(":")
    return rest[: int(length)], rest[int(length) :]
