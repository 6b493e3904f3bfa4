"""What the API's reply to one query amounts to: an answer that can be judged, or a failure with its text.

The client that sends a query handles sockets and timeouts; this file implements the rules of the harness
specification for each way it can end. The texts are part of the contract.

>>> read_reply(status_code=503, body=b"try later", latency_ms=12).as_document()
{'response': None, 'latency_ms': 12, 'status_code': 503, 'error': 'try later'}
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.codecs.http_bodies import json_of_body, text_of_body
from shared.codecs.json_pointers import at
from shared.contracts.query_vocabulary import REQUEST_TIMEOUT_S
from shared.upstream.failure_reasons import (
    FIRST_SERVER_ERROR,
    OK,
    TOO_MANY_REQUESTS,
    FailureReason,
)
from worker.queries.fields import DOCUMENT_FIELDS, FieldMap, in_document_form

NOT_WRONG: Final[tuple[Any, ...]] = (None, False, "", [], {})
"""Values of a reply where a mapping expects an error, when nothing went wrong."""
ERROR_BODY_CHARS: Final = 200
"""How much of a body becomes the error text."""
_QUOTED_BYTES: Final = 16_384
"""Bytes of a body that become part of an error: secrets are found in it before it is cut."""
MAX_REPLY_BYTES: Final = 1 << 20
"""A larger body is no answer; the client stops reading one byte after it."""
DOCUMENT_WORDS: Final[Mapping[FailureReason, str]] = {
    FailureReason.RATE_LIMITED: "Rate limited (429)",
    FailureReason.TIMEOUT: "Timeout after {timeout_s:g}s",
    FailureReason.UNREACHABLE: "Connection refused - backend not running on {api_url}",
    FailureReason.CONNECTION_LOST: "Connection lost before the answer was complete",
}
"""The specification's texts; of other failures the text says what came, or what is wrong."""
MAX_DEPTH: Final = 256
"""Deeper JSON is no answer: every reader after us would have to survive it too."""


@dataclass(frozen=True, slots=True)
class Reply:
    """How one send of one query ended."""

    response: dict[str, Any] | None
    """The answer, in the specification's form; None when there is none."""
    latency_ms: int
    """Measured by the client, whole milliseconds."""
    status_code: int
    """HTTP status; 0 when no reply came."""
    error: str | None = None
    """The documented text; None when there is an answer."""
    failure: FailureReason | None = None
    """Why there is no answer."""

    @property
    def ends_run(self) -> bool:
        """Whether the specification stops the whole run here, with partial results."""
        return self.failure is not None and self.failure.ends_queries

    @property
    def code(self) -> str:
        """The item's error code; empty when there is an answer."""
        return "" if self.failure is None else self.failure.api_code

    def as_document(self) -> dict[str, Any]:
        """Returns the four keys of `send_query`."""
        return {
            "response": self.response,
            "latency_ms": self.latency_ms,
            "status_code": self.status_code,
            "error": self.error,
        }


def read_reply(
    *,
    status_code: int,
    body: bytes,
    latency_ms: int,
    fields: FieldMap = DOCUMENT_FIELDS,
    charset: str | None = "",
    scrub: Callable[[str], str] = str,
    error_at: str = "",
) -> Reply:
    """Reads a complete HTTP reply.

    Args:
        status_code: HTTP status.
        body: the decompressed body, cut by the client after `MAX_REPLY_BYTES` + 1.
        latency_ms: from sending to the last byte.
        fields: where this API keeps what the specification calls answer, sources, and so on.
        charset: as the reply declares it.
        scrub: takes secrets out of a text that becomes part of an error.
        error_at: JSON pointer to what is there only when something went wrong; empty: none.

    >>> read_reply(status_code=200, body=b'{"answer": "Yes."}', latency_ms=3).response
    {'answer': 'Yes.'}
    >>> read_reply(status_code=200, body=b"<html>", latency_ms=3).error
    'Invalid response body (not JSON): <html>'
    """
    if status_code == TOO_MANY_REQUESTS:
        return failed_reply(FailureReason.RATE_LIMITED, latency_ms, status_code=status_code)
    if status_code != OK:
        text = scrub(text_of_body(body[:_QUOTED_BYTES], charset))[:ERROR_BODY_CHARS]
        error = text if text.strip() else f"HTTP {status_code} with an empty body"
        failure = FailureReason.SERVER_ERROR if status_code >= FIRST_SERVER_ERROR else FailureReason.REFUSED
        return Reply(None, latency_ms, status_code, error, failure)
    if len(body) > MAX_REPLY_BYTES:
        text = f"Response body larger than {MAX_REPLY_BYTES // 1024} KiB"
        return Reply(None, latency_ms, status_code, text, FailureReason.TOO_LARGE)
    try:
        parsed = _parsed(body, charset)
        if error_at and (wrong := at(parsed, error_at)) not in NOT_WRONG:
            text = scrub(wrong if isinstance(wrong, str) else json.dumps(wrong))[:ERROR_BODY_CHARS]
            return Reply(None, latency_ms, status_code, text, FailureReason.SERVER_ERROR)
        response = in_document_form(parsed, fields)
        why = f"no {fields.answer}"
    except ValueError as error:
        response, why = None, str(error)
    if response is None:
        shown = scrub(text_of_body(body[:_QUOTED_BYTES], charset))
        text = "Invalid response body" + (f" ({why}): {_line(shown)}" if shown.strip() else " (empty)")
        return Reply(None, latency_ms, status_code, text, FailureReason.INVALID_REPLY)
    return Reply(response, latency_ms, status_code)


def _line(text: str) -> str:
    """Puts the start of a text on one line."""
    return " ".join(text.split())[:ERROR_BODY_CHARS]


def failed_reply(
    reason: FailureReason,
    latency_ms: int,
    *,
    status_code: int = 0,
    why: str = "",
    api_url: str = "",
    timeout_s: float = REQUEST_TIMEOUT_S,
) -> Reply:
    """Reports why there is no answer, in the specification's words unless there is more to say.

    Args:
        reason: why.
        latency_ms: measured by the client, until this was known.
        status_code: HTTP status; 0 when no reply came.
        why: what to say instead; needed of reasons for which the specification has no words.
        api_url: of the API.
        timeout_s: limit of a send.

    >>> failed_reply(FailureReason.UNREACHABLE, 1, api_url="http://localhost:3000").error
    'Connection refused - backend not running on http://localhost:3000'
    >>> failed_reply(FailureReason.TIMEOUT, 30004).error
    'Timeout after 30s'
    """
    error = why or DOCUMENT_WORDS[reason].format(api_url=api_url, timeout_s=timeout_s)
    return Reply(None, latency_ms, status_code, error, reason)


def _parsed(body: bytes, charset: str | None) -> Any:
    """Parses JSON.

    Raises:
        ValueError: it is none, or cannot be handed on.
    """
    try:
        value = json_of_body(body, charset)
    except ValueError:
        raise ValueError("not JSON") from None
    may_be_deep = body.count(b"[") + body.count(b"{") > MAX_DEPTH
    if may_be_deep and _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Returns whether a value nests deeper than so many levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(entry, levels - 1) for entry in inner)
