"""What the service answers: documents with types, and errors with a code, a sentence and a hint."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import hdrs, web
from msgspec import UNSET, Struct, UnsetType

from producer.http_server import status_of
from producer.serve.chat_packets import UnknownKeysError
from producer.serve.micro_runs import LostTurnsError, ServedTurn
from producer.serve.thread_requests import ConditionError, UnknownThreadError
from shared.errors import ProctorError, RedisFullError, RedisUnreachableError

RETRY_AFTER_S: Final = 1
"""When a caller may try again whose turns were not taken."""
CONFLICTS: Final = frozenset({"etag_conflict", "idempotency_conflict"})
"""Codes of turns that depend on another state of their thread, or of their request."""


class ServiceError(Struct, frozen=True):
    """Why a request has no result."""

    code: str
    message: str
    hint: str = ""
    unrecognized_keys: list[str] | UnsetType = UNSET
    """Keys that the contract does not have."""


class ErrorReply(Struct, frozen=True, omit_defaults=True):
    """What every error answers."""

    error: ServiceError
    ids: list[str] | UnsetType = UNSET
    """Ids of turns that count although their caller waits no more; `GET /v1/turns/ID` has the results."""


class AcceptedReply(Struct, frozen=True):
    """Turns that are decided without their caller."""

    ids: list[str]
    """Where `GET /v1/turns/ID` finds each result."""


_encode: Final = msgspec.json.Encoder().encode


def reply(
    document: Struct | bytes, status: int = 200, *, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Makes a response of a document."""
    body = document if isinstance(document, bytes) else _encode(document)
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


def refused(
    code: str, message: str, status: int, hint: str = "", *, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Makes the response of an error."""
    return reply(ErrorReply(ServiceError(code, message, hint)), status, headers=headers)


class QueueFullError(ProctorError):
    """Too many turns wait for decisions."""

    code = "queue_full"


class DrainingError(ProctorError):
    """The service is about to end and takes nothing more."""

    code = "draining"


_STATUSES: Final[Sequence[tuple[type[ProctorError], int]]] = (
    (QueueFullError, 429),
    (DrainingError, 503),
    (LostTurnsError, 503),
    (UnknownThreadError, 404),
    (ConditionError, 412),
)
"""Statuses of the service's own errors."""
AWAY: Final = ("Redis does not answer, or refuses what it is asked for", "Redis is full")
"""What callers are told of a Redis that cannot be used, and of one that is full; the log has the reason."""
LATER: Final = frozenset({429, 503})
"""Statuses after which a caller may try again."""


def of_error(error: ProctorError) -> web.Response:
    """Makes the response of an error of ours."""
    own = (status for kind, status in _STATUSES if isinstance(error, kind))
    status = next(own, None) or status_of(error)
    headers = {str(hdrs.RETRY_AFTER): str(RETRY_AFTER_S)} if status in LATER else {}
    keys = error.keys if isinstance(error, UnknownKeysError) else UNSET
    message, hint = error.message, error.hint or ""
    if isinstance(error, RedisUnreachableError):  # it names addresses, and runs of others
        message, hint = AWAY[isinstance(error, RedisFullError)], "send it again after a moment"
    document = ErrorReply(ServiceError(error.code, message, hint, unrecognized_keys=keys))
    return reply(document, status, headers=headers)


def of_http(error: web.HTTPException, most_bytes: int) -> web.Response:
    """Makes the response of an error of HTTP itself.

    Args:
        error: as it was raised; ours have a sentence as their reason.
        most_bytes: largest body.
    """
    message, hint, headers = error.reason, "", dict[str, str]()
    match error:
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            message, hint = f"{error.method} is not taken here", f"send {allowed}"
            headers[str(hdrs.ALLOW)] = allowed
        case web.HTTPNotFound():
            message, hint = "there is no such path", "GET /openapi.json describes all"
        case web.HTTPRequestEntityTooLarge():
            message, hint = f"the body has more than {most_bytes:,} bytes", "send less at a time"
        case _:
            pass
    return refused(HTTPStatus(error.status).name.lower(), message, error.status, hint, headers=headers)


def of_turn(turn: ServedTurn) -> web.Response:
    """Makes the response of a single turn: its result, with the etag of its thread."""
    if turn.problem is None:
        return reply(bytes(turn.result))
    status = 409 if turn.problem.code in CONFLICTS else 422
    return refused(turn.problem.code, turn.problem.message, status)


def of_turns(turns: Sequence[ServedTurn]) -> web.Response:
    """Makes the response of several turns, in their order."""
    parts = [
        bytes(turn.result)
        if turn.problem is None
        else _encode(ErrorReply(ServiceError(turn.problem.code, turn.problem.message)))
        for turn in turns
    ]
    return reply(b'{"results":[' + b",".join(parts) + b"]}")
