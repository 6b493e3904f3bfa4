"""Wire structures of a validated turn.

The structures mirror `shared.contracts.turns` and `shared.contracts.mementos` for the one place where speed
matters. They decode without validation: every turn was checked against the contract before it entered the
ledger. An absent key is None or its default. tests/property/test_breakpoint_wire.py keeps the two equal.
"""

import msgspec

from shared.contracts.turn_vocabulary import Confidence, Role, ThreadMementoSignalKind


class SignalItem(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One signal, anchored to a message."""

    end_message_id: str
    kind: ThreadMementoSignalKind
    confidence: str
    source: str
    summary: str | None = None


class Signals(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The signals that came with a turn."""

    updated_at: str
    items: list[SignalItem] = []


class WireRollup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Phase and intensity derived from the affect points."""

    phase: str
    intensity_bucket: str
    updated_at: str


class WirePoint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One measured emotion."""

    end_message_id: str
    label: str
    intensity: float
    confidence: str
    source: str


class WireAffect(msgspec.Struct, frozen=True, gc=False):
    """The emotional state of a thread: its latest points, oldest first, and their rollup."""

    points: tuple[WirePoint, ...]
    rollup: WireRollup


class WireShape(msgspec.Struct, frozen=True, gc=False):
    """The five summary fields that the guardrail protects."""

    arc: str
    active: list[str]
    parked: list[str]
    decisions: list[str]
    next: list[str]


class RequestMemento(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A client's memento: v0.2, or v0.1 without its redundant fields (`id`, `createdAt`) and `updatedAt`."""

    memento_id: str
    thread_id: str
    created_ts: str
    version: str
    arc: str
    active: list[str]
    parked: list[str]
    decisions: list[str]
    next: list[str]
    affect: WireAffect
    signals: Signals | None = None


class MementoRef(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The memento that the client has seen."""

    memento_id: str
    thread_id: str | None = None
    created_ts: str | None = None


class Context(msgspec.Struct, frozen=True, gc=False):
    """The context that a client sends with a turn."""

    thread_memento: RequestMemento | None = None
    thread_memento_ref: MementoRef | None = None


class WireAffectSignal(msgspec.Struct, frozen=True, gc=False):
    """The emotion of a turn, measured before."""

    label: str
    intensity: float
    confidence: Confidence | float = Confidence.LOW


_TURN_NAMES = {
    "thread_id": "threadId",
    "message_id": "messageId",
    "client_request_id": "clientRequestId",
    "context_window_pressure": "contextWindowPressure",
    "drift_risk": "driftRisk",
    "summary_changed": "summaryChanged",
    "affect_signal": "affectSignal",
    "model_shape": "modelShape",
}


class WireTurn(msgspec.Struct, frozen=True, gc=False, rename=_TURN_NAMES):
    """One turn of a conversation."""

    thread_id: str
    message: str
    message_id: str | None = None
    role: Role = Role.USER
    client_request_id: str | None = None
    signals: Signals | None = None
    context: Context | None = None
    context_window_pressure: bool = False
    drift_risk: bool = False
    summary_changed: bool = False
    affect_signal: WireAffectSignal | None = None
    ts: str | None = None
    model_shape: WireShape | None = None
    thread_memento_etag: str | None = None
    meta: msgspec.Raw = msgspec.Raw()


_TURNS = msgspec.json.Decoder(WireTurn)


def decode_turns(lines: bytes) -> list[WireTurn | None]:
    r"""Reads validated lines; a line that is none becomes None instead of taking its neighbours with it.

    >>> [turn and turn.message for turn in decode_turns(b'{"threadId":"t","message":"hi"}\n{"threadId":7}')]
    ['hi', None]
    """
    try:
        return list(_TURNS.decode_lines(lines))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [_decode_turn(line) for line in lines.split(b"\n")]


def _decode_turn(line: bytes) -> WireTurn | None:
    """Decodes one line; None if it is not a turn."""
    try:
        return _TURNS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
