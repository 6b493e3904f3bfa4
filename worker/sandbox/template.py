"""Runs each call of a validators file in a process of its own, forked from one that has compiled the file.

The template compiles the file and executes nothing of it. For each request it forks a process, which locks
itself for good, runs the file from its top and one validator of it, writes its answer into a pipe of its own,
and ends. Only when that process is gone is the answer handed on, so that whatever a call has changed, in the
interpreter or around it, is gone before the next one begins.

Runs in an isolated interpreter beside zygote.py; standard library only.
"""

import builtins
import json
import os
import types
from typing import NoReturn

from worker.sandbox import lockdown, protocol, serving

MAX_NAME_CHARS = 80
MAX_VALUE_CHARS = 1_000_000
MAX_ANSWER_BYTES = 1 << 20
"""More than the longest text that a validator may return; a case that writes more is ended."""
READ_BYTES = 1 << 16
PAIR = 2
NUMBERS = frozenset({int, float})


def serve_calls(cage: lockdown.Cage) -> NoReturn:
    """Answers requests until the pipe ends; `cage` is for the processes of cases."""
    code: types.CodeType | None = None
    while True:
        word, what, first, second = serving.receive()
        if what == protocol.LOAD:
            try:
                code = compile(first, "validators.py", "exec", dont_inherit=True)
            except BaseException as error:  # noqa: BLE001 - any error of the compiler is an answer
                serving.send(serving.framed(word, *serving.raised(error)))
                continue
            first, second = "", ""
        serving.send(_in_own_process(cage, word, code, (what, first, second)))


def _in_own_process(
    cage: lockdown.Cage, word: bytes, code: types.CodeType | None, request: tuple[bytes, str, str]
) -> bytes:
    """Forks, has the fork run a call, waits for its end, and returns the answer that is handed on."""
    ours, theirs = os.pipe()
    case = os.fork()
    if case == 0:
        status = 1
        try:
            os.close(0)  # no case may read the requests of others
            os.dup2(theirs, 1)
            os.close(ours)
            os.close(theirs)
            cage.enter()
            serving.send(serving.framed(word, *_run(code, *request)))
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    data = _read_to_end(ours)
    os.close(ours)
    return _believed(word, data, os.waitpid(case, 0)[1])


def _read_to_end(pipe: int) -> bytes:
    """Reads what a case writes; what is more than an answer may have is left unread."""
    parts = []
    left = MAX_ANSWER_BYTES
    while left > 0:
        more = os.read(pipe, READ_BYTES)
        if not more:
            break
        parts.append(more)
        left -= len(more)
    return b"".join(parts)


def _believed(word: bytes, data: bytes, status: int) -> bytes:
    """Makes the answer that is handed on: the whole one of a process that ended well, or why not."""
    is_headed = len(data) >= protocol.HEAD.size
    length = protocol.HEAD.unpack_from(data)[0] + protocol.COUNT_BYTES if is_headed else protocol.HEAD.size
    if len(data) > length or (
        is_headed and data[protocol.COUNT_BYTES : protocol.COUNT_BYTES + len(word)] != word
    ):
        return serving.framed(word, protocol.FORGED)
    if status or len(data) < length:
        return serving.framed(word, protocol.CRASHED, str(status))
    return data


def _run(code: types.CodeType | None, what: bytes, name: str, text: str) -> tuple[bytes, str]:
    """Runs the file from its top, then one function of it; without a name, the file alone."""
    names: dict[str, object] = {"__name__": "validators", "__builtins__": builtins}
    context: object = None
    try:
        if what != protocol.CALL and name:
            text, encoded = protocol.parted(text)
            context = json.loads(encoded)
        if code is not None:
            exec(code, names)  # noqa: S102 - to run it is what this process is for
        if not name:
            return protocol.DONE, ""
        function = names.get(name)
        if code is None or name == "__builtins__" or not callable(function):
            return protocol.UNKNOWN, ""
        has_context = what != protocol.CALL and takes_context(function)
        returned = function(text, context) if has_context else function(text)
        return _encoded(returned) if what == protocol.TRANSFORM else _described(returned)
    except BaseException as error:  # noqa: BLE001 - whatever it raises is an answer
        return serving.raised(error)


def _encoded(value: object) -> tuple[bytes, str]:
    """Makes an answer of a JSON value."""
    text = json.dumps(value)
    if len(text) > MAX_VALUE_CHARS:
        raise ValueError(f"it returned {len(text)} characters as JSON, at most {MAX_VALUE_CHARS} are read")
    return protocol.VALUE, f"{type(value).__name__} {text}"


def takes_context(function: object) -> bool:
    """Whether a function has a second parameter that must be given, or one that is called `context`.

    >>> takes_context(lambda output: 1), takes_context(lambda output, limit=5: 1)
    (False, False)
    >>> takes_context(lambda output, more: 1), takes_context(lambda output, context=None: 1)
    (True, True)
    """
    if type(function) is not types.FunctionType:
        return False
    count, names = function.__code__.co_argcount, function.__code__.co_varnames
    is_required = count - len(function.__defaults__ or ()) >= PAIR
    return count >= PAIR and (is_required or names[1] == "context")


def _described(value: object) -> tuple[bytes, str]:  # noqa: PLR0911 - one kind of value a line
    """Makes an answer of what a validator or a function of a check returned."""
    most = serving.MAX_SAID_CHARS
    if value is True:
        return protocol.TRUE, ""
    if value is False:
        return protocol.FALSE, ""
    if type(value) is tuple and len(value) == PAIR and type(value[0]) is bool and isinstance(value[1], str):
        return protocol.TRUE_SAID if value[0] else protocol.FALSE_SAID, str.__str__(value[1])[:most]
    if (
        type(value) is tuple
        and len(value) == PAIR
        and type(value[0]) in NUMBERS
        and isinstance(value[1], str)
    ):
        return protocol.NUMBER_SAID, f"{value[0]!r}"[:most] + "\n" + str.__str__(value[1])[:most]
    if value is None:
        return protocol.NONE, ""
    if type(value) in NUMBERS:
        return protocol.NUMBER, repr(value)[:most]
    if type(value) is str:
        return protocol.TEXT, value[:most]
    return protocol.OTHER, type(value).__name__[:MAX_NAME_CHARS]
