"""The messages between a worker, the zygote and its children; standard library only."""

import struct

ORDER = struct.Struct("<ci")
"""What the worker asks of the zygote, and what that answers: the order, and a number."""
SEARCHER, TEMPLATE, END, DROP = b"S", b"T", b"K", b"D"
"""Orders: fork a child for patterns or for a validators file, locked or not; end a child and say how it had
ended; end a child and say nothing."""

ASK = struct.Struct("<I8scI")
"""Of a request to a child: bytes after the count, its random word, what is asked, bytes of its first text."""
LOAD, CALL, SEARCH = b"L", b"C", b"S"
"""Requests: compile a validators file and run it once from its top; call a validator with a text; search a
pattern in a text."""

HEAD = struct.Struct("<I8sc")
"""Of an answer: bytes after the count, the request's word, what kind of answer it is."""
COUNT_BYTES = 4
"""Bytes of the count that a request and an answer begin with."""
DONE, MATCH, NO_MATCH = b"D", b"m", b"n"
TRUE, FALSE, TRUE_SAID, FALSE_SAID = b"T", b"F", b"t", b"f"
NONE, NUMBER, TEXT, OTHER = b"N", b"i", b"s", b"o"
RAISED, MEMORY, UNKNOWN, BAD_PATTERN = b"x", b"M", b"u", b"b"
CRASHED, FORGED = b"c", b"!"
"""Kinds of answers; `OTHER` comes with the name of a type, `RAISED` and `BAD_PATTERN` with a message,
`CRASHED` with a wait status."""
