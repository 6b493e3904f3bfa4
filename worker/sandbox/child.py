"""Sends requests to a child of the zygote and checks its answers: within a deadline, and never forged."""

import os
import re
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple

from worker.sandbox import protocol
from worker.sandbox.sandbox_errors import SandboxError, SandboxReason, UnusableError
from worker.sandbox.zygote_client import ForkedChild

MAX_FRAME_BYTES: Final = 8 << 20
"""A longer answer is not read."""
READ_BYTES: Final = 1 << 16
WORD_BYTES: Final = 8
_STATUS: Final = re.compile(r"[0-9]{1,5}")
"""A wait status, as far as the text is no forgery."""
GONE: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL


class ChildAnswer(NamedTuple):
    """The answer of a child."""

    kind: bytes
    """One of the kinds that protocol.py lists."""
    text: str
    """What comes with the kind."""


class SandboxChild:
    """A process that runs patterns or validators.

    Args:
        pipes: as it was forked.
    """

    def __init__(self, pipes: ForkedChild) -> None:
        self._pipes = pipes
        self.uses = 0
        """Requests it answered."""
        self.is_ended = False
        """Whether it was ended."""
        self._readable = select.poll()
        self._readable.register(pipes.answers, select.POLLIN)

    @property
    def is_stale(self) -> bool:
        """Whether it is known to be gone, together with its zygote."""
        return self._pipes.zygote.is_lost

    def request(self, what: bytes, first: str, second: str, limit_s: float) -> ChildAnswer:
        """Sends one request; after any failure the child is ended.

        Raises:
            SandboxError: there is no answer; `timeout`, `crash`, `forged` or `too_large`.
            ZygoteLostError: it was ended together with its zygote.
        """
        deadline = monotonic() + limit_s
        word = os.urandom(WORD_BYTES)
        name, text = first.encode("utf-8", "surrogatepass"), second.encode("utf-8", "surrogatepass")
        size = protocol.ASK.size - protocol.COUNT_BYTES + len(name) + len(text)
        try:
            self._write(protocol.ASK.pack(size, word, what, len(name)) + name + text, deadline, limit_s)
            answer = self._answer(word, deadline, limit_s)
        except BaseException:
            self.end()
            raise
        self.uses += 1
        return answer

    def end(self) -> None:
        """Ends the process, without waiting for it; a second call does nothing."""
        if not self.is_ended:
            self._close()
            self._pipes.zygote.drop(self._pipes.pid)

    def _close(self) -> None:
        self.is_ended = True
        os.close(self._pipes.requests)
        os.close(self._pipes.answers)

    def _write(self, data: bytes, deadline: float, limit_s: float) -> None:
        left = memoryview(data)
        while True:
            try:
                left = left[os.write(self._pipes.requests, left) :]
            except BlockingIOError:
                self._wait_to_write(deadline, limit_s)
            except BrokenPipeError:
                raise self._ended() from None
            if not left:
                return

    def _wait_to_write(self, deadline: float, limit_s: float) -> None:
        both = select.poll()
        both.register(self._pipes.requests, select.POLLOUT)
        both.register(self._pipes.answers, select.POLLIN)
        ready = dict(both.poll(max(0.0, deadline - monotonic()) * 1000))
        if not ready:
            raise SandboxError(
                SandboxReason.CRASH, f"its process did not read its request within {limit_s:g} s"
            )
        if ready.get(self._pipes.answers, 0) & select.POLLIN:
            raise _forged()  # bytes before the request
        if ready.get(self._pipes.answers, 0) & GONE:
            raise self._ended()

    def _answer(self, word: bytes, deadline: float, limit_s: float) -> ChildAnswer:
        data = b""
        while len(data) < protocol.HEAD.size:
            data += self._read_some(deadline, limit_s)
        length, reply, kind = protocol.HEAD.unpack_from(data)
        if reply != word or length < protocol.HEAD.size - protocol.COUNT_BYTES:
            raise _forged()
        if length > MAX_FRAME_BYTES:
            raise SandboxError(
                SandboxReason.TOO_LARGE, f"it answered {length:,} bytes of at most {MAX_FRAME_BYTES:,}"
            )
        missing = length + protocol.COUNT_BYTES - len(data)
        parts = [data[protocol.HEAD.size :]]
        while missing > 0:
            parts.append(self._read_some(deadline, limit_s))
            missing -= len(parts[-1])
        if missing < 0:
            raise _forged()
        try:
            return ChildAnswer(kind, b"".join(parts).decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            raise _forged() from None

    def _read_some(self, deadline: float, limit_s: float) -> bytes:
        if not self._readable.poll(max(0.0, deadline - monotonic()) * 1000):
            raise _too_slow(limit_s)
        more = os.read(self._pipes.answers, READ_BYTES)
        if not more:
            raise self._ended()
        return more

    def _ended(self) -> SandboxError:
        """Why a process closed its pipes: the zygote has its wait status, unless it has ended too."""
        self._close()
        status = self._pipes.zygote.end(self._pipes.pid)
        return SandboxError(SandboxReason.CRASH, f"its process {ending(status)}")


def ending(status: int) -> str:
    """Describes how a process ended.

    >>> ending(11), ending(256 * 3)
    ('crashed (SIGSEGV)', 'ended itself (exit 3)')
    """
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGKILL:
        return "was killed, or gave up its pipes"
    if number:
        return f"crashed ({_signal_name(number)})"
    if os.WIFEXITED(status):
        return f"ended itself (exit {os.WEXITSTATUS(status)})"
    return f"ended (status {status})"


def _signal_name(number: int) -> str:
    """Names a signal; most of the real-time ones have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _too_slow(limit_s: float) -> SandboxError:
    return SandboxError(SandboxReason.TIMEOUT, f"no answer within {limit_s:g} s")


def _forged() -> SandboxError:
    return SandboxError(SandboxReason.FORGED, "it wrote what is no answer where answers are written")


def _returned_object(name: str) -> object:
    """Something whose type has this name: all that is reported of an object that a validator returned.

    >>> type(_returned_object("Match")).__name__
    'Match'
    """
    return type(name if name.isidentifier() else "object", (), {})()


def _number(text: str) -> object:
    """A number that a validator returned."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return _returned_object("number")


def _number_said(text: str) -> object:
    r"""A number with a reason.

    >>> _number_said("0.5\nhalf of it")
    (0.5, 'half of it')
    """
    number, _, reason = text.partition("\n")
    return _number(number), reason


RETURNED: Final[dict[bytes, Callable[[str], object]]] = {
    protocol.TRUE: lambda _: True,
    protocol.FALSE: lambda _: False,
    protocol.TRUE_SAID: lambda text: (True, text),
    protocol.FALSE_SAID: lambda text: (False, text),
    protocol.NONE: lambda _: None,
    protocol.NUMBER: _number,
    protocol.NUMBER_SAID: _number_said,
    protocol.TEXT: lambda text: text,
    protocol.OTHER: _returned_object,
}
"""What the kinds of answers stand for."""


def failure_of(answer: ChildAnswer, what: str) -> SandboxError:
    """The error that an answer means."""
    match answer.kind:
        case protocol.RAISED:
            return SandboxError(SandboxReason.EXCEPTION, answer.text)
        case protocol.MEMORY:
            return SandboxError(SandboxReason.MEMORY, f"{what} needs more memory than it may have")
        case protocol.UNKNOWN:
            reply = f"the validators file has no function {what}"
            return UnusableError(
                SandboxReason.UNKNOWN_VALIDATOR, reply, hint="define it, or correct the case"
            )
        case protocol.BAD_PATTERN:
            return UnusableError(SandboxReason.BAD_PATTERN, f"no regular expression: {answer.text}")
        case protocol.CRASHED if _STATUS.fullmatch(answer.text):
            return SandboxError(SandboxReason.CRASH, f"its process {ending(int(answer.text))}")
        case _:
            return SandboxError(SandboxReason.FORGED, "it wrote what is no answer where answers are written")
