"""The trace event of a breakpoint decision, made from the committed result of its turn.

A result is committed exactly once, whatever died and was delivered again in between; an event that is derived
from it exists exactly once too. An event that was appended somewhere else while the turn ran would not.
"""

from typing import Final, TypedDict

ACTOR: Final = "solserver"
PHASE: Final = "breakpoint"
KIND: Final = "breakpoint_engine"


class BreakpointMetadata(TypedDict):
    """What was decided, for programs."""

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
        "status": "completed",
        "summary": f"Breakpoint decision: {decision.upper()}",
        "metadata": {
            "kind": KIND,
            "decision": decision,
            "peakGuardrailActive": peak_guardrail_active,
            "source": source,
        },
        "ts": ts,
    }
