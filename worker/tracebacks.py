"""Renders exceptions for logs: place and type, each cause once, and no messages that may quote content.

A `ValueError` of a parser holds what it could not parse, which may be a prompt or an answer. So a message is
written only of exceptions that report on infrastructure: the system's, Redis', the broker's, and our own.
"""

import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from pathlib import PurePath
from typing import Any, Final

from shared.errors import ProctorError

MOST_FRAMES: Final = 30
"""Frames of one exception that are written: the innermost."""
REMEMBERED: Final = 256
"""Causes whose traceback was written; the oldest are dropped."""
OPEN_MODULES: Final = frozenset({"redis", "kombu", "amqp", "celery"})
"""Packages whose exceptions never quote content."""


class Tracebacks:
    """A structlog processor that turns `exc_info` into text.

    The first line of a cause gets its traceback as `exception`; later ones name it by `error` and `at`.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Replaces `exc_info` by `error`, `at` and, once for each cause, `exception`."""
        event.pop("stack_info", None)
        error = _exception(event.pop("exc_info", None))
        if error is None:
            return event
        event["error"] = type(error).__qualname__
        event.setdefault("reason", message_of(error))
        event["at"] = place_of(error)
        if not event["reason"]:
            del event["reason"]
        if self._is_new(tuple(f"{type(each).__qualname__} {place_of(each)}" for each in chain_of(error))):
            event["exception"] = "\n".join(lines_of(error))
        return event

    def _is_new(self, cause: tuple[str, ...]) -> bool:
        with self._lock:
            is_new = cause not in self._seen
            self._seen[cause] = None
            self._seen.move_to_end(cause)
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return is_new


def message_of(error: BaseException) -> str:
    """Returns an exception's message, unless it may quote content.

    >>> message_of(OSError(28, "no space left")), message_of(ValueError("the user's words"))
    ('[Errno 28] no space left', '')
    """
    module = type(error).__module__
    is_ours = isinstance(error, ProctorError) and module.startswith("shared.")
    is_open = isinstance(error, OSError) and not isinstance(error, UnicodeError)
    return str(error) if is_ours or is_open or module.partition(".")[0] in OPEN_MODULES else ""


def place_of(error: BaseException) -> str:
    """Names the line that raised; empty for an exception that was never raised.

    >>> place_of(ValueError())
    ''
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return ""
    frame, line = frames[-1]
    path = PurePath(frame.f_code.co_filename)
    return f"{path.parent.name}/{path.name}:{line}"


def chain_of(error: BaseException) -> list[BaseException]:
    """Lists an exception and what it came of, the root cause first."""
    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in chain:
        chain.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return chain[::-1]


def lines_of(error: BaseException) -> Iterator[str]:
    """Writes a traceback without values: frames and types, and the messages that `message_of` allows."""
    for place, each in enumerate(chain_of(error)):
        if place:
            yield "which led to:"
        yield "Traceback (most recent call last):"
        frames = traceback.StackSummary.extract(traceback.walk_tb(each.__traceback__))
        for text in traceback.StackSummary.from_list(frames[-MOST_FRAMES:]).format():
            yield from text.rstrip("\n").splitlines()
        message = message_of(each)
        yield f"{type(each).__module__}.{type(each).__qualname__}" + (f": {message}" if message else "")


def _exception(exc_info: Any) -> BaseException | None:
    """Finds the exception of what a logging call gave as `exc_info`."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1] if isinstance(exc_info[1], BaseException) else None
    return sys.exc_info()[1] if exc_info else None
