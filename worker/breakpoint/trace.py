"""The trace events of a turn: its breakpoint decision, and for a live turn retrieval and model call.

A result is committed exactly once, regardless of crashes and repeated deliveries, so an event derived from it
also exists exactly once. An event that is appended elsewhere during the turn would not. Therefore the
breakpoint event is derived from the committed result, and the other events are committed with it.

    breakpoint completed · retrieval started · retrieval completed · model_call completed
"""

from collections.abc import Iterable
from typing import Any, Final, TypedDict

import msgspec

ACTOR: Final = "solserver"
PHASE: Final = "breakpoint"
KIND: Final = "breakpoint_engine"
RETRIEVAL: Final = "retrieval"
RETRIEVAL_KIND: Final = "context_retrieval"
MODEL_CALL: Final = "model_call"
STARTED: Final = "started"
COMPLETED: Final = "completed"
SHARED: Final = frozenset({"traceRunId", "transmissionId", "ts"})
"""Fields that all events of a turn have in common."""


class TracedCall(msgspec.Struct, frozen=True, gc=False):
    """What the answer to a live turn cost; None is unknown, never zero."""

    model: str
    """The model that was called."""
    attempts: int = 1
    """Calls that were made for it."""
    cached: bool = False
    """Whether the answer came from the cache: the figures are those of the original call."""
    latency_ms: int = 0
    """Time from sending to the last byte."""
    cost_usd: float | None = None
    """Cost by the provider's prices."""
    prompt_tokens: int | None = None
    """As the provider counts them."""
    completion_tokens: int | None = None
    """As the provider counts them."""
    unread: bool = False
    """Whether it held no JSON object, so that all of it was taken for the response."""
    invalid_shape: bool = False
    """Whether it proposed a summary that breaks the contract, which counts as none."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event as it is stored with its turn's result."""

    phase: str
    """Part of the flow."""
    status: str
    """`started` or `completed`."""
    summary: str
    """For people."""
    metadata: dict[str, Any]
    """For programs."""


class BreakpointMetadata(TypedDict):
    """The decision in machine-readable form."""

    kind: str
    decision: str
    peakGuardrailActive: bool
    source: str


class BreakpointEvent(TypedDict):
    """One event of a trace."""

    traceRunId: str
    transmissionId: str
    actor: str
    phase: str
    status: str
    summary: str
    metadata: BreakpointMetadata
    ts: str


def breakpoint_event(
    *, run: str, index: int, decision: str, peak_guardrail_active: bool, source: str, ts: str
) -> BreakpointEvent:
    """Writes the event of one decided turn.

    Args:
        run: the turn's run.
        index: the turn's position in the input.
        decision: what the turn is worth.
        peak_guardrail_active: whether the guardrail froze the summary.
        source: where the baseline memento came from.
        ts: the turn's time; after the turn it is the memento's `updatedAt`.

    >>> breakpoint_event(
    ...     run="r1", index=0, decision="must", peak_guardrail_active=False, source="stored_latest", ts="…"
    ... )["summary"]
    'Breakpoint decision: MUST'
    """
    transmission = f"{run}:{index}"
    return {
        "traceRunId": f"{transmission}:trace",
        "transmissionId": transmission,
        "actor": ACTOR,
        "phase": PHASE,
        "status": COMPLETED,
        "summary": f"Breakpoint decision: {decision.upper()}",
        "metadata": {
            "kind": KIND,
            "decision": decision,
            "peakGuardrailActive": peak_guardrail_active,
            "source": source,
        },
        "ts": ts,
    }


def retrieval_events(items: int, chars: int) -> tuple[Event, Event]:
    """Writes the two events of collecting context.

    Args:
        items: paragraphs that were found.
        chars: their length.

    >>> [event.status for event in retrieval_events(2, 100)]
    ['started', 'completed']
    """
    kind = {"kind": RETRIEVAL_KIND}
    return (
        Event(RETRIEVAL, STARTED, "Context retrieval started", kind),
        Event(
            RETRIEVAL, COMPLETED, f"Context of {chars} characters", {**kind, "items": items, "chars": chars}
        ),
    )


def call_event(call: TracedCall, *, shape: str) -> Event:
    """Writes the event of the model's answer.

    Args:
        call: what it cost.
        shape: what became of the proposed summary: `applied`, `frozen`, `invalid` or `none`.

    >>> call_event(TracedCall("openai/gpt-4o", cached=True), shape="none").summary
    'Model openai/gpt-4o answered from the cache'
    """
    words = "from the cache" if call.cached else f"in {call.latency_ms} ms"
    metadata = {"kind": MODEL_CALL, **msgspec.structs.asdict(call), "shape": shape}
    return Event(MODEL_CALL, COMPLETED, f"Model {call.model} answered {words}", metadata)


def all_events(breakpoint_: BreakpointEvent, stored: Iterable[Event]) -> list[dict[str, Any]]:
    """Puts all events of a turn in order, each in the form of the breakpoint event.

    Args:
        breakpoint_: of the decision; the run, the turn and the time are the same for all.
        stored: those that were committed with the result; they follow in their order, because the flow
            decides before it retrieves.
    """
    shared = {name: value for name, value in breakpoint_.items() if name in SHARED}
    events: list[dict[str, Any]] = [dict(breakpoint_)]
    for event in stored:
        fields = {
            **shared,
            "actor": "model" if event.phase == MODEL_CALL else ACTOR,
            **msgspec.structs.asdict(event),
        }
        events.append({name: fields[name] for name in breakpoint_})
    return events
