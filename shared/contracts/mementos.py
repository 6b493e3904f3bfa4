"""The contracts of a thread's state: signals, affect, summaries and mementos, strict and frozen.

Fields carry the names of the documents, so that a contract reads like the JSON it describes. An optional key
may be left out but not be null.
"""
# ruff: noqa: N815 - the fields carry the documents' own names, one spelling from file to result

from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    WrapSerializer,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from shared.contracts.turn_vocabulary import (
    MAX_SHAPE_LIST_ITEMS,
    MAX_SIGNAL_ITEMS,
    MAX_SIGNAL_SUMMARY_CHARS,
    AffectPhase,
    Confidence,
    IntensityBucket,
    PointSource,
    RequestPointSource,
    SignalSource,
    ThreadMementoSignalKind,
)

MAX_AFFECT_POINTS: Final = 5

_Value = TypeVar("_Value")


class _NeverNull:
    """Marks an optional key: it may be left out, but null is refused, and it costs nothing to check."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        nullable: dict[str, Any] = dict(handler(source))
        inner: CoreSchema = nullable["schema"]
        return inner


def _real_time(text: str) -> str:
    """Refuses texts of the right form that name no moment, such as 30 February."""
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise PydanticCustomError("utc_time", "no such time: {reason}", {"reason": str(error)}) from error
    return text


OptionalKey = Annotated[_Value | None, _NeverNull()]
Word = Annotated[_Value, Field(strict=False)]
"""A member of a closed vocabulary, as text or as the member itself."""

Text = Annotated[str, StringConstraints(min_length=1)]
UtcTime = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$"),
    AfterValidator(_real_time),
]
"""ISO 8601 in UTC, written with `Z`; times without zone and with an offset are refused."""
Intensity = Annotated[float, Field(ge=0, le=1)]
SummaryLine = Annotated[str, StringConstraints(min_length=1, max_length=200)]
ShapeLine = Annotated[str, StringConstraints(min_length=1, max_length=160)]
ShapeList = Annotated[list[ShapeLine], Field(max_length=MAX_SHAPE_LIST_ITEMS)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Contract(BaseModel):
    """What all contracts share."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class ThreadMementoSignalItem(Contract):
    """One signal, anchored to a message."""

    endMessageId: Text
    """The message that the signal is anchored to."""
    kind: Word[ThreadMementoSignalKind]
    """Its kind."""
    confidence: Word[Confidence]
    """How sure its source is; kept, not weighed."""
    source: Word[SignalSource]
    """Who made it; kept, not weighed."""
    summary: OptionalKey[Annotated[str, StringConstraints(max_length=MAX_SIGNAL_SUMMARY_CHARS)]] = None
    """A sentence for people, and for the prompt when it closes a loop."""


class ThreadMementoSignals(Contract):
    """The signals that a client sends with a turn."""

    updatedAt: UtcTime
    """When the client last changed them."""
    items: Annotated[list[ThreadMementoSignalItem], Field(max_length=MAX_SIGNAL_ITEMS)] = []
    """At most eight, in the client's order."""


class AffectPoint(Contract):
    """One measured emotion, as we store and answer it."""

    endMessageId: Text
    """The user message it was measured on."""
    label: Label
    """Which emotion."""
    intensity: Intensity
    """How strong, 0 to 1."""
    confidence: Word[Confidence]
    """How sure its source is."""
    source: Word[PointSource]
    """Who measured it."""


class RequestAffectPoint(AffectPoint):
    """One measured emotion, as a client sends it."""

    source: Word[RequestPointSource]  # type: ignore[assignment] # the client's vocabulary has one word more
    """Who measured it; `sentinel` is stored as `server`."""


class AffectRollup(Contract):
    """The rollup of a thread's points."""

    phase: Word[AffectPhase]
    """Where the emotion is heading."""
    intensityBucket: Word[IntensityBucket]
    """How strong it is."""
    updatedAt: UtcTime
    """When it was computed."""


class StoredAffect(Contract):
    """The emotional state of a thread, as we store and answer it."""

    points: Annotated[list[AffectPoint], Field(max_length=MAX_AFFECT_POINTS)]
    """The latest points, oldest first."""
    rollup: AffectRollup
    """Their rollup."""


class RequestAffect(Contract):
    """The emotional state of a thread, as a client sends it."""

    points: Annotated[list[RequestAffectPoint], Field(max_length=MAX_AFFECT_POINTS)]
    """The latest points, oldest first."""
    rollup: AffectRollup
    """Trusted, not computed anew from the points."""


class SummaryShape(Contract):
    """A proposed summary of a thread: the five fields that the guardrail protects."""

    arc: SummaryLine
    """What the thread is about."""
    active: ShapeList
    """Topics in work."""
    parked: ShapeList
    """Topics put aside."""
    decisions: ShapeList
    """What was decided."""
    next: ShapeList
    """What comes next."""


class _Memento(Contract):
    """What both forms of a memento share."""

    mementoId: Text
    """Identity, kept for the thread's whole life."""
    threadId: Text
    """The thread it summarises."""
    createdTs: UtcTime
    """When the thread's first memento was made."""
    arc: SummaryLine
    """What the thread is about."""
    active: list[SummaryLine]
    """Topics in work."""
    parked: list[SummaryLine]
    """Topics put aside."""
    decisions: list[SummaryLine]
    """What was decided."""
    next: list[SummaryLine]
    """What comes next."""


class ThreadMemento(_Memento):
    """A client's memento of a thread, v0.2."""

    version: Literal["memento-v0.2"]
    """The form of this object."""
    affect: RequestAffect
    """The thread's emotional state."""
    signals: OptionalKey[ThreadMementoSignals] = None
    """Signals for this turn; read when the memento is accepted as baseline, never stored."""


class StoredMemento(_Memento):
    """A thread's memento as we store and answer it, v0.1; a client may send it back as it came."""

    id: OptionalKey[Text] = None
    """Alias of `mementoId`, in answers."""
    createdAt: OptionalKey[UtcTime] = None
    """Alias of `createdTs`, in answers."""
    updatedAt: UtcTime
    """The time of the last committed turn."""
    version: Literal["memento-v0.1"]
    """The form of this object."""
    affect: StoredAffect
    """The thread's emotional state."""

    @model_validator(mode="after")
    def _aliases_agree(self) -> Self:
        if self.id not in {None, self.mementoId} or self.createdAt not in {None, self.createdTs}:
            raise PydanticCustomError("aliases", "id and createdAt must equal mementoId and createdTs")
        return self


AnyMemento = Annotated[
    ThreadMemento | StoredMemento,
    Field(discriminator="version"),
    # An optional key has no version while it is absent, which the union would warn of.
    WrapSerializer(lambda memento, write: memento and write(memento)),
]
"""A memento in either form."""


class ThreadMementoRef(Contract):
    """Names the memento that the client has seen, instead of sending it."""

    mementoId: Text
    """Must be the stored memento's id, else the reference is ignored."""
    threadId: OptionalKey[Text] = None
    """Must be the turn's thread, which is also the default."""
    createdTs: OptionalKey[UtcTime] = None
    """Kept for the client's use; not compared."""
