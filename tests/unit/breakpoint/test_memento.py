"""A thread's memory: what a turn starts from, what it leaves behind, and who may see what."""

import json
from typing import Any

import pytest
from hypothesis import given

from shared.contracts.mementos import StoredMemento
from tests.support.conversations import (
    EARLIER,
    SUBMITTED_AT,
    decide,
    felt,
    memento,
    shape,
    signals,
    turn,
    with_memento,
)
from tests.support.turn_files import read_turns, stdin
from tests.support.turn_strategies import turns

FROM_REF = "request_context.thread_memento_ref"
FROM_REQUEST = "request_context.thread_memento"
FROM_STORE = "stored_latest"


def ref(memento_id: str = "memento_latest_t", **keys: str) -> dict[str, Any]:
    """A turn's context with a reference."""
    return {"thread_memento_ref": {"mementoId": memento_id, **keys}}


def test_a_new_thread_starts_from_the_seed() -> None:
    """The empty seed has the arc `support`, empty lists, no points, and the thread's name in its id."""
    row = decide(turn()).rows[0]
    assert row["source"] == FROM_STORE
    assert row["memento"] == {
        "mementoId": "memento_latest_t",
        "id": "memento_latest_t",
        "threadId": "t",
        "createdTs": SUBMITTED_AT,
        "createdAt": SUBMITTED_AT,
        "updatedAt": SUBMITTED_AT,
        "version": "memento-v0.1",
        "arc": "support",
        "active": [],
        "parked": [],
        "decisions": [],
        "next": [],
        "affect": {
            "points": [],
            "rollup": {"phase": "settled", "intensityBucket": "low", "updatedAt": SUBMITTED_AT},
        },
    }


def test_answers_keep_the_stored_form() -> None:
    """Whatever comes in, the answered memento is a v0.1 memento without private times and signals."""
    rows = decide(
        turn(affectSignal=felt(0.4), modelShape=shape("x", active=["y"])),
        turn(context=with_memento(signals=signals("pivot"))),
    ).rows
    for row in rows:
        StoredMemento.model_validate(row["memento"])
    assert b"pointTimes" not in b"".join(decide(turn(affectSignal=felt(0.4))).outcome.blocks[0].lines)


@given(turns())
def test_an_answered_memento_can_be_sent_back(sent: dict[str, Any]) -> None:
    """Input takes what output gives: the memento is the baseline, and the next answer says the same again."""
    first = decide(sent).rows[0]
    answered = first["result"]["memento"] if "error" in first else first["memento"]
    line = turn("And then?", context={"thread_memento": answered}, ts=answered["updatedAt"])
    [read] = read_turns(stdin([line]))
    [again] = decide(json.loads(read.raw)).rows
    assert (again["source"], again["memento"]) == (FROM_REQUEST, answered)


def test_identity_and_creation_are_kept_for_ever() -> None:
    """Id and creation time are those of the thread's first turn; the update time moves."""
    rows = decide(turn(ts="2026-01-01T10:00:00Z"), turn(ts="2026-01-01T11:00:00Z")).rows
    assert rows[1]["memento"]["createdTs"] == rows[1]["memento"]["createdAt"] == "2026-01-01T10:00:00Z"
    assert rows[1]["memento"]["updatedAt"] == "2026-01-01T11:00:00Z"


def test_a_request_memento_is_the_baseline() -> None:
    """A memento of the thread comes before what is stored, and its id and creation time are carried on."""
    first = decide(turn(modelShape=shape("stored")))
    rows = decide(turn(context=with_memento()), turn(), state=first.outcome.state).rows
    assert rows[0]["source"] == FROM_REQUEST
    assert [row["memento"]["arc"] for row in rows] == ["before", "before"]
    assert rows[1]["memento"]["mementoId"] == rows[1]["memento"]["id"] == "mem-1"
    assert rows[1]["memento"]["createdAt"] == EARLIER
    assert rows[1]["source"] == FROM_STORE


def test_a_memento_of_another_thread_is_ignored() -> None:
    """It is neither baseline nor heard: its signals do not decide and its peak does not freeze."""
    foreign = with_memento(threadId="u", phase="peak", bucket="high", signals=signals("pivot"))
    row = decide(turn(context=foreign, modelShape=shape("new"))).rows[0]
    assert (row["source"], row["rule"], row["peakGuardrailActive"]) == (FROM_STORE, 6, False)
    assert row["memento"]["arc"] == "new"


@pytest.mark.parametrize("context", [ref(), ref(threadId="t"), ref(createdTs=EARLIER)])
def test_a_reference_to_the_stored_memento_wins(context: dict[str, Any]) -> None:
    """A matching reference comes before the request's memento, whose signals are then ignored too."""
    stored = decide(turn(modelShape=shape("stored"))).outcome.state
    both = {**context, **with_memento(signals=signals("pivot"))}
    row = decide(turn(context=both), state=stored).rows[0]
    assert (row["source"], row["memento"]["arc"], row["rule"]) == (FROM_REF, "stored", 6)


@pytest.mark.parametrize("context", [ref("other"), ref(threadId="u")])
def test_a_reference_to_something_else_is_ignored(context: dict[str, Any]) -> None:
    """The request's memento is next in line, then the stored one."""
    stored = decide(turn(modelShape=shape("stored"))).outcome.state
    assert decide(turn(context=context), state=stored).rows[0]["source"] == FROM_STORE
    both = {**context, **with_memento()}
    assert decide(turn(context=both), state=stored).rows[0]["source"] == FROM_REQUEST


def test_a_reference_in_a_new_thread_is_ignored() -> None:
    """Where nothing is stored, nothing can be referred to."""
    assert decide(turn(context=ref())).rows[0]["source"] == FROM_STORE


def test_the_turns_own_signals_count_whatever_the_baseline() -> None:
    """Signals on the turn itself are heard also when its memento is ignored."""
    context = with_memento(threadId="u")
    assert decide(turn(context=context, signals=signals("pivot"))).rows[0]["rule"] == 2


def test_a_clients_rollup_is_trusted_until_the_next_point() -> None:
    """Points may contradict the rollup: it decides as it is, and is computed anew with the next point."""
    client = memento(phase="settled", bucket="med")
    client["affect"]["points"] = [
        {
            "endMessageId": "m0",
            "label": "insight",
            "intensity": 0.85,
            "confidence": "low",
            "source": "sentinel",
        }
    ]
    kept, moved = decide(
        turn(context={"thread_memento": client}, ts="2025-12-31T23:10:00Z"),
        turn(affectSignal=felt(0.85), ts="2025-12-31T23:11:00Z"),
    ).rows
    assert kept["memento"]["affect"]["rollup"] == client["affect"]["rollup"]
    assert kept["memento"]["affect"]["points"][0]["source"] == "server"
    assert moved["memento"]["affect"]["rollup"]["phase"] == "peak"


def test_a_long_list_of_a_request_memento_is_kept() -> None:
    """Mementos may hold longer lists than proposals, and keep them."""
    row = decide(turn(context=with_memento(active=[f"a{at}" for at in range(40)]))).rows[0]
    assert len(row["memento"]["active"]) == 40
