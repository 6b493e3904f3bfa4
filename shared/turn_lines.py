r"""How the result lines of a block stand in the ledger: each says only what the lines before it do not.

A result is 1,000 bytes, nearly all of them the thread's memento, of which a turn changes a field or two, if
any. And each stored byte costs: it is copied by worker, server, append-only file and reader. So a line is a
JSON array of what is new, 150 bytes on average, and whoever reads it composes the result from it, byte by
byte the one that a plain encoding gives, without parsing anything.

    ["m1",["MUST signal pivot","stored_latest"],null,null,null,[1,"memento_latest_t","t",…]]
    ["m2",["no other rule matched","stored_latest"]]
    ["m3",0,[{"arc":…,"active":…,"parked":…,"decisions":…,"next":…}],[0,{point},{rollup}]]
    {"error":{"code":…,"message":…},"result":{…}}

The columns of a line: messageId; reason and source, or the number of those of an earlier line; the new
summary; how many affect points fell away, the new one, and what they come to; the new `updatedAt`; and the
whole memento with the etag, where lines before it do not say on what it builds. The last four are left out or
null where nothing changed. A line that is an object stands there as it is: errors, and results that are kept
elsewhere too. Decision, rule and flags are in the block's codes, see `shared.rows`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from shared.rows import DECISION_OF_CODE

Why = tuple[str, str]
"""Reason of a decision and source of its baseline."""


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
        """Whose it is."""

    @property
    def created_ts(self) -> str:
        """Also its `createdAt`."""

    @property
    def updated_at(self) -> str:
        """When it changed last."""

    @property
    def version(self) -> str:
        """Of its form."""

    @property
    def shape(self) -> object:
        """The five summary fields, encoded as an object."""

    @property
    def affect(self) -> AffectParts:
        """The emotional state."""


class LineWriter:
    """Writes the lines of one block."""

    __slots__ = ("_left", "_whys")

    def __init__(self) -> None:
        self._left: MementoParts | None = None
        self._whys: dict[Why, int] = {}

    def forget(self) -> None:
        """Lets the next line stand on its own."""
        self._left = None

    def line(self, message_id: str, why: Why, count: int, before: MementoParts, after: MementoParts) -> bytes:
        """Writes the line of a decided turn.

        Args:
            message_id: which turn.
            why: reason and source.
            count: the thread's turns so far, this one included: its etag.
            before: the memento that the turn built on.
            after: the memento that it left; of the same identity.
        """
        is_known, self._left = before is self._left, after
        if not is_known:
            self._whys = {why: 0}
            return _encode((message_id, why, None, None, None, _whole(count, after)))
        number: int | Why | None = self._whys.get(why)
        if number is None:
            self._whys[why], number = len(self._whys), why
        if before is after:
            return _encode((message_id, number))
        shape = None if after.shape is before.shape else (after.shape,)
        now = None if after.updated_at == before.updated_at else (after.updated_at,)
        felt = None
        if after.affect is not before.affect:
            old, points = before.affect.points, after.affect.points
            fell = len(old) + 1 - len(points)
            if not points or points[:-1] != old[fell:]:
                self._whys = {why: 0}
                return _encode((message_id, why, None, None, None, _whole(count, after)))
            felt = (fell, points[-1], after.affect.rollup)
        if now is not None:
            return _encode((message_id, number, shape, felt, now))
        return _encode((message_id, number, shape) if felt is None else (message_id, number, shape, felt))


def expand(codes: Sequence[str], lines: Sequence[bytes]) -> list[bytes]:
    """Returns the results of a block in full.

    Args:
        codes: of the turns, as in `shared.rows`.
        lines: as they are stored.
    """
    known = _Known()
    return [
        known.compose(code, _decode(line)) if line[:1] == b"[" else line
        for code, line in zip(codes, lines, strict=True)
    ]


class _Whole(msgspec.Struct, array_like=True, gc=False):
    """A memento with the etag of the turn that left it."""

    count: int
    memento_id: msgspec.Raw
    thread_id: msgspec.Raw
    created_ts: msgspec.Raw
    updated_at: msgspec.Raw
    version: msgspec.Raw
    shape: msgspec.Raw
    points: list[msgspec.Raw]
    rollup: msgspec.Raw


class _Line(msgspec.Struct, array_like=True, gc=False):
    """A stored line; what it does not say stays as it was."""

    message_id: msgspec.Raw
    why: int | tuple[msgspec.Raw, msgspec.Raw]
    shape: tuple[msgspec.Raw] | None = None
    affect: tuple[int, msgspec.Raw, msgspec.Raw] | None = None
    updated_at: tuple[msgspec.Raw] | None = None
    whole: _Whole | None = None


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Line).decode
_END: Final = b',"response":null}'


def _whole(count: int, memento: MementoParts) -> tuple[object, ...]:
    """Puts a memento into the columns of `_Whole`."""
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


class _Known:
    """What the lines so far have said."""

    __slots__ = (
        "_count",
        "_head",
        "_identity",
        "_memento",
        "_points",
        "_rollup",
        "_shape",
        "_updated_at",
        "_version",
        "_whys",
    )

    def __init__(self) -> None:
        self._count = 0
        self._whys: list[tuple[bytes, bytes]] = []

    def compose(self, code: str, line: _Line) -> bytes:
        """Writes the result of the next line."""
        if line.whole is not None:
            self._begin(line.whole)
        elif line.shape or line.affect or line.updated_at:
            self._change(line)
        self._count += 1
        why = line.why
        if isinstance(why, int):
            reason, source = self._whys[why]
        else:
            reason, source = bytes(why[0]), bytes(why[1])
            self._whys.append((reason, source))
        verdict = _verdict(code, reason, source)
        return b"".join(
            (self._head, line.message_id, verdict, b'%d","memento":' % self._count, self._memento, _END)
        )

    def _begin(self, whole: _Whole) -> None:
        """Takes a memento as it is."""
        self._count, self._whys = whole.count - 1, []
        thread, created = bytes(whole.thread_id), bytes(whole.created_ts)
        self._head = b'{"threadId":%b,"messageId":' % thread
        named = b'{"mementoId":%b,"id":%b,"threadId":%b,' % (whole.memento_id, whole.memento_id, thread)
        self._identity = named + b'"createdTs":%b,"createdAt":%b,"updatedAt":' % (created, created)
        self._version = b',"version":%b,' % whole.version
        self._shape, self._points, self._rollup = bytes(whole.shape)[1:-1], whole.points, whole.rollup
        self._updated_at = whole.updated_at
        self._join()

    def _change(self, line: _Line) -> None:
        """Takes over what a line says anew."""
        if line.shape is not None:
            self._shape = bytes(line.shape[0])[1:-1]
        if line.affect is not None:
            fell, point, self._rollup = line.affect
            self._points = [*self._points[fell:], point]
        if line.updated_at is not None:
            self._updated_at = line.updated_at[0]
        self._join()

    def _join(self) -> None:
        """Writes the memento."""
        self._memento = b"".join(
            (
                self._identity,
                self._updated_at,
                self._version,
                self._shape,
                b',"affect":{"points":[',
                b",".join(self._points),
                b'],"rollup":',
                self._rollup,
                b"}}",
            )
        )


@lru_cache(4096)
def _verdict(code: str, reason: bytes, source: bytes) -> bytes:
    """Writes what a result says between its message and its etag."""
    flags = code[2:]
    fields: tuple[tuple[str, Any], ...] = (
        ("decision", DECISION_OF_CODE[code[0]]),
        ("rule", int(code[1])),
        ("peakGuardrailActive", "f" in flags),
        ("summaryUpdated", "u" in flags),
    )
    said = b",".join(b'"%b":%b' % (name.encode(), _encode(value)) for name, value in fields)
    return b',%b,"reason":%b,"source":%b,"etag":"' % (said, reason, source)
