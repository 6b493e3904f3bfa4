"""Answers a repeated `clientRequestId` with its first result, and refuses it for other content.

Ids are unique in a namespace. Only decided turns are stored: a refused turn may be sent again.
"""

import hashlib
import json
import re
from collections.abc import Iterable, MutableMapping
from typing import Final

import msgspec

from shared.codecs.turn_batches import DUPLICATE, unpack_batch
from worker.breakpoint.orchestrator import Refusal
from worker.breakpoint.turn_wire import WireTurn, decode_turns

IDEMPOTENCY_CONFLICT: Final = "idempotency_conflict"

_KEY: Final = b"clientRequestId"
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[4-7]")
"""JSON allows the letters of the key to be written as escapes."""


CodedLine = tuple[str, bytes]
"""The result of a turn: its code as in `shared.codecs.turn_batches`, and the JSON document of its result."""


class _StoredRequest(msgspec.Struct, gc=False):
    """The stored form of an answered request."""

    content: str
    item: str
    code: str
    line: msgspec.Raw


_encode: Final = msgspec.json.Encoder().encode
_decode_stored: Final = msgspec.json.Decoder(_StoredRequest).decode


class Requests:
    """Answered requests of a namespace, restricted to those that the current turns refer to."""

    def __init__(self, known: MutableMapping[str, bytes]) -> None:
        self._known = known
        self.new: list[tuple[str, bytes]] = []

    def find(self, turn: WireTurn, item: str) -> CodedLine | Refusal | None:
        """Returns the earlier answer to a repeated request.

        Args:
            turn: a turn with a `clientRequestId`.
            item: the item of the turn; the item that was answered first is no duplicate of itself.

        Returns:
            The first answer, flagged as a duplicate; a refusal for other content; or None if the id is new.
        """
        name = turn.client_request_id or ""
        value = self._known.get(name)
        if value is None:
            return None
        first = _decode_stored(value)
        if first.content != content_digest(turn):
            return Refusal(IDEMPOTENCY_CONFLICT, f"clientRequestId {name[:80]!r} was used for other content")
        flag = "" if first.item == item else DUPLICATE
        return first.code + flag, bytes(first.line)

    def store(self, turn: WireTurn, item: str, answer: CodedLine) -> None:
        """Stores the first answer to a turn with a `clientRequestId`."""
        name = turn.client_request_id or ""
        code, line = answer
        value = _encode(_StoredRequest(content_digest(turn), item, code, msgspec.Raw(line)))
        self._known[name] = value
        self.new.append((name, value))


def request_ids(payloads: Iterable[bytes]) -> set[str]:
    r"""Finds the `clientRequestId`s in batches, at next to no cost when there are none.

    >>> request_ids([b'0\n{"threadId":"t","message":"hi","clientRequestId":"c1"}'])
    {'c1'}
    """
    found: set[str] = set()
    for payload in payloads:
        if _KEY in payload or (b"\\" in payload and _ESCAPED_LETTER.search(payload)):
            found.update(
                turn.client_request_id or "" for turn in decode_turns(unpack_batch(payload)[1]) if turn
            )
    return found - {""}


def content_digest(turn: WireTurn) -> str:
    """Returns a digest of a turn's content, independent of key order and white space.

    The time (`ts`) and the token (`thread_memento_etag`) are not part of it: a client that repeats a request
    may send a new time and a newer token.
    """
    meta = json.dumps(json.loads(bytes(turn.meta)), sort_keys=True).encode() if turn.meta else b""
    bare = msgspec.structs.replace(turn, meta=msgspec.Raw(b"null"), ts=None, thread_memento_etag=None)
    content = _encode(bare)
    return hashlib.sha256(content + meta).hexdigest()
