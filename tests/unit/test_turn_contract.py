"""The contract of turns: what a line may say, and that everything else is refused at the door."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from shared import ThreadMementoSignalItem, ThreadMementoSignalKind, ThreadMementoSignals
from shared.contracts.mementos import ThreadMemento
from shared.contracts.turns import Turn
from tests.support.conversations import EARLIER, felt, memento, shape, signals, turn

ITEM = {"endMessageId": "m1", "kind": "pivot", "confidence": "low", "source": "server"}
POINT = {
    "endMessageId": "m1",
    "label": "resolve",
    "intensity": 0.5,
    "confidence": "med",
    "source": "sentinel",
}


def read(packet: Any) -> Turn:
    """Reads a turn as the producer does, from JSON text."""
    return Turn.model_validate_json(json.dumps(packet))


def affect(points: list[dict[str, Any]], **rollup: str) -> dict[str, Any]:
    """The emotional state of a client's memento."""
    settled = {"phase": "settled", "intensityBucket": "low", "updatedAt": EARLIER}
    return {"points": points, "rollup": {**settled, **rollup}}


def in_memento(**keys: Any) -> dict[str, Any]:
    """A turn whose context holds a memento with these keys."""
    return turn(context={"thread_memento": memento(**keys)})


FULL = turn(
    messageId="m9",
    role="user",
    clientRequestId="c1",
    context={
        "thread_memento": memento(signals=signals("pivot", summary="x" * 180), affect=affect([POINT] * 5)),
        "thread_memento_ref": {"mementoId": "mem-1", "threadId": "t", "createdTs": EARLIER},
    },
    contextWindowPressure=True,
    driftRisk=False,
    summaryChanged=False,
    affectSignal=felt(0.5),
    ts="2026-01-01T00:00:00.123Z",
    modelShape=shape("x" * 200, active=["y" * 160] * 6),
    thread_memento_etag="4",
    meta={"anything": [1, {"at": None}]},
)


def test_a_turn_needs_thread_and_message_only() -> None:
    """Everything but threadId and message has a default."""
    read_turn = read({"threadId": "t", "message": "hi"})
    assert (read_turn.role, read_turn.signals, read_turn.summaryChanged) == ("user", None, False)


def test_a_turn_with_every_key_is_accepted() -> None:
    """The contract accepts a v0.2 memento with signals, and every other key."""
    context = read(FULL).context
    assert context is not None
    assert isinstance(context.thread_memento, ThreadMemento)
    assert context.thread_memento.signals is not None
    assert context.thread_memento.signals.items[0].kind == ThreadMementoSignalKind.PIVOT


def test_turns_are_frozen() -> None:
    """A validated turn cannot be changed."""
    with pytest.raises(ValidationError, match="frozen"):
        read(turn()).message = "other"  # type: ignore[misc] # this is what must fail


REFUSED = {
    "no thread": {"message": "hi"},
    "empty thread": turn(threadId=""),
    "no message": {"threadId": "t"},
    "empty message": turn(""),
    "message of 20,001 characters": turn("x" * 20_001),
    "message that is no text": {"threadId": "t", "message": 7},
    "unknown key": turn(sinals=signals()),
    "unknown role": turn(role="system"),
    "flag as text": turn(driftRisk="true"),
    "flag as number": turn(summaryChanged=1),
    "empty messageId": turn(messageId=""),
    "etag as number": turn(thread_memento_etag=3),
    "nine signals": turn(signals=signals(*["pivot"] * 9)),
    "unknown kind": turn(signals=signals("pivots")),
    "signals without time": turn(signals={"items": []}),
    "signals with an unknown key": turn(signals={**signals(), "more": 1}),
    "items null": turn(signals={"updatedAt": EARLIER, "items": None}),
    "item without message": turn(signals=signals("pivot", endMessageId="")),
    "item with an unknown key": turn(signals=signals("pivot", weight=1)),
    "item of unknown source": turn(signals=signals("pivot", source="device_hint")),
    "item of unknown confidence": turn(signals=signals("pivot", confidence="medium")),
    "summary of 181 characters": turn(signals=signals("pivot", summary="x" * 181)),
    "summary null": turn(signals=signals("pivot", summary=None)),
    "signals twice": {**in_memento(signals=signals()), "signals": signals()},
    "context with an unknown key": turn(context={"memento": memento()}),
    "stored memento in a request": in_memento(version="memento-v0.1"),
    "arc of 201 characters": in_memento(arc="x" * 201),
    "empty list entry": in_memento(active=[""]),
    "six points": in_memento(affect=affect([POINT] * 6)),
    "point above 1": in_memento(affect=affect([{**POINT, "intensity": 1.01}])),
    "point without label": in_memento(affect=affect([{**POINT, "label": ""}])),
    "point of unknown source": in_memento(affect=affect([{**POINT, "source": "user"}])),
    "unknown phase": in_memento(affect=affect([], phase="calm")),
    "memento without affect": turn(context={"thread_memento": {"mementoId": "m", "threadId": "t"}}),
    "ref without memento": turn(context={"thread_memento_ref": {"threadId": "t"}}),
    "ref with an unknown key": turn(context={"thread_memento_ref": {"mementoId": "m", "arc": "x"}}),
    "intensity above 1": turn(affectSignal=felt(1.5)),
    "intensity as text": turn(affectSignal={**felt(1), "intensity": "1"}),
    "intensity as flag": turn(affectSignal={**felt(1), "intensity": True}),
    "confidence of unknown name": turn(affectSignal=felt(1, confidence="sure")),
    "affect with an unknown key": turn(affectSignal={**felt(1), "mood": "x"}),
    "shape without next": turn(modelShape={"arc": "x", "active": [], "parked": [], "decisions": []}),
    "shape with empty arc": turn(modelShape=shape("")),
    "shape with seven entries": turn(modelShape=shape("x", active=["y"] * 7)),
    "shape with an entry of 161 characters": turn(modelShape=shape("x", next=["y" * 161])),
    "shape with an unknown key": turn(modelShape={**shape("x"), "mood": "x"}),
    "meta that is no object": turn(meta=[1]),
    "an infinite number in meta": turn(meta={"deep": [float("inf")]}),
    "no number in meta": turn(meta={"deep": {"er": float("nan")}}),
    "no object": [turn()],
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_contract_refuses(what: str) -> None:
    """A line that says anything else is refused."""
    with pytest.raises(ValidationError):
        read(REFUSED[what])


OPTIONAL = sorted(set(FULL) - {"threadId", "message"})


@pytest.mark.parametrize("key", OPTIONAL)
def test_an_optional_key_may_be_absent_not_null(key: str) -> None:
    """Every optional key may be left out, and none may be null."""
    read({name: value for name, value in FULL.items() if name != key})
    with pytest.raises(ValidationError, match=key):
        read({**FULL, key: None})


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00Z", "2024-02-29T23:59:59.123456789Z"])
def test_times_in_utc_are_accepted(time: str) -> None:
    """A time is ISO 8601 in UTC, written with Z, with or without a fraction."""
    assert read(turn(ts=time)).ts == time


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T01:00:00+01:00",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00z",
        "2026-01-01T00:00Z",
        "2026-01-01",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00Z\n",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "0000-01-01T00:00:00Z",
        "\u0662\u0660\u0662\u0666-01-01T00:00:00Z",
        "",
        1_767_225_600,
        "now",
    ],
)
def test_other_times_are_refused(time: object) -> None:
    """Naive times, offsets, days that do not exist, and other forms are refused everywhere."""
    for packet in (turn(ts=time), turn(signals={"updatedAt": time}), in_memento(createdTs=time)):
        with pytest.raises(ValidationError):
            read(packet)


def test_a_message_may_have_twenty_thousand_characters() -> None:
    """The bound counts characters, not bytes."""
    assert len(read(turn("é" * 20_000)).message) == 20_000


def test_items_default_to_none_at_all() -> None:
    """Signals without items have no items."""
    assert ThreadMementoSignals.model_validate({"updatedAt": EARLIER}).items == []


def test_plain_texts_are_words_of_the_vocabularies() -> None:
    """The contracts take plain texts and members alike, in Python as in JSON."""
    assert ThreadMementoSignalItem.model_validate(ITEM).kind == "pivot"
    assert (
        ThreadMementoSignalItem.model_validate({**ITEM, "kind": ThreadMementoSignalKind.PIVOT}).kind
        == "pivot"
    )


def test_eight_signals_are_accepted() -> None:
    """All eight kinds, in eight items."""
    packet = read(turn(signals=signals(*ThreadMementoSignalKind)))
    assert packet.signals is not None
    assert [item.kind for item in packet.signals.items] == list(ThreadMementoSignalKind)


def test_meta_may_hold_the_affect_of_a_reply() -> None:
    """Model metadata such as `meta.affect_signal` is accepted and kept out of the decision."""
    assert read(turn(meta={"affect_signal": felt(0.9), "mood": "x"})).affectSignal is None
