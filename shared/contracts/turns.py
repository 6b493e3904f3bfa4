"""The contract of one line of a turns file, checked when it is loaded: strict, frozen, no unknown keys.

`worker.breakpoint.turn_wire` decodes the same JSON once more where speed matters;
tests/property/test_breakpoint_wire.py keeps the two equal.

>>> Turn.model_validate_json('{"threadId": "t", "message": "ok thanks"}').role
<Role.USER: 'user'>
"""
# ruff: noqa: N815 - the fields carry the documents' own names, one spelling from file to result

from math import isfinite
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from shared.contracts.mementos import (
    AffectPoint,
    AffectRollup,
    AnyMemento,
    Contract,
    Intensity,
    Label,
    OptionalKey,
    RequestAffectPoint,
    StoredMemento,
    SummaryShape,
    Text,
    ThreadMemento,
    ThreadMementoRef,
    ThreadMementoSignalItem,
    ThreadMementoSignals,
    UtcTime,
    Word,
)
from shared.contracts.turn_vocabulary import (
    MAX_ETAG_CHARS,
    MAX_MESSAGE_CHARS,
    Confidence,
    Role,
    ThreadMementoSignalKind,
)

__all__ = [
    "AffectPoint",
    "AffectRollup",
    "AffectSignal",
    "Etag",
    "Meta",
    "RequestAffectPoint",
    "StoredMemento",
    "SummaryShape",
    "ThreadMemento",
    "ThreadMementoRef",
    "ThreadMementoSignalItem",
    "ThreadMementoSignalKind",
    "ThreadMementoSignals",
    "Turn",
    "TurnContext",
]


def _finite(meta: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuses NaN and infinities, which JSON does not have and other readers reject."""
    todo: list[JsonValue] = [meta]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
        elif isinstance(value, float) and not isfinite(value):
            raise PydanticCustomError("finite_number", "numbers must be finite")
    return meta


Etag = Annotated[str, StringConstraints(max_length=MAX_ETAG_CHARS)]
Meta = Annotated[dict[str, JsonValue], AfterValidator(_finite)]


class TurnContext(Contract):
    """The context that a client sends with a turn."""

    thread_memento: OptionalKey[AnyMemento] = None
    """The client's memento, v0.2, or one that a result held, v0.1."""
    thread_memento_ref: OptionalKey[ThreadMementoRef] = None
    """The memento that the client has seen."""


class AffectSignal(Contract):
    """The emotion of a user turn, measured before."""

    label: Label
    """Which emotion; a word outside the known six counts as `neutral`."""
    intensity: Intensity
    """How strong, 0 to 1."""
    confidence: Word[Confidence] | Annotated[float, Field(ge=0, le=1)] = Confidence.LOW
    """A word, or a number that falls into one of three buckets."""


class Turn(Contract):
    """One line of a turns file."""

    threadId: Text
    """The conversation it belongs to."""
    message: Annotated[str, StringConstraints(min_length=1, max_length=MAX_MESSAGE_CHARS)]
    """The text of the turn."""
    messageId: OptionalKey[Text] = None
    """Its identity; by default made of thread and position."""
    role: Word[Role] = Role.USER
    """Its author."""
    clientRequestId: OptionalKey[Text] = None
    """Idempotency key, unique in the namespace."""
    signals: OptionalKey[ThreadMementoSignals] = None
    """Signals for this turn; may stand in the context's memento instead, not in both."""
    context: OptionalKey[TurnContext] = None
    """The context that a client sends with a turn."""
    contextWindowPressure: bool = False
    """The context window is getting full."""
    driftRisk: bool = False
    """The conversation may be drifting."""
    summaryChanged: bool = False
    """The summary was changed from outside."""
    affectSignal: OptionalKey[AffectSignal] = None
    """The emotion of this turn; counts on user turns only."""
    ts: OptionalKey[UtcTime] = None
    """The turn's own time; by default the time of submit."""
    modelShape: OptionalKey[SummaryShape] = None
    """The summary that was proposed for this turn."""
    thread_memento_etag: OptionalKey[Etag] = None
    """Refuse the turn unless this many turns are committed in the thread, as text."""
    meta: OptionalKey[Meta] = None
    """Anything; its `affect_signal` counts where there is no `affectSignal`, whatever it holds is coerced as
    in a model's reply. Live turns read `closureIncludeInPrompt` in it.
    """

    @field_validator("context")
    @classmethod
    def _signals_in_one_place(cls, context: TurnContext, info: ValidationInfo) -> TurnContext:
        memento = context.thread_memento
        if (
            isinstance(memento, ThreadMemento)
            and memento.signals is not None
            and info.data.get("signals") is not None
        ):
            raise PydanticCustomError(
                "signals_twice",
                "signals stand both on the turn and in context.thread_memento: give them once",
            )
        return context
