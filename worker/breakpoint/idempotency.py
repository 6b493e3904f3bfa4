"""Answers a repeated `clientRequestId` with its first result, and refuses it for other content.

Ids are unique in a namespace. Only decided turns are remembered: a turn that was refused may come again.
"""

import hashlib
import json
import re
from collections.abc import Iterable, MutableMapping
from typing import Final

import msgspec

from shared.codecs.turn_batches import DUPLICATE, unpack_batch
from worker.breakpoint.orchestrator import Refusal
from worker.breakpoint.turn_wire import Turn, decode_turns

IDEMPOTENCY_CONFLICT: Final = "idempotency_conflict"

_KEY: Final = b"clientRequestId"
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[4-7]")
"""JSON allows to write the key's letters so."""


Answer = tuple[str, bytes]
"""What a turn came to: its code as in `shared.codecs.turn_batches`, and the JSON document of its result."""


class _Remembered(msgspec.Struct, gc=False):
    """What is stored of an answered request."""

    content: str
    item: str
    code: str
    line: msgspec.Raw


_encode: Final = msgspec.json.Encoder().encode
_remembered: Final = msgspec.json.Decoder(_Remembered).decode


class Requests:
    """The requests that a namespace has answered, as far as the turns at hand need them."""

    def __init__(self, known: MutableMapping[str, bytes]) -> None:
        self._known = known
        self.new: list[tuple[str, bytes]] = []

    def answered(self, turn: Turn, item: str) -> Answer | Refusal | None:
        """Looks for an earlier answer.

        Args:
            turn: a turn with a `clientRequestId`.
            item: which item asks; the item that was answered first is no duplicate of itself.

        Returns:
            The first answer, flagged as a duplicate; why there is none; or None when the id is new.
        """
        name = turn.client_request_id or ""
        value = self._known.get(name)
        if value is None:
            return None
        first = _remembered(value)
        if first.content != content_digest(turn):
            return Refusal(IDEMPOTENCY_CONFLICT, f"clientRequestId {name[:80]!r} was used for other content")
        flag = "" if first.item == item else DUPLICATE
        return first.code + flag, bytes(first.line)

    def remember(self, turn: Turn, item: str, answer: Answer) -> None:
        """Keeps the first answer to a turn with a `clientRequestId`."""
        name = turn.client_request_id or ""
        code, line = answer
        value = _encode(_Remembered(content_digest(turn), item, code, msgspec.Raw(line)))
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


def content_digest(turn: Turn) -> str:
    """Names what a turn says, whatever the order of its keys and the space between them.

    When it was sent (`ts`) and on which state (`thread_memento_etag`) are no part of that: a client that
    repeats a request stamps it anew, and may have read the thread's token again.
    """
    meta = json.dumps(json.loads(bytes(turn.meta)), sort_keys=True).encode() if turn.meta else b""
    bare = msgspec.structs.replace(turn, meta=msgspec.Raw(b"null"), ts=None, thread_memento_etag=None)
    said = _encode(bare)
    return hashlib.sha256(said + meta).hexdigest()
