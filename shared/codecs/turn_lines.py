r"""Encoding of the result lines of a block in the ledger: each contains only what the lines before it do not.

A result has 1,000 bytes, nearly all of them the thread's memento, of which a turn changes a field or two, if
any. Each stored byte is copied by worker, server, append-only file and reader. Therefore a line is a JSON
array of what is new, 150 bytes on average. The reader composes the result from it without parsing, byte by
byte the one that a plain encoding gives.

    ["m1",["MUST signal pivot","stored_latest"],[1,"memento_latest_t","t",…]]   a whole memento, with etag 1
    ["m2",["no other rule matched","stored_latest"]]                            the memento stays as it is
    ["m3",0,{"shape":{…},"affect":[0,{…},{…}]}]                                 reasoning of m1, changed parts
    {"error":{"code":…,"message":…},"result":{…}}                               stored in full

The columns of a line: messageId; reason and source, or the number of an earlier line of the same code; and
what is new: nothing, the parts of the memento that the turn changed, or, if the lines before it do not
contain its baseline, the etag and the whole memento. For the affect: how many points were dropped, the new
point and the rollup. A line that is an object is stored unchanged: errors, and results that are also stored
elsewhere. Decision, rule and flags are in the block's codes (`shared.codecs.turn_batches`).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from shared.codecs.turn_batches import DECISION_OF_CODE

Reasoning = tuple[str, str, str]
"""Code of a decision, its reason and the source of its baseline; most turns repeat one of a few."""


class AffectParts(Protocol):
    """The affect of a memento: its latest points, oldest first, and what they come to."""

    @property
    def points(self) -> Sequence[object]:
        """Encoded as they are."""

    @property
    def rollup(self) -> object:
        """Encoded as it is."""


class MementoParts(Protocol):
    """A thread's memento; parts that did not change are the same objects from turn to turn."""

    @property
    def memento_id(self) -> str:
        """Also its `id`."""

    @property
    def thread_id(self) -> str:
        """Id of its thread."""

    @property
    def created_ts(self) -> str:
        """Also its `createdAt`."""

    @property
    def updated_at(self) -> str:
        """Time of its last change."""

    @property
    def version(self) -> str:
        """Version of its form."""

    @property
    def shape(self) -> object:
        """The five summary fields, encoded as an object."""

    @property
    def affect(self) -> AffectParts:
        """The emotional state."""


class LineWriter:
    """Writes the lines of one block."""

    __slots__ = ("_last", "_numbers")

    def __init__(self) -> None:
        self._last: MementoParts | None = None
        self._numbers: dict[Reasoning, int] = {}

    def reset(self) -> None:
        """Makes the next line independent of the lines before it."""
        self._last = None

    def line(
        self, message_id: str, reasoning: Reasoning, count: int, before: MementoParts, after: MementoParts
    ) -> bytes:
        """Writes the line of a decided turn.

        Args:
            message_id: which turn.
            reasoning: code, reason and source.
            count: the thread's turns so far, this one included: its etag.
            before: the baseline memento of the turn.
            after: the memento after it, with the same identity.
        """
        new: object = None
        if before is not self._last or (before is not after and (new := _change(before, after)) is None):
            self._last, self._numbers = after, {reasoning: 0}
            return _encode((message_id, reasoning[1:], _whole(count, after)))
        self._last = after
        number: object = self._numbers.get(reasoning)
        if number is None:
            self._numbers[reasoning], number = len(self._numbers), reasoning[1:]
        return _encode((message_id, number) if new is None else (message_id, number, new))


def expand(codes: Sequence[str], lines: Sequence[bytes]) -> list[bytes]:
    """Returns the results of a block in full.

    Args:
        codes: of the turns, as in `shared.codecs.turn_batches`.
        lines: as they are stored.
    """
    memento, full, verdicts, count = _MementoText(), list[bytes](), list[bytes](), 0
    for code, stored in zip(codes, lines, strict=True):
        if stored[:1] != b"[":
            full.append(stored)
            continue
        line = _decode(stored)
        new, reasoning = line.new, line.reasoning
        count += 1
        if new is None:
            pass
        elif isinstance(new, _Change):
            memento.change(new)
        else:
            count, verdicts = memento.begin(new), []
        if isinstance(reasoning, int):
            verdict = verdicts[reasoning]
        else:
            verdict = _verdict(code, *map(bytes, reasoning))
            verdicts.append(verdict)
        etag = _ETAGS[count] if count < _MANY else b"%d" % count
        full.append(b"".join((memento.head, line.message_id, verdict, etag, memento.text)))
    return full


_Raw = msgspec.Raw
_ABSENT: Final = _Raw()
_Whole = tuple[int, _Raw, _Raw, _Raw, _Raw, _Raw, _Raw, list[_Raw], _Raw]


class _Change(msgspec.Struct, gc=False, omit_defaults=True, rename={"updated_at": "updatedAt"}):
    """Parts of a memento."""

    shape: _Raw = _ABSENT
    affect: tuple[int, _Raw, _Raw] | None = None
    updated_at: _Raw = _ABSENT


class _Line(msgspec.Struct, array_like=True, gc=False):
    """A stored line."""

    message_id: _Raw
    reasoning: int | tuple[_Raw, _Raw]
    new: _Change | _Whole | None = None


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Line).decode
_END: Final = b'}},"response":null}'
_MANY: Final = 1_000
_ETAGS: Final = [b"%d" % count for count in range(_MANY)]


def _whole(count: int, memento: MementoParts) -> tuple[object, ...]:
    """Puts the parts of a memento into the columns of `_Whole`."""
    return (
        count,
        memento.memento_id,
        memento.thread_id,
        memento.created_ts,
        memento.updated_at,
        memento.version,
        memento.shape,
        memento.affect.points,
        memento.affect.rollup,
    )


def _change(before: MementoParts, after: MementoParts) -> dict[str, object] | None:
    """Lists the parts that changed, as in `_Change`; None if a whole memento is needed."""
    new: dict[str, object] = {}
    if after.shape is not before.shape:
        new["shape"] = after.shape
    if after.affect is not before.affect:
        old, points = before.affect.points, after.affect.points
        dropped = len(old) + 1 - len(points)
        if not points or points[:-1] != old[dropped:]:
            return None
        new["affect"] = dropped, points[-1], after.affect.rollup
    if after.updated_at != before.updated_at:
        new["updatedAt"] = after.updated_at
    return new


class _MementoText:
    """The memento after the lines so far, as text, with the text around the parts that change."""

    __slots__ = ("_affect", "_identity", "_points", "_shape", "_stamp", "_version", "head", "text")

    def begin(self, whole: _Whole) -> int:
        """Sets a whole memento; returns the etag."""
        count, memento_id, thread_id, created_ts, updated_at, version, shape, points, rollup = whole
        self.head = b'{"threadId":%b,"messageId":' % thread_id
        named = b'","memento":{"mementoId":%b,"id":%b,"threadId":%b,' % (memento_id, memento_id, thread_id)
        self._identity = named + b'"createdTs":%b,"createdAt":%b,"updatedAt":' % (created_ts, created_ts)
        self._version = b',"version":%b,' % version
        self._stamp = b"".join((self._identity, updated_at, self._version))
        self._shape = bytes(shape)[1:-1]
        self._set_affect(points, rollup)
        self.text = b"".join((self._stamp, self._shape, self._affect))
        return count

    def change(self, new: _Change) -> None:
        """Applies the changes of a line."""
        if new.shape is not _ABSENT:
            self._shape = bytes(new.shape)[1:-1]
        if new.affect is not None:
            dropped, point, rollup = new.affect
            self._set_affect([*self._points[dropped:], point], rollup)
        if new.updated_at is not _ABSENT:
            self._stamp = b"".join((self._identity, new.updated_at, self._version))
        self.text = b"".join((self._stamp, self._shape, self._affect))

    def _set_affect(self, points: list[_Raw], rollup: _Raw) -> None:
        """Writes the affect and the end of a result."""
        self._points = points
        joined = b",".join(points)
        self._affect = b"".join((b',"affect":{"points":[', joined, b'],"rollup":', rollup, _END))


@lru_cache(4096)
def _verdict(code: str, reason: bytes, source: bytes) -> bytes:
    """Writes the part of a result between its message and its etag."""
    flags = code[2:]
    fields: tuple[tuple[str, Any], ...] = (
        ("decision", DECISION_OF_CODE[code[0]]),
        ("rule", int(code[1])),
        ("peakGuardrailActive", "f" in flags),
        ("summaryUpdated", "u" in flags),
    )
    joined = b",".join(b'"%b":%b' % (name.encode(), _encode(value)) for name, value in fields)
    return b',%b,"reason":%b,"source":%b,"etag":"' % (joined, reason, source)
