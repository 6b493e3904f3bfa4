"""The document's integration tests: a thread at its peak, its memento after each turn, and its traces."""

import json
from typing import Any

from tests.support.conversations import decide, memento, shape, signals, turn
from worker.breakpoint.thread_decider import public_state
from worker.breakpoint.trace import BreakpointEvent, breakpoint_event

AFTER = shape("after", active=["A"], parked=["P"], decisions=["D"], next=["N"])


def at_peak(*kinds: str, message: str = "ok thanks", **keys: Any) -> dict[str, Any]:
    """A turn that the client sends with a memento at its peak, and with a proposed summary."""
    sent = memento(phase="peak", bucket="high", signals=signals(*kinds))
    return turn(message, context={"thread_memento": sent}, modelShape=AFTER, **keys)


def traces(rows: list[dict[str, Any]]) -> list[BreakpointEvent]:
    """The events of decided turns, as the reader derives them."""
    return [
        breakpoint_event(
            run="r1",
            index=index,
            decision=row["decision"],
            peak_guardrail_active=row["peakGuardrailActive"],
            source=row["source"],
            ts=row["memento"]["updatedAt"],
        )
        for index, row in enumerate(rows)
    ]


def test_peak_guardrail_with_memento_updates() -> None:
    """At a peak a `skip` keeps the arc, a `must` updates it, and the traces record both."""
    skipped, forced = decide(at_peak("ack_only"), at_peak("decision_made")).rows

    assert (skipped["decision"], skipped["memento"]["arc"]) == ("skip", "before")
    assert (forced["decision"], forced["memento"]["arc"]) == ("must", "after")

    first, second = traces([skipped, forced])
    assert first["phase"] == second["phase"] == "breakpoint"
    assert first["summary"] == "Breakpoint decision: SKIP"
    assert first["metadata"] == {
        "kind": "breakpoint_engine",
        "decision": "skip",
        "peakGuardrailActive": True,
        "source": "request_context.thread_memento",
    }
    assert second["summary"] == "Breakpoint decision: MUST"
    assert second["metadata"]["peakGuardrailActive"] is False


def test_the_merged_memento_is_the_threads_latest() -> None:
    """What a turn answers is what the thread remembers for its next visit."""
    decided = decide(at_peak("decision_made"))
    etag, latest = public_state(decided.outcome.state)
    assert json.loads(latest) == decided.rows[0]["memento"]
    assert etag == "1"

    [later] = decide(turn("And then?"), state=decided.outcome.state).rows
    assert later["source"] == "stored_latest"
    assert {name: later["memento"][name] for name in AFTER} == AFTER
    assert later["memento"]["mementoId"] == "mem-1"


def test_a_peak_that_was_stored_freezes_later_turns() -> None:
    """The guardrail reads the stored rollup when the request brings none, until emotions calm down."""
    peak = decide(
        turn("This is too much!", affectSignal={"label": "overwhelm", "intensity": 0.9, "confidence": "high"})
    )
    frozen, calmer, moved = decide(
        turn("Well.", modelShape=AFTER),
        turn(
            "Better.",
            affectSignal={"label": "resolve", "intensity": 0.3, "confidence": "high"},
            modelShape=AFTER,
        ),
        turn("Go on.", modelShape=AFTER),
        state=peak.outcome.state,
    ).rows
    assert (frozen["memento"]["arc"], frozen["peakGuardrailActive"]) == ("support", True)
    assert (calmer["memento"]["arc"], calmer["peakGuardrailActive"]) == ("support", True)
    assert (moved["memento"]["arc"], moved["peakGuardrailActive"]) == ("after", False)
    assert [event["metadata"]["source"] for event in traces([frozen, calmer, moved])] == ["stored_latest"] * 3
