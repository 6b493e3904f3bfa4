"""Says what the answers of a child stand for: what a validator returned, or why there is nothing."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from worker.sandbox import wire
from worker.sandbox.child import Answer, ending
from worker.sandbox.failures import Reason, SandboxError, UnusableError

_STATUS: Final = re.compile(r"[0-9]{1,5}")
"""A wait status, as far as the text is no forgery."""


def _returned_object(name: str) -> object:
    """Something whose type has this name: all that is told of an object that a validator made up.

    >>> type(_returned_object("Match")).__name__
    'Match'
    """
    return type(name if name.isidentifier() else "object", (), {})()


def _number(text: str) -> object:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return _returned_object("number")


RETURNED: Final[dict[bytes, Callable[[str], object]]] = {
    wire.TRUE: lambda _: True,
    wire.FALSE: lambda _: False,
    wire.TRUE_SAID: lambda text: (True, text),
    wire.FALSE_SAID: lambda text: (False, text),
    wire.NONE: lambda _: None,
    wire.NUMBER: _number,
    wire.TEXT: lambda text: text,
    wire.OTHER: _returned_object,
}
"""What the kinds of answers stand for."""


def failure_of(answer: Answer, what: str) -> SandboxError:
    """The error that an answer means."""
    match answer.kind:
        case wire.RAISED:
            return SandboxError(Reason.EXCEPTION, answer.text)
        case wire.MEMORY:
            return SandboxError(Reason.MEMORY, f"{what} needs more memory than it may have")
        case wire.UNKNOWN:
            said = f"the validators file has no function {what}"
            return UnusableError(Reason.UNKNOWN_VALIDATOR, said, hint="define it, or correct the case")
        case wire.BAD_PATTERN:
            return UnusableError(Reason.BAD_PATTERN, f"no regular expression: {answer.text}")
        case wire.CRASHED if _STATUS.fullmatch(answer.text):
            return SandboxError(Reason.CRASH, f"its process {ending(int(answer.text))}")
        case _:
            return SandboxError(Reason.FORGED, "it wrote what is no answer where answers are written")
