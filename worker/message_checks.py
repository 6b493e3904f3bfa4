"""Rejects messages that are no wake-ups before Celery handles them, with one line of log each.

Everyone with access to the broker can write to a queue. A message that Celery or kombu cannot parse (no JSON,
no headers, an ETA that is no time) would end the whole worker.

    JSON         `worker.transport`: the text of a message in a Redis list
    envelope     `why_unreadable`: what kombu needs to make a message of it, also of remote control
    wake-up      `why_rejected`: task, arguments, and none of Celery's features that we do not use
"""

import logging
from base64 import b64decode
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, cast

LONGEST_BODY: Final = 64 * 1024
"""Bytes of a wake-up's body; ours have some hundreds."""
LONGEST_REASON: Final = 200
"""Characters of a reason in the log: an error may quote the message."""
ENVELOPE: Final[Mapping[str, type]] = {"body": str, "headers": dict, "properties": dict}
"""What every message has, and of which type."""
PROPERTIES: Final[Mapping[str, type]] = {"delivery_tag": str, "delivery_info": dict}
"""What a message's properties have."""
ARGUMENTS: Final[Mapping[str, type]] = {"run": str, "chunk": str, "items": int, "first": str}
"""Arguments of our tasks; the first two are required."""
REQUIRED: Final = ("run", "chunk")
UNUSED: Final = ("eta", "expires", "chord", "callbacks", "errbacks", "chain", "compression")
"""Features of Celery that no wake-up uses."""
UNUSED_REQUESTED: Final = "it asks for something that wake-ups do not use"
NO_LIMITS: Final = [None, None]
"""Hard and soft time limit of a wake-up."""

logger = logging.getLogger(__name__)


def why_unreadable(raw: object) -> str:
    """Returns why kombu could not parse a message; empty if it can.

    >>> why_unreadable([1])
    'it is no JSON object'
    >>> why_unreadable({"body": "", "headers": {}, "properties": {}})
    'its properties have no delivery_tag'
    """
    return next(_flaws_of_envelope(raw), "")


def _flaws_of_envelope(raw: object) -> Iterator[str]:
    """Yields flaws; later checks assume that the earlier ones passed, so only the first is safe to read."""
    if not isinstance(raw, dict):
        yield "it is no JSON object"
    content: dict[str, Any] = cast("dict[str, Any]", raw)
    for name, type_ in ENVELOPE.items():
        if not isinstance(content.get(name), type_):
            yield f"it has no {name}"
    properties = content["properties"]
    for name, type_ in PROPERTIES.items():
        if not isinstance(properties.get(name), type_):
            yield f"its properties have no {name}"
    info, encoding = properties["delivery_info"], properties.get("body_encoding")
    if not all(isinstance(info.get(name), str) for name in ("exchange", "routing_key")):
        yield "its delivery_info has no exchange and routing_key"
    if content["headers"].get("compression"):
        yield "it is compressed"
    if encoding not in {None, "base64"} or not _is_base64(content["body"] if encoding else ""):
        yield "its body is not base64"


def _is_base64(text: str) -> bool:
    try:
        b64decode(text)
    except ValueError:
        return False
    return True


def why_rejected(message: Any, tasks: Collection[str]) -> str:
    """Returns why a message is no wake-up; empty if it is one.

    Args:
        message: kombu's.
        tasks: names of the tasks of this worker.
    """
    return next(_flaws_of_wake(message, tasks), "")


def _flaws_of_wake(message: Any, tasks: Collection[str]) -> Iterator[str]:
    """Yields flaws; later checks assume that the earlier ones passed, so only the first is safe to read."""
    headers = message.headers if isinstance(message.headers, dict) else {}
    if headers.get("task") not in tasks:
        yield "its task is none of ours"
    if not isinstance(headers.get("id"), str):
        yield "its task has no id"
    if any(headers.get(name) for name in UNUSED) or headers.get("timelimit", NO_LIMITS) != NO_LIMITS:
        yield UNUSED_REQUESTED
    if message.content_type != "application/json":
        yield f"its content is {message.content_type!r}, not JSON"
    if len(message.body or "") > LONGEST_BODY:
        yield f"its body is longer than {LONGEST_BODY} bytes"
    try:
        content = message.decode()
    except Exception as error:  # noqa: BLE001 - it may be anything, and fail to be decoded in any way
        yield f"it cannot be decoded: {error}"
    else:
        yield _why_no_wake(content)


def _why_no_wake(content: object) -> str:
    """Looks at the arguments of a task.

    >>> _why_no_wake([[], {"run": "r1", "chunk": "0"}, {}])
    ''
    >>> _why_no_wake([["r1"], {}, {}])
    'it has other arguments than wake-ups'
    """
    match content:
        case [[], dict(given), dict(embedded)]:
            pass
        case _:
            return "it has other arguments than wake-ups"
    is_typed = all(name in ARGUMENTS and isinstance(value, ARGUMENTS[name]) for name, value in given.items())
    if not is_typed or any(not given.get(name) for name in REQUIRED):
        return "it has other arguments than wake-ups"
    if any(embedded.get(name) for name in UNUSED):
        return UNUSED_REQUESTED
    return ""


def log_rejected(reason: str, queue: str) -> None:
    """Writes the one line about a message that is no wake-up."""
    logger.warning("message rejected", extra={"reason": reason[:LONGEST_REASON], "queue": queue})
