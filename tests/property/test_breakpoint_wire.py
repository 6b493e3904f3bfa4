"""The two contracts of a turn are one: what the door accepts, the worker reads as the same values."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from shared.contracts import mementos
from shared.contracts import turns as turns_contract
from shared.contracts.turns import Turn
from tests.support.turn_strategies import spelt, turns
from worker.breakpoint import memento, turn_wire
from worker.breakpoint.turn_wire import decode_turns

EDITS = [
    b"null",
    b"true",
    b"7",
    b'""',
    b"[]",
    b"{}",
    b",",
    b'"',
    b"\\",
    b"1e999",
    b"NaN",
    b" ",
    b"\x00",
    b"\xff",
]


def pruned(value: Any) -> Any:
    """A value without the keys that are not there, which both contracts read as None."""
    if isinstance(value, dict):
        return {name: pruned(inner) for name, inner in value.items() if inner is not None}
    return [pruned(inner) for inner in value] if isinstance(value, list | tuple) else value


def by_the_door(turn: Turn) -> dict[str, Any]:
    """What the door read, as plain values; free metadata apart."""
    document = turn.model_dump(mode="json")
    return {**pruned({**document, "meta": None}), "free": document["meta"]}


def by_the_worker(turn: turn_wire.WireTurn) -> dict[str, Any]:
    """What the worker read, as plain values; free metadata apart."""
    document = msgspec.json.decode(
        msgspec.json.encode(msgspec.structs.replace(turn, meta=msgspec.Raw(b"null")))
    )
    return {**pruned(document), "free": json.loads(bytes(turn.meta)) if turn.meta else None}


def read_by_both(line: bytes) -> bool:
    """Reads a line with both contracts; tells whether the door accepts it."""
    try:
        accepted = Turn.model_validate_json(line)
    except ValidationError:
        return False
    [decoded] = decode_turns(line)
    assert decoded is not None
    assert by_the_worker(decoded) == by_the_door(accepted)
    return True


@given(spelt(turns()))
def test_both_contracts_read_the_same(line: bytes) -> None:
    """Every valid turn, however it is spelt, is accepted by both and means the same."""
    assert read_by_both(line)


@given(spelt(turns()), st.data())
def test_whatever_the_door_accepts_the_worker_reads(line: bytes, data: st.DataObject) -> None:
    """Lines that were tampered with are refused, or mean the same to both."""
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(line)))
        end = data.draw(st.integers(start, min(len(line), start + 8)))
        line = line[:start] + data.draw(st.sampled_from(EDITS)) + line[end:]
    read_by_both(line)


@given(
    st.dictionaries(
        st.sampled_from([*Turn.model_fields, "extra"]), st.none() | st.booleans() | st.text() | st.just({})
    )
)
def test_shallow_nonsense_is_refused_or_means_the_same(packet: dict[str, Any]) -> None:
    """Objects with the right keys and wrong values never get past one contract only."""
    try:
        line = json.dumps(packet).encode()
    except UnicodeEncodeError:
        return
    read_by_both(line)


def test_a_repeated_key_means_its_last_value_to_both() -> None:
    """JSON allows a key twice; both contracts take the last."""
    assert read_by_both(b'{"threadId":"t","message":"one","message":"two"}')


@pytest.mark.parametrize(
    ("mirror", "contract"),
    [
        (turn_wire.WireTurn, turns_contract.Turn),
        (turn_wire.Context, turns_contract.TurnContext),
        (turn_wire.WireAffectSignal, turns_contract.AffectSignal),
        (turn_wire.SignalItem, mementos.ThreadMementoSignalItem),
        (turn_wire.Signals, mementos.ThreadMementoSignals),
        (turn_wire.RequestMemento, mementos.ThreadMemento),
        (turn_wire.MementoRef, mementos.ThreadMementoRef),
        (turn_wire.WireAffect, mementos.RequestAffect),
        (turn_wire.WirePoint, mementos.RequestAffectPoint),
        (turn_wire.WireRollup, mementos.AffectRollup),
        (turn_wire.WireShape, mementos.SummaryShape),
        (memento.KeptMemento, mementos.StoredMemento),
    ],
)
def test_the_mirror_has_every_field(mirror: type[msgspec.Struct], contract: type[BaseModel]) -> None:
    """No key of a contract is missing in its mirror, and none is there that the contract does not know."""
    assert {field.encode_name for field in msgspec.structs.fields(mirror)} == set(contract.model_fields)
