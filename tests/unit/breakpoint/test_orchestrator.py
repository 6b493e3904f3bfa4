"""The flow of one turn: the order of its steps, the guardrail, the policies, and the model's port."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from tests.support.conversations import (
    BREAKPOINTS_ONLY,
    POLICY,
    SIGNALS_ONCE,
    decide,
    felt,
    memento,
    shape,
    signals,
    turn,
    with_memento,
)
from worker.breakpoint.engine import BreakpointDecision
from worker.breakpoint.memento import KeptMemento
from worker.breakpoint.orchestrator import DecidedTurn, Refusal, RunPolicy, Thread, TurnReply, run_turn
from worker.breakpoint.trace import breakpoint_event
from worker.breakpoint.turn_wire import WireAffectSignal, WireShape, WireTurn

FIVE = ("arc", "active", "parked", "decisions", "next")
PROPOSED = shape("after", active=["A"], parked=["P"], decisions=["D"], next=["N"])
AT_PEAK = with_memento(phase="peak", bucket="high")


def five(row: dict[str, Any]) -> dict[str, Any]:
    """The five summary fields after a turn."""
    return {name: row["memento"][name] for name in FIVE}


@dataclass
class Journal:
    """A model, and a trace, that write down what is asked of them."""

    decisions_worth_a_call: Sequence[str] = ("must", "should")
    lines: list[str] = field(default_factory=list)
    closure: str = ""

    def trace(self, decision: BreakpointDecision, guardrail: bool, source: str) -> None:  # noqa: FBT001 - a Trace
        """Takes the breakpoint event."""
        self.lines.append(f"trace {decision} {guardrail} {source}")

    def is_worth_a_call(self, turn: WireTurn, decision: BreakpointDecision) -> bool:
        """Calls for some decisions, and only without a recorded answer."""
        return turn.model_shape is None and decision in self.decisions_worth_a_call

    def retrieve_context(
        self, thread_id: str, message: str, request_thread_memento: KeptMemento
    ) -> Sequence[str]:
        """Hands out the memento's arc."""
        self.lines.append(f"retrieve {thread_id} {message}")
        return [request_thread_memento.arc]

    def generate(self, turn: WireTurn, context: Sequence[str], closure: str) -> TurnReply:
        """Answers with a summary and an emotion."""
        self.lines.append(f"generate {turn.message} {list(context)}")
        self.closure = closure
        return TurnReply(WireShape("live", [], [], [], []), WireAffectSignal("insight", 0.9, 0.8), "Hello.")


def run(
    packet: dict[str, Any], journal: Journal, thread: Thread | None = None, policy: RunPolicy = POLICY
) -> DecidedTurn | Refusal:
    """Runs one turn with a model."""
    read = msgspec.json.decode(json.dumps(packet), type=WireTurn)
    return run_turn(read, thread or Thread("t"), policy, "m1", model=journal, trace=journal.trace)


def test_steps_come_in_the_documents_order() -> None:
    """Decision and guardrail are traced before context is retrieved, and that before the model is asked."""
    journal = Journal()
    thread = Thread("t")
    result = run(turn("Hi there"), journal, thread)
    assert journal.lines == [
        "trace should False stored_latest",
        "retrieve t Hi there",
        "generate Hi there ['support']",
    ]
    assert isinstance(result, DecidedTurn)
    assert (result.response, result.latest.memento.arc, result.summary_updated) == ("Hello.", "live", True)
    assert thread.latest is result.latest
    assert thread.etag == "1"


def test_a_live_emotion_is_anchored_to_the_users_message() -> None:
    """The model's affect signal becomes a point on the user's message, not on the reply."""
    result = run(turn("Hi there"), Journal())
    assert isinstance(result, DecidedTurn)
    [point] = result.latest.memento.affect.points
    assert (point.end_message_id, point.label, point.confidence) == ("m1", "insight", "high")


def test_turns_that_are_not_worth_a_call_make_none() -> None:
    """A skip, and a turn with a recorded answer, are traced and decided without the model."""
    for packet in (turn("ok thanks"), turn(modelShape=PROPOSED)):
        journal = Journal()
        assert isinstance(run(packet, journal), DecidedTurn)
        assert [line.split()[0] for line in journal.lines] == ["trace"]


def test_a_live_shape_is_discarded_at_a_peak() -> None:
    """The guardrail holds for live answers too."""
    result = run(turn("Hi there", context=AT_PEAK), Journal())
    assert isinstance(result, DecidedTurn)
    assert (result.latest.memento.arc, result.summary_updated, result.response) == ("before", False, "Hello.")


def test_closure_signals_reach_the_prompt_exactly_when_there_are_some() -> None:
    """The prompt gets the block for resolved loops and flagged messages, and nothing otherwise."""
    resolved, flagged, none = Journal(), Journal(), Journal()
    run(turn(signals=signals("open_loop_resolved", summary="Table booked")), resolved)
    run(turn(signals=signals("pivot", summary="To trains"), meta={"include_in_prompt": ["m0"]}), flagged)
    run(turn(signals=signals("open_loop_created", summary="Book a table")), none)
    assert "Table booked" in resolved.closure
    assert "To trains" in flagged.closure
    assert none.closure == ""


def test_a_stale_token_stops_the_flow_before_everything() -> None:
    """Nothing is decided, traced, asked or written for a stale token."""
    journal, thread = Journal(), Thread("t", 5)
    refusal = run(turn(thread_memento_etag="4"), journal, thread)
    assert refusal == Refusal("etag_conflict", "thread_memento_etag is stale: the thread is at 5")
    assert (journal.lines, thread.count, thread.latest) == ([], 5, None)


@pytest.mark.parametrize(
    ("message", "kinds", "is_applied"),
    [("ok thanks", [], False), ("More.", [], False), ("More.", ["pivot"], True), ("ok", ["pivot"], True)],
)
def test_the_guardrail_at_a_peak(message: str, kinds: list[str], is_applied: bool) -> None:  # noqa: FBT001 - a column of the table
    """At a peak all five proposed fields are discarded unless the decision is `must`."""
    row = decide(
        turn(message, context=with_memento(phase="peak", signals=signals(*kinds)), modelShape=PROPOSED)
    ).rows[0]
    before = {name: memento()[name] for name in FIVE}
    assert five(row) == (PROPOSED if is_applied else before)
    assert (row["summaryUpdated"], row["peakGuardrailActive"]) == (is_applied, not is_applied)


@pytest.mark.parametrize(("phase", "bucket"), [("peak", "low"), ("settled", "high"), ("peak", "high")])
def test_phase_or_bucket_is_enough(phase: str, bucket: str) -> None:
    """Peak phase or high intensity alone activates the guardrail."""
    row = decide(turn(context=with_memento(phase=phase, bucket=bucket), modelShape=PROPOSED)).rows[0]
    assert row["peakGuardrailActive"] is True


def test_the_guardrail_looks_at_the_state_before_the_turn() -> None:
    """A turn that itself brings the peak is not frozen by it; the next one is."""
    rows = decide(
        turn(affectSignal=felt(0.9), modelShape=shape("one")), turn(modelShape=shape("two")), turn("ok")
    ).rows
    assert [row["peakGuardrailActive"] for row in rows] == [False, True, True]
    assert rows[1]["memento"]["arc"] == "one"


def test_emotions_move_while_the_summary_is_frozen() -> None:
    """A thread can leave its peak: affect and update time move although the five fields are frozen."""
    peak = turn(affectSignal=felt(0.9))
    calm = turn(affectSignal=felt(0.2), modelShape=shape("two"), ts="2026-01-01T00:01:00Z")
    rows = decide(peak, calm, turn(modelShape=shape("three"))).rows
    assert rows[1]["peakGuardrailActive"] is True
    assert rows[1]["memento"]["affect"]["rollup"]["phase"] == "downshift"
    assert rows[1]["memento"]["updatedAt"] == "2026-01-01T00:01:00Z"
    assert rows[2]["memento"]["arc"] == "three"


def test_shapes_are_taken_exactly_as_given() -> None:
    """Empty lists replace full ones: nothing is merged, and nothing is read out of the message."""
    rows = decide(turn(modelShape=PROPOSED), turn("We decided to lock it.", modelShape=shape("bare"))).rows
    assert five(rows[1]) == shape("bare")


def test_an_equal_shape_counts_as_an_update() -> None:
    """`summaryUpdated` says that a shape was applied, not that something changed."""
    rows = decide(turn(modelShape=PROPOSED), turn(modelShape=PROPOSED)).rows
    assert rows[1]["summaryUpdated"] is True


def test_without_a_shape_the_summary_stays() -> None:
    """No proposal, no update."""
    rows = decide(turn(modelShape=PROPOSED), turn()).rows
    assert (five(rows[1]), rows[1]["summaryUpdated"]) == (PROPOSED, False)


@pytest.mark.parametrize(
    ("message", "policy", "is_applied"),
    [
        ("ok thanks", POLICY, True),
        ("ok thanks", BREAKPOINTS_ONLY, False),
        ("More.", BREAKPOINTS_ONLY, True),
    ],
)
def test_summary_policies(message: str, policy: RunPolicy, is_applied: bool) -> None:  # noqa: FBT001 - a column of the table
    """Away from peaks a `skip` updates the summary under `guardrail` and never under `breakpoints`."""
    row = decide(turn(message, modelShape=PROPOSED), policy=policy).rows[0]
    assert (row["summaryUpdated"], row["peakGuardrailActive"]) == (is_applied, False)


def test_every_decision_has_its_event() -> None:
    """The trace event of a turn follows from its result."""
    row = decide(turn(signals=signals("pivot"), context=AT_PEAK)).rows[0]
    event = breakpoint_event(
        run="r1",
        index=3,
        decision=row["decision"],
        peak_guardrail_active=row["peakGuardrailActive"],
        source=row["source"],
        ts=row["memento"]["updatedAt"],
    )
    assert event == {
        "traceRunId": "r1:3:trace",
        "transmissionId": "r1:3",
        "actor": "solserver",
        "phase": "breakpoint",
        "status": "completed",
        "summary": "Breakpoint decision: MUST",
        "metadata": {
            "kind": "breakpoint_engine",
            "decision": "must",
            "peakGuardrailActive": False,
            "source": "request_context.thread_memento",
        },
        "ts": "2026-01-01T00:00:00.000Z",
    }


def test_a_signal_in_the_metadata_of_a_turn_counts() -> None:
    """`meta.affect_signal`, as a model's reply has it, becomes a point unless the turn has its own signal."""
    spoken = {"label": "overwhelm", "intensity": "0.9", "confidence": "high"}
    rows = decide(
        turn(meta={"affect_signal": spoken}),
        turn(meta={"affect_signal": spoken}, affectSignal=felt(0.2)),
        turn(meta={"affect_signal": "calm"}),
        turn(meta={"note": "affect_signal"}),
        turn(meta={"affect_signal": spoken}, role="assistant"),
    ).rows
    points = [row["memento"]["affect"]["points"] for row in rows]
    assert [len(found) for found in points] == [1, 2, 2, 2, 2]
    assert [point["intensity"] for point in points[-1]] == [0.9, 0.2]
    assert points[0][0]["label"] == "overwhelm"


def test_a_signal_that_is_sent_again_counts_once_if_asked() -> None:
    """An old `decision_made` in every turn means `must` for ever, and once with the option."""
    packets = [turn(signals=signals("decision_made")), turn("go on"), turn(signals=signals("decision_made"))]
    again = [*packets, turn(signals=signals("decision_made", "pivot"))]
    literal = [row["decision"] for row in decide(*again).rows]
    once = [row["decision"] for row in decide(*again, policy=SIGNALS_ONCE).rows]
    assert literal == ["must", "should", "must", "must"]
    assert once == ["must", "should", "should", "must"]
