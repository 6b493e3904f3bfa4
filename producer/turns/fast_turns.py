"""Fast validation of ordinary turns; all other lines are validated with the contract.

`shared.contracts.turns.Turn` is the contract and the source of error messages. Checking a line with it costs
2.7 µs, with the structures below 0.8 µs, and a producer does little else. They accept a subset of the
contract, without `meta`, `context` and 29 February. tests/property/test_fast_turns.py compares the two.
"""
# ruff: noqa: N815 - the fields carry the documents' own names, one spelling from file to result

from typing import Annotated, Final, Literal

from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType
from msgspec.json import Decoder

from shared.contracts.turn_vocabulary import (
    MAX_ETAG_CHARS,
    MAX_MESSAGE_CHARS,
    MAX_SHAPE_LIST_ITEMS,
    MAX_SIGNAL_ITEMS,
    MAX_SIGNAL_SUMMARY_CHARS,
)

NOT_ORDINARY: Final = (DecodeError, UnicodeDecodeError)
"""What a line raises that is not ordinary, or not good."""

_DAYS = "(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"

Text = Annotated[str, Meta(min_length=1)]
UtcTime = Annotated[str, Meta(pattern=rf"\A[1-9][0-9]{{3}}-({_DAYS})T{_CLOCK}Z\Z")]
ShapeLine = Annotated[str, Meta(min_length=1, max_length=160)]
ShapeList = Annotated[list[ShapeLine], Meta(max_length=MAX_SHAPE_LIST_ITEMS)]


class _Signal(Struct, forbid_unknown_fields=True, gc=False):
    endMessageId: Text
    kind: Literal[
        "decision_made",
        "scope_changed",
        "pivot",
        "answer_provided",
        "ack_only",
        "open_loop_created",
        "open_loop_resolved",
        "risk_or_conflict",
    ]
    confidence: Literal["low", "med", "high"]
    source: Literal["server", "model"]
    summary: Annotated[str, Meta(max_length=MAX_SIGNAL_SUMMARY_CHARS)] | UnsetType = UNSET


class _Signals(Struct, forbid_unknown_fields=True, gc=False):
    updatedAt: UtcTime
    items: Annotated[list[_Signal], Meta(max_length=MAX_SIGNAL_ITEMS)] | UnsetType = UNSET


class _Shape(Struct, forbid_unknown_fields=True, gc=False):
    arc: Annotated[str, Meta(min_length=1, max_length=200)]
    active: ShapeList
    parked: ShapeList
    decisions: ShapeList
    next: ShapeList


class _AffectSignal(Struct, forbid_unknown_fields=True, gc=False):
    label: Annotated[str, Meta(min_length=1, max_length=64)]
    intensity: Annotated[float, Meta(ge=0, le=1)]
    confidence: Literal["low", "med", "high"] | UnsetType = UNSET


class OrdinaryTurn(Struct, forbid_unknown_fields=True, gc=False):
    """A turn without free maps and without a client's memento."""

    threadId: Text
    message: Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE_CHARS)]
    messageId: Text | UnsetType = UNSET
    role: Literal["user", "assistant"] | UnsetType = UNSET
    clientRequestId: Text | UnsetType = UNSET
    signals: _Signals | UnsetType = UNSET
    contextWindowPressure: bool | UnsetType = UNSET
    driftRisk: bool | UnsetType = UNSET
    summaryChanged: bool | UnsetType = UNSET
    affectSignal: _AffectSignal | UnsetType = UNSET
    ts: UtcTime | UnsetType = UNSET
    modelShape: _Shape | UnsetType = UNSET
    thread_memento_etag: Annotated[str, Meta(max_length=MAX_ETAG_CHARS)] | UnsetType = UNSET


decode_ordinary: Final = Decoder(OrdinaryTurn).decode
"""Reads an ordinary turn; raises one of `NOT_ORDINARY` for any other line, good or bad."""
