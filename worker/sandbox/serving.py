"""Reads requests and writes answers in a child, and searches patterns; standard library only.

Runs in an isolated interpreter beside zygote.py. Each answer carries the random word of its request, which
nobody could know before, so that bytes written ahead are no answer to anything.
"""

import os
import re
from typing import NoReturn

from worker.sandbox import protocol

MAX_SAID_CHARS = 4_000
READ_BYTES = 1 << 20
"""Bytes read from the pipe at once."""
FIRST_READ_BYTES = 1 << 16

_read, _write, _exit = os.read, os.write, os._exit


def receive() -> tuple[bytes, bytes, str, str]:
    """Reads one request: its word, its kind, and two texts; ends the process at the end of the pipe."""
    data = _read(0, FIRST_READ_BYTES)
    while (
        len(data) < protocol.ASK.size or len(data) < protocol.ASK.unpack_from(data)[0] + protocol.COUNT_BYTES
    ):
        more = _read(0, READ_BYTES)
        if not more:
            _exit(0)
        data += more
    _, word, what, length = protocol.ASK.unpack_from(data)
    middle = protocol.ASK.size + length
    first = data[protocol.ASK.size : middle].decode("utf-8", "surrogatepass")
    return word, what, first, data[middle:].decode("utf-8", "surrogatepass")


def framed(word: bytes, kind: bytes, text: str = "") -> bytes:
    """Makes one answer."""
    body = text.encode("utf-8", "surrogatepass")
    return protocol.HEAD.pack(protocol.HEAD.size - protocol.COUNT_BYTES + len(body), word, kind) + body


def send(data: bytes) -> None:
    """Writes all of it."""
    while data:
        data = data[_write(1, data) :]


def raised(error: BaseException) -> tuple[bytes, str]:
    """Makes an answer of an exception."""
    if isinstance(error, MemoryError):
        return protocol.MEMORY, ""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - its `__str__` may raise anything
        text = type(error).__name__
    return protocol.RAISED, text[:MAX_SAID_CHARS]


def search(pattern: str, text: str) -> tuple[bytes, str]:
    """Looks for a pattern anywhere in a text."""
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except MemoryError:
        return protocol.MEMORY, ""
    except Exception as error:  # noqa: BLE001 - RecursionError and OverflowError too mean: no pattern
        return protocol.BAD_PATTERN, str(error)[:MAX_SAID_CHARS]
    try:
        found = compiled.search(text)
    except BaseException as error:  # noqa: BLE001 - MemoryError and RecursionError
        return raised(error)
    return (protocol.NO_MATCH, "") if found is None else (protocol.MATCH, found.group())


def serve_searches() -> NoReturn:
    """Searches one pattern after the other: a search leaves nothing behind that a later one could notice."""
    while True:
        word, _, pattern, text = receive()
        send(framed(word, *search(pattern, text)))
