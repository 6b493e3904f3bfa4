"""The memento of a thread: the state a turn starts from, and the state after it.

Two forms exist. **v0.2** comes with requests; **v0.1** is what we store and answer: `sentinel` became
`server`, signals are not kept, `id` and `createdAt` repeat `mementoId` and `createdTs`. When each affect
point was measured is private: it is stored beside the memento and never answered.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from shared.clock import parse_iso_ms
from shared.contracts.turn_vocabulary import AffectPhase, IntensityBucket, PointSource, RequestPointSource
from worker.breakpoint.affect import point_of, with_point
from worker.breakpoint.turn_wire import (
    RequestMemento,
    WireAffect,
    WireAffectSignal,
    WirePoint,
    WireRollup,
    WireShape,
    WireTurn,
)

STORED_VERSION: Final = "memento-v0.1"
SEED_ARC: Final = "support"

FROM_REF: Final = "request_context.thread_memento_ref"
FROM_REQUEST: Final = "request_context.thread_memento"
FROM_STORE: Final = "stored_latest"


class KeptMemento(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The summary of a thread, v0.1, as it is answered."""

    memento_id: str
    id: str
    thread_id: str
    created_ts: str
    created_at: str
    updated_at: str
    version: str
    arc: str
    active: list[str]
    parked: list[str]
    decisions: list[str]
    next: list[str]
    affect: WireAffect


class Latest(msgspec.Struct, frozen=True, gc=False):
    """A memento in the parts that turns change, with what is private about it."""

    memento_id: str
    """Never changes, like the thread and the time of creation."""
    thread_id: str
    """The thread it belongs to."""
    created_ts: str
    """Time when the thread's first memento was made."""
    updated_at: str
    """Time when a turn changed it last."""
    shape: WireShape
    """The five summary fields."""
    affect: WireAffect
    """The emotional state."""
    point_times_ms: tuple[int, ...]
    """Time of each affect point, epoch milliseconds."""

    @property
    def version(self) -> str:
        """Version of the form in which the memento is answered."""
        return STORED_VERSION

    @property
    def memento(self) -> KeptMemento:
        """The public form."""
        shape = self.shape
        return KeptMemento(
            self.memento_id,
            self.memento_id,
            self.thread_id,
            self.created_ts,
            self.created_ts,
            self.updated_at,
            self.version,
            shape.arc,
            shape.active,
            shape.parked,
            shape.decisions,
            shape.next,
            self.affect,
        )


def latest_of(memento: KeptMemento, point_times_ms: Sequence[int]) -> Latest:
    """Takes a stored memento apart again."""
    return Latest(
        memento.memento_id,
        memento.thread_id,
        memento.created_ts,
        memento.updated_at,
        WireShape(memento.arc, memento.active, memento.parked, memento.decisions, memento.next),
        memento.affect,
        tuple(point_times_ms),
    )


def seed(thread_id: str, now_iso: str) -> Latest:
    """Makes the empty memento of a thread that has none."""
    affect = WireAffect((), WireRollup(AffectPhase.SETTLED.value, IntensityBucket.LOW.value, now_iso))
    name = f"memento_latest_{thread_id}"
    return Latest(name, thread_id, now_iso, now_iso, WireShape(SEED_ARC, [], [], [], []), affect, ())


def from_request(memento: RequestMemento) -> Latest:
    """Turns a client's memento into the stored form; its rollup is trusted as it is."""
    rollup = memento.affect.rollup
    affect = WireAffect(tuple(map(_stored_point, memento.affect.points)), rollup)
    return Latest(
        memento.memento_id,
        memento.thread_id,
        memento.created_ts,
        rollup.updated_at,
        WireShape(memento.arc, memento.active, memento.parked, memento.decisions, memento.next),
        affect,
        (parse_iso_ms(rollup.updated_at),) * len(affect.points),
    )


def resolve_baseline(turn: WireTurn, stored: Latest | None, now_iso: str) -> tuple[Latest, str]:
    """Chooses the memento that a turn starts from.

    In this order: the stored memento when the request's reference names it; the request's own memento when it
    belongs to the thread; the stored memento; an empty seed.

    Args:
        turn: the turn, with the context that the client sent.
        stored: the thread's latest memento, if it has one.
        now_iso: the turn's time, for the seed.

    Returns:
        The memento that the guardrail reads and the update is applied to, and its source as named in traces.
    """
    if turn.context is not None:
        ref, memento = turn.context.thread_memento_ref, turn.context.thread_memento
        if (
            ref is not None
            and stored is not None
            and ref.memento_id == stored.memento_id
            and ref.thread_id in (None, turn.thread_id)
        ):
            return stored, FROM_REF
        if memento is not None and memento.thread_id == turn.thread_id:
            return from_request(memento), FROM_REQUEST
    return stored or seed(turn.thread_id, now_iso), FROM_STORE


def updated(
    previous: Latest,
    shape: WireShape | None,
    affect_signal: WireAffectSignal | None,
    message_id: str,
    now_iso: str,
) -> Latest:
    """Applies a turn to a memento; identity and creation time never change.

    Args:
        previous: what the turn started from.
        shape: the accepted summary, taken exactly as given; None keeps the previous five fields.
        affect_signal: the emotion of the user's turn; None keeps the emotional state.
        message_id: the turn that the emotion is anchored to.
        now_iso: the turn's time.
    """
    affect, times = previous.affect, previous.point_times_ms
    if affect_signal is not None:
        affect, times = with_point(affect, times, point_of(affect_signal, message_id), now_iso)
    elif shape is None and previous.updated_at == now_iso:
        return previous
    kept = previous.shape if shape is None else shape
    return Latest(previous.memento_id, previous.thread_id, previous.created_ts, now_iso, kept, affect, times)


def _stored_point(point: WirePoint) -> WirePoint:
    """Maps the client's vocabulary to ours."""
    if point.source != RequestPointSource.SENTINEL:
        return point
    return msgspec.structs.replace(point, source=PointSource.SERVER.value)
