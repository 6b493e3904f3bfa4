"""Requests to `proctor serve`, one at a time: decisions, or errors that say what came instead."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from socket import SHUT_RDWR, socket
from time import time
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from proctor.errors import ProctorError

SHAPE: Final = {
    "decision": str,
    "rule": int,
    "reason": str,
    "etag": str,
    "memento": dict,
    "peakGuardrailActive": bool,
}
"""Keys of a decision, and their types."""
SHOWN_BYTES: Final = 100
"""Of an answer that is none of the service."""


class TurnError(ProctorError):
    """A turn was not decided; `code` says why.

    It is one of the service, such as `queue_full`, or `unreachable` (no answer, or half of one),
    `unexpected_answer` (not one of `proctor serve`), `deadline`, or `closed`.
    """


@dataclass(frozen=True)
class Decision:
    """What was decided about a turn, and its thread after it."""

    result: Mapping[str, Any] = field(repr=False)
    """All of it, as the service answers."""

    @property
    def decision(self) -> str:
        """`must`, `should` or `skip`."""
        return str(self.result["decision"])

    @property
    def rule(self) -> int:
        """Number of the rule that decided, from 1 to 6."""
        return int(self.result["rule"])

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        return str(self.result["reason"])

    @property
    def etag(self) -> str:
        """State of the thread after the turn, for `thread_memento_etag`."""
        return str(self.result["etag"])

    @property
    def memento(self) -> Mapping[str, Any]:
        """The summary of the thread after the turn."""
        found: Mapping[str, Any] = self.result["memento"]
        return found

    @property
    def response(self) -> str | None:
        """What the model of `proctor serve --model` answered; None where it was not asked."""
        found: str | None = self.result.get("response")
        return found

    @property
    def is_frozen(self) -> bool:
        """Whether the peak guardrail kept the summary as it was."""
        return bool(self.result["peakGuardrailActive"])


class ServiceAnswer(NamedTuple):
    """What came to a request."""

    status: int
    document: object
    """Its JSON; None where it is something else."""
    error: TurnError
    """What a turn ends with to which the answer has no decision."""
    retry_after_s: float = 0.0

    def outcomes(self, turns: int) -> list[Decision | TurnError]:
        """Returns how each of so many turns ended."""
        match self.document:
            case {"results": [*found]} if self.status == 200 and len(found) == turns:  # noqa: PLR2004 - HTTP's OK
                return [outcome_of(each) or self.error for each in found]
            case _:
                return [self.error] * turns


class TurnService:
    """The connection of one thread to a service.

    Args:
        url: of the service.
        token: of the caller.

    Raises:
        ProctorError: the URL is not one of HTTP, or a header cannot have the token.
    """

    def __init__(self, url: str, token: str) -> None:
        # Not by the thread that connects: if its process is forked meanwhile, the child never gets the lock.
        from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - start-up: a third of the package

        "".encode("idna")
        place = _place_of(url)
        if place is None:
            raise ProctorError(f"{url!r} is no URL of a service", hint="such as http://127.0.0.1:7358")
        if not token.strip().isascii() or not token.strip().isprintable():
            raise ProctorError("the token has characters that a header cannot have")
        self.url = f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path}/v1/turns"
        self._path = f"{place.path}/v1/turns"
        self._headers = {"Authorization": f"Bearer {token.strip()}", "Content-Type": "application/json"}
        make = HTTPSConnection if place.scheme == "https" else HTTPConnection
        self._connection = make(place.hostname or "", place.port)
        self._socket: socket | None = None

    def ask(self, turns: Sequence[bytes], within_s: float) -> ServiceAnswer:
        """Makes one request; a connection that broke is made anew by the next one.

        Args:
            turns: as JSON.
            within_s: how long connecting, sending and each piece of the answer may take.
        """
        body = b'{"turns":[' + b",".join(turns) + b"]}"
        is_new = self._connection.sock is None
        try:
            self._connection.timeout = within_s
            if is_new:
                self._connection.connect()
            self._socket = self._connection.sock
            self._socket.settimeout(within_s)
            self._connection.request("POST", self._path, body, self._headers)
            response = self._connection.getresponse()
            retry_after = response.getheader("Retry-After")
            return read_answer(self.url, response.status, retry_after, response.read())
        except Exception as broken:  # noqa: BLE001 - http.client fails in many ways at what is not HTTP
            self._connection.close()
            if isinstance(broken, ConnectionError) and not is_new:  # the service had closed it meanwhile
                return self.ask(turns, within_s)
            why = getattr(broken, "strerror", None) or repr(broken)
            error = TurnError(f"{self.url}: {why}", hint="is the service up?", code="unreachable")
            return ServiceAnswer(503, None, error)

    def interrupt(self) -> None:
        """Ends a request of another thread."""
        if self._socket is not None:
            with suppress(OSError):  # it is closed
                self._socket.shutdown(SHUT_RDWR)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def _place_of(url: str) -> SplitResult | None:
    """Takes a URL of HTTP apart; None if it is another."""
    with suppress(ValueError):  # of a port, or of brackets
        found = urlsplit(url.rstrip("/"))
        if found.scheme in {"http", "https"} and found.hostname and found.port != 0:
            return found
    return None


def read_answer(where: str, status: int, retry_after: str | None, body: bytes) -> ServiceAnswer:
    """Reads what came to a request.

    Args:
        where: the URL.
        status: of HTTP.
        retry_after: the header of that name.
        body: in full.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    error = outcome_of(document)
    if not isinstance(error, TurnError):
        said = body[:SHOWN_BYTES].decode(errors="replace") + ("…" if len(body) > SHOWN_BYTES else "")
        error = TurnError(
            f"{where} answered {status} with {said!r}, as `proctor serve` never does",
            hint="is this its URL?",
            code="unexpected_answer",
        )
    return ServiceAnswer(status, document, error, read_retry_after(retry_after or ""))


def outcome_of(found: object) -> Decision | TurnError | None:
    """Reads the decision of a turn, or why there is none; None if it is neither.

    >>> outcome_of({"error": {"code": "input", "message": "is empty"}}), outcome_of({"decision": "skip"})
    (TurnError('is empty'), None)
    """
    match found:
        case {"error": {"message": str(message), **more}}:
            return TurnError(message, hint=str(more.get("hint", "")), code=str(more.get("code", "")))
        case dict() if all(isinstance(found.get(key), kind) for key, kind in SHAPE.items()):
            return Decision(found)
        case _:
            return None


def read_retry_after(header: str) -> float:
    """Reads how many seconds a service asks to wait: a number, or until a date; 0 where it does not say.

    >>> read_retry_after("2"), read_retry_after("soon"), read_retry_after("Thu, 01 Jan 1970 00:00:00 GMT")
    (2.0, 0.0, 0.0)
    """
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - start-up: a tenth of the package

    if header.isdecimal():
        return float(header)
    try:
        return max(parsedate_to_datetime(header).timestamp() - time(), 0.0)
    except ValueError:
        return 0.0
