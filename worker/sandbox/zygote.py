"""Forks and locks the processes that run patterns and validators; itself runs nothing that it cannot trust.

Started as `python -I -S -E zygote.py FD …` with an empty environment, so that no password or key is in the
memory that its children inherit, and with the allowed modules imported, because no import works after the
lock. The worker asks over a socket:

    F + whether to lock, with two pipes    ->  process id of a new child, which answers on these pipes
    K + process id                         ->  its end: the wait status
    D + process id                             its end, and no answer

The end of the socket is the end of the worker: the zygote ends then, and every child with it. A child reads
one request, writes one answer, and so on; each answer carries the random word of its request, which nobody
could know before, so that bytes written ahead are no answer to anything.
"""

import _strptime  # type: ignore[import-not-found] # noqa: F401 - for validators: strptime
import ast  # noqa: F401 - imported for validators, as are the others marked so
import builtins
import calendar  # noqa: F401 - for validators: strptime
import collections.abc  # noqa: F401 - for validators
import datetime  # noqa: F401, ICN001 - for validators
import encodings.ascii
import encodings.cp1252
import encodings.idna
import encodings.latin_1
import encodings.utf_16
import encodings.utf_32  # noqa: F401 - for validators: no codec can be imported later
import functools  # noqa: F401 - for validators
import gc
import heapq  # noqa: F401 - for validators: Counter.most_common
import itertools  # noqa: F401 - for validators
import json.decoder  # noqa: F401 - for validators
import math  # noqa: F401 - for validators
import operator  # noqa: F401 - for validators
import os
import re
import signal
import socket
import string  # noqa: F401 - for validators
import struct
import sys
import traceback  # noqa: F401 - for validators
import types
import typing  # noqa: F401 - for validators
import unicodedata  # noqa: F401 - for validators: named characters
import warnings
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from worker.sandbox import lockdown, wire
else:
    # An isolated interpreter looks for modules in the standard library only.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib is not loaded here
    import lockdown
    import wire

    del sys.path[0]

MAX_SAID_CHARS = 4_000
MAX_NAME_CHARS = 80
PAIR = 2
READ_BYTES = 1 << 20
"""Bytes asked of the pipe at once."""
FIRST_READ_BYTES = 1 << 16

_read, _write, _exit = os.read, os.write, os._exit


def receive() -> tuple[bytes, bytes, str, str]:
    """Reads one request: its word, what is asked, and two texts; ends the process at the end of the pipe."""
    data = _read(0, FIRST_READ_BYTES)
    while len(data) < wire.ASK.size or len(data) < wire.ASK.unpack_from(data)[0] + wire.COUNT_BYTES:
        more = _read(0, READ_BYTES)
        if not more:
            _exit(0)
        data += more
    _, word, what, length = wire.ASK.unpack_from(data)
    middle = wire.ASK.size + length
    first = data[wire.ASK.size : middle].decode("utf-8", "surrogatepass")
    return word, what, first, data[middle:].decode("utf-8", "surrogatepass")


def answer(word: bytes, kind: bytes, text: str = "") -> None:
    """Writes one answer."""
    body = text.encode("utf-8", "surrogatepass")
    data = wire.HEAD.pack(wire.HEAD.size - wire.COUNT_BYTES + len(body), word, kind) + body
    while data:
        data = data[_write(1, data) :]


def described(value: object) -> tuple[bytes, str]:  # noqa: PLR0911 - one kind of value a line
    """Makes an answer of what a validator returned."""
    if value is True:
        return wire.TRUE, ""
    if value is False:
        return wire.FALSE, ""
    if type(value) is tuple and len(value) == PAIR and type(value[0]) is bool and isinstance(value[1], str):
        return wire.TRUE_SAID if value[0] else wire.FALSE_SAID, str.__str__(value[1])[:MAX_SAID_CHARS]
    if value is None:
        return wire.NONE, ""
    if type(value) in {int, float}:
        return wire.NUMBER, repr(value)[:MAX_SAID_CHARS]
    if type(value) is str:
        return wire.TEXT, value[:MAX_SAID_CHARS]
    return wire.OTHER, type(value).__name__[:MAX_NAME_CHARS]


def raised(error: BaseException) -> tuple[bytes, str]:
    """Makes an answer of an exception."""
    if isinstance(error, MemoryError):
        return wire.MEMORY, ""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - its own text may raise whatever it likes
        text = type(error).__name__
    return wire.RAISED, text[:MAX_SAID_CHARS]


def call(code: types.CodeType | None, name: str, text: str) -> tuple[bytes, str]:
    """Runs the validators file from its top, then one validator of it: no call finds what another left."""
    names: dict[str, object] = {"__name__": "validators", "__builtins__": builtins}
    try:
        if code is not None:
            exec(code, names)  # noqa: S102 - to run it is what this process is for
        validator = names.get(name)
        if code is None or name == "__builtins__" or not callable(validator):
            return wire.UNKNOWN, ""
        return described(validator(text))
    except BaseException as error:  # noqa: BLE001 - whatever it raises is an answer
        return raised(error)


def search(pattern: str, text: str) -> tuple[bytes, str]:
    """Looks for a pattern anywhere in a text."""
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except MemoryError:
        return wire.MEMORY, ""
    except Exception as error:  # noqa: BLE001 - RecursionError and OverflowError too mean: no pattern
        return wire.BAD_PATTERN, str(error)[:MAX_SAID_CHARS]
    try:
        found = compiled.search(text)
    except BaseException as error:  # noqa: BLE001 - MemoryError and RecursionError
        return raised(error)
    return (wire.NO_MATCH, "") if found is None else (wire.MATCH, found.group())


def serve() -> NoReturn:
    """Answers requests until the pipe ends."""
    code: types.CodeType | None = None
    while True:
        word, what, first, second = receive()
        if what == wire.SEARCH:
            kind, text = search(first, second)
        elif what == wire.CALL:
            kind, text = call(code, first, second)
        else:
            kind, text = wire.DONE, ""
            try:
                code = compile(first, "validators.py", "exec", dont_inherit=True)
            except BaseException as error:  # noqa: BLE001 - whatever the compiler says is an answer
                kind, text = raised(error)
        answer(word, kind, text)


def become_child(parent: int, requests: int, answers: int, *, is_locked: bool) -> NoReturn:
    """Turns a fresh fork into a process that serves; its standard output and error go nowhere."""
    try:
        lockdown.die_with_parent()
        if os.getppid() != parent:
            _exit(0)  # it ended before it could take us with it
        os.dup2(requests, 0)
        os.dup2(answers, 1)
        os.closerange(3, MOST_DESCRIPTORS)
        sys.stdin = None
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        (lockdown.lock if is_locked else lockdown.limit)(MEMORY_BYTES, CPU_S)
        serve()
    finally:
        _exit(1)


def self_test() -> str:
    """Locks a child and lets it try what it must not do; returns why validators cannot be run, or nothing."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        said = "?"
        try:
            probes = lockdown.probes()
            lockdown.lock(MEMORY_BYTES, CPU_S)
            said = ", ".join(name for name, probe in probes.items() if probe())
            said = f"a locked process can still reach: {said}" if said else "locked"
        except BaseException as error:  # noqa: BLE001 - whatever it is, there is no lock
            said = str(error) or type(error).__name__
        finally:
            os.write(theirs, said.encode())
            _exit(0)
    os.close(theirs)
    said = os.read(ours, 4096).decode()
    os.close(ours)
    os.waitpid(child, 0)
    return "" if said == "locked" else said or "the self-test of the lock gave no answer"


def end(child: int) -> int:
    """Kills a child of ours and returns its wait status: the one it had, if it had ended by itself."""
    try:
        os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1]
    except (ProcessLookupError, ChildProcessError):
        return 0


def obey(control: socket.socket) -> None:
    """Does what the worker asks until it is gone."""
    children: set[int] = set()
    zygote = os.getpid()
    try:
        while True:
            data, pipes, _, _ = socket.recv_fds(control, wire.ORDER.size, PAIR)
            if len(data) < wire.ORDER.size:
                return
            order, number = wire.ORDER.unpack(data)
            if order == wire.FORK:
                child = os.fork()
                if child == 0:
                    become_child(zygote, *pipes, is_locked=bool(number))
                children.add(child)
                for pipe in pipes:
                    os.close(pipe)
                control.sendall(wire.ORDER.pack(wire.FORK, child))
            else:
                status = end(number) if number in children else 0
                children.discard(number)
                if order == wire.END:
                    control.sendall(wire.ORDER.pack(wire.END, status))
    except OSError:
        return  # the worker is gone in the middle of a word
    finally:
        for child in children:
            end(child)


def main() -> None:
    """Says whether processes can be locked here, then obeys."""
    global MEMORY_BYTES, CPU_S
    number, MEMORY_BYTES, CPU_S = map(int, sys.argv[1:])
    warnings.simplefilter("ignore")  # nobody reads them, and to show one needs files
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=number) as control:
        said = self_test().encode()
        control.sendall(struct.pack("<I", len(said)) + said)
        gc.collect()
        gc.freeze()  # children then touch, and copy, less of what they share
        obey(control)


MEMORY_BYTES = 512 << 20
CPU_S = 60
MOST_DESCRIPTORS = 64

if __name__ == "__main__":
    main()
