"""Threads that a model answers: as far as the next question, and from its answer on."""

import json
from dataclasses import replace
from typing import Any

import pytest

from shared.codecs.turn_batches import pack_batch
from tests.support.conversations import POLICY, batch, felt, shape, turn, with_memento
from tests.support.live_thread import ALL, MUST, SHOULD, Thread, codes, heard, live, prompt, rows
from worker.breakpoint.live_decisions import INTERNAL
from worker.breakpoint.thread_decider import Batch, Refusal, tally_of


def test_a_thread_is_decided_as_far_as_its_first_question() -> None:
    """Turns without a call are decided at once; nothing behind the question is."""
    thread = live(turn("ok"), turn("Rome?"), turn("thanks"), turn("And when?"))
    first = thread.step()
    assert codes(first) == ["k5a"]
    assert (first.question and first.question.offset) == 1
    second = thread.step(heard("Yes, Rome."))
    assert codes(second) == ["s6l", "k5a"]
    assert rows(second)[0]["response"] == "Yes, Rome."
    last = thread.step(heard("In May."))
    assert codes(last) == ["s6l"]
    assert last.question is None
    assert [row["etag"] for row in rows(second) + rows(last)] == ["2", "3", "4"]


def test_the_same_state_gives_the_same_question_again() -> None:
    """Whoever takes the thread over after a crash asks word by word the same."""
    thread = live(turn("Rome?"))
    one, two = thread.step(), thread.step()
    assert one == two
    assert one.outcome.state == b""
    assert one.outcome.blocks == []


@pytest.mark.parametrize(
    ("policy", "asked"), [(MUST, ["m"]), (SHOULD, ["m", "s"]), (ALL, ["m", "s", "k"])], ids=str
)
def test_the_run_says_which_decisions_are_worth_a_call(policy: Any, asked: list[str]) -> None:
    """Every other user turn is counted as a call avoided."""
    thread = live(turn("go", summaryChanged=True), turn("Rome?"), turn("ok"), policy=policy)
    step, seen = thread.step(), list[str]()
    while True:
        seen += codes(step)
        if step.question is None:
            break
        step = thread.step(heard())
    assert [code[0] for code in seen if "l" in code] == asked
    assert [code[0] for code in seen if "a" in code] == [word for word in "msk" if word not in asked]


def test_assistant_turns_and_recorded_shapes_make_no_call() -> None:
    """They are taken as they are, under every policy, and are no calls avoided."""
    recorded = turn("Rome?", modelShape=shape("recorded"), affectSignal=felt(0.5))
    step = live(turn("I am a bot.", role="assistant"), recorded, policy=ALL).step()
    assert step.question is None
    assert codes(step) == ["s6", "s6u"]
    assert rows(step)[1]["memento"]["arc"] == "recorded"
    assert rows(step)[1]["response"] is None


def test_the_reply_is_written_into_the_memento() -> None:
    """The shape becomes the summary, and the emotion a point anchored to the user's message."""
    thread = live(turn("Rome?", messageId="m7"))
    thread.step()
    mood = {"label": "resolve", "intensity": 0.9, "confidence": "high"}
    [row] = rows(thread.step(heard("Yes.", shape=shape("trip", next=["book"]), affect_signal=mood)))
    assert (row["memento"]["arc"], row["memento"]["next"]) == ("trip", ["book"])
    [point] = row["memento"]["affect"]["points"]
    assert (point["endMessageId"], point["label"], point["intensity"]) == ("m7", "resolve", 0.9)
    assert row["call"]["cost_usd"] == 0.25
    assert [(event["phase"], event["status"]) for event in row["events"]] == [
        ("retrieval", "started"),
        ("retrieval", "completed"),
        ("model_call", "completed"),
    ]


@pytest.mark.parametrize(
    ("proposed", "context", "word"),
    [
        (shape("new"), {}, "applied"),
        (shape("new"), with_memento(phase="peak", bucket="high"), "frozen"),
        (shape("x" * 201), {}, "invalid"),
        (shape("new", extra=[]), {}, "invalid"),
        (shape("new", active=["1", "2", "3", "4", "5", "6", "7"]), {}, "invalid"),
        ({"arc": "new"}, {}, "invalid"),
        ("new", {}, "invalid"),
        (None, {}, "none"),
    ],
)
def test_a_live_shape_is_applied_frozen_or_nothing(proposed: Any, context: dict[str, Any], word: str) -> None:
    """A peak freezes it, and an invalid one counts as none; the event says which."""
    thread = live(turn("Rome?", **({"context": context} if context else {})))
    thread.step()
    [row] = rows(thread.step(heard("Yes.", shape=proposed)))
    assert row["events"][-1]["metadata"]["shape"] == word
    assert row["summaryUpdated"] is (word == "applied")
    assert (row["memento"]["arc"] == "new") is (word == "applied")
    assert row["response"] == "Yes."


def test_a_call_given_up_leaves_the_thread_as_it_was() -> None:
    """The turn ends in the upstream's error, and the turns behind it go on."""
    thread = live(turn("Rome?"), turn("ok"), turn("When?"))
    thread.step()
    step = thread.step(Refusal("upstream_timeout", "no answer"))
    assert codes(step) == ["x0", "k5a"]
    [error, skip] = rows(step)
    assert error["error"] == {"code": "upstream_timeout", "message": "no answer"}
    assert (error["result"]["etag"], skip["etag"]) == ("0", "1")
    assert step.outcome.blocks[0].dead == [0]
    assert tally_of(step.outcome.blocks[0].codes) == {"error": 1, "skip": 1}
    assert step.outcome.blocks[0].figures == {"avoided": 1}
    assert "Rome?" not in prompt(step)


def test_a_repeated_request_asks_nobody() -> None:
    """A clientRequestId is answered from its first result, which counts as one call."""
    first = turn("Rome?", clientRequestId="c1")
    thread = Thread([batch([first, first], SHOULD)], known={})
    thread.step()
    step = thread.step(heard("Yes."))
    assert step.question is None
    assert codes(step) == ["s6l", "s6ld"]
    assert [row["response"] for row in rows(step)] == ["Yes.", "Yes."]
    assert step.outcome.blocks[0].figures["asked"] == 1
    assert [name for name, _ in step.outcome.requests] == ["c1"]


def test_turns_of_several_runs_stand_in_one_inbox() -> None:
    """Each is decided by the settings of its own run, and a block has the turns of one batch."""
    plain, asked = batch([turn("Rome?")], POLICY), batch([turn("When?")], SHOULD)
    thread = Thread([plain, asked])
    step = thread.step()
    assert codes(step) == ["s6"]
    assert (step.question and step.question.batch) == 1


def test_a_limit_decides_no_more_than_one_turn() -> None:
    """Suspects are worked on one turn at a time."""
    limited = replace(batch([turn("Rome?"), turn("ok")], SHOULD), limit=1)
    thread = Thread([limited])
    assert thread.step().question is not None
    assert codes(thread.step(heard())) == ["s6l"]


def test_a_turn_on_which_the_engine_fails_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It becomes an error of its own; the thread's state and its other turns are untouched."""

    def fail(_text: str) -> None:
        raise ArithmeticError

    thread = live(turn("Rome?"), turn("ok"))
    thread.step()
    monkeypatch.setattr("worker.breakpoint.live_decisions.read_reply", fail)
    step = thread.step(heard())
    assert codes(step) == ["x0", "k5a"]
    assert rows(step)[0]["error"]["code"] == INTERNAL
    assert [type(failure) for failure in step.failures] == [ArithmeticError]
    assert rows(step)[1]["etag"] == "1"


def test_a_bad_line_is_refused_and_the_next_turn_asked() -> None:
    """A line that is no turn does not end the thread."""
    lines = [b'{"threadId":7}', json.dumps(turn("Rome?")).encode()]
    thread = Thread([Batch(SHOULD, 0, pack_batch([0, 1], lines))])
    step = thread.step()
    assert codes(step) == ["x0"]
    assert step.question is not None
