"""The flow holds its promises for every conversation: deterministic, and in parts as in one."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.mementos import StoredMemento
from shared.contracts.turns import Turn
from tests.support.conversations import BREAKPOINTS_ONLY, POLICY, SIGNALS_ONCE, Decided, decide
from tests.support.turn_strategies import turns
from worker.breakpoint.affect import rollup
from worker.breakpoint.orchestrator import RunPolicy
from worker.breakpoint.thread_decider import tally_of

FIVE = ("arc", "active", "parked", "decisions", "next")
conversations = st.lists(turns(), min_size=1, max_size=6)
policies = st.sampled_from([POLICY, BREAKPOINTS_ONLY, SIGNALS_ONCE])


def five(row: dict[str, Any]) -> list[Any]:
    """The five summary fields after a turn."""
    return [row["memento"][name] for name in FIVE]


@given(conversations, policies)
def test_the_same_conversation_gives_the_same_bytes(packets: list[dict[str, Any]], policy: RunPolicy) -> None:
    """There is no clock, no chance and no memory in it."""
    assert decide(*packets, policy=policy) == decide(*packets, policy=policy)


@given(conversations, policies, st.data())
def test_visits_may_be_cut_anywhere(
    packets: list[dict[str, Any]], policy: RunPolicy, data: st.DataObject
) -> None:
    """A thread that is stored and visited again between any two turns comes out the same."""
    whole = decide(*packets, policy=policy)
    state, lines, at = b"", list[bytes](), 0
    while at < len(packets):
        size = data.draw(st.integers(1, len(packets) - at))
        part = decide(*packets[at : at + size], state=state, policy=policy, first_index=at)
        state, at = part.outcome.state, at + size
        lines += part.outcome.blocks[0].lines
    assert lines == whole.outcome.blocks[0].lines
    assert state == whole.outcome.state


@given(conversations, policies)
def test_every_result_keeps_the_promises(packets: list[dict[str, Any]], policy: RunPolicy) -> None:
    """Etags count, mementos have the stored form, and summaries move only when they may."""
    decided = decide(*packets, policy=policy)
    committed = 0
    previous: dict[str, Any] | None = None
    for packet, row, line in zip(packets, decided.rows, decided.outcome.blocks[0].lines, strict=True):
        assert b"\n" not in line
        result = row.get("result", row)
        StoredMemento.model_validate(result["memento"])
        if "error" in row:
            assert row["error"]["code"] == "etag_conflict"
            assert packet["thread_memento_etag"] != str(committed) == result["etag"]
            continue
        committed += 1
        assert result["etag"] == str(committed)
        assert (result["decision"] == "must") is (result["rule"] in (1, 2))
        check_summary(packet, result, previous, policy)
        check_affect(packet, result, previous)
        previous = result
    assert tally_of(decided.outcome.blocks[0].codes).get("error", 0) == len(packets) - committed


def check_summary(
    packet: dict[str, Any], result: dict[str, Any], previous: dict[str, Any] | None, policy: RunPolicy
) -> None:
    """A summary is the proposed one when it may be, and the baseline's otherwise."""
    is_skip = result["decision"] == "skip" and policy is BREAKPOINTS_ONLY
    is_applied = "modelShape" in packet and not result["peakGuardrailActive"] and not is_skip
    assert result["summaryUpdated"] is is_applied
    assert not (result["peakGuardrailActive"] and result["decision"] == "must")
    if is_applied:
        assert five(result) == [packet["modelShape"][name] for name in FIVE]
    elif result["source"] == "request_context.thread_memento":
        assert five(result) == [packet["context"]["thread_memento"][name] for name in FIVE]
    elif previous is not None:
        assert five(result) == five(previous)


def check_affect(packet: dict[str, Any], result: dict[str, Any], previous: dict[str, Any] | None) -> None:
    """Points come from user turns only and are anchored to them."""
    affect = result["memento"]["affect"]
    if "affectSignal" in packet and packet.get("role", "user") == "user":
        assert affect["points"][-1]["endMessageId"] == result["messageId"]
        assert affect["points"][-1]["intensity"] == packet["affectSignal"]["intensity"]
        rolled = rollup([point["intensity"] for point in affect["points"]])
        assert (affect["rollup"]["phase"], affect["rollup"]["intensityBucket"]) == rolled
    elif result["source"] == "stored_latest" and previous is not None:
        assert affect == previous["memento"]["affect"]


def signals_of(packet: dict[str, Any], source: str) -> list[dict[str, Any]]:
    """The items that a turn is decided by: its own, else those of its memento where that is the baseline."""
    found = packet.get("signals")
    if found is None and source == "request_context.thread_memento":
        found = packet["context"]["thread_memento"].get("signals")
    return list((found or {}).get("items", ()))


@given(st.lists(turns(), min_size=1, max_size=12))
def test_a_signal_counts_once(packets: list[dict[str, Any]]) -> None:
    """With the option each decision is the one without the signals that decided turns had sent before."""
    once = decide(*packets, policy=SIGNALS_ONCE)
    counted, stripped = set[tuple[str, str]](), list[dict[str, Any]]()
    for packet, row in zip(packets, once.rows, strict=True):
        result = row.get("result", row)
        items = signals_of(packet, result["source"]) if "error" not in row else []
        fresh = [item for item in items if (item["endMessageId"], item["kind"]) not in counted]
        counted |= {(item["endMessageId"], item["kind"]) for item in items}
        updated_at = {"updatedAt": "2026-01-01T00:00:00Z"}
        stripped.append({**packet, "signals": {**updated_at, "items": fresh}} if items else packet)
    plain = decide(*stripped, policy=POLICY)
    assert [row.get("result", row)["decision"] for row in once.rows] == [
        row.get("result", row)["decision"] for row in plain.rows
    ]


@given(conversations)
def test_generated_turns_are_valid(packets: list[dict[str, Any]]) -> None:
    """What these tests decide is what the door lets in."""
    for packet in packets:
        Turn.model_validate_json(json.dumps(packet))


@given(conversations)
def test_codes_agree_with_their_lines(packets: list[dict[str, Any]]) -> None:
    """A code says in letters what its line says in JSON."""
    decided: Decided = decide(*packets)
    for code, row in zip(decided.codes, decided.rows, strict=True):
        if "error" in row:
            assert code == "x0"
        else:
            letter = {"must": "m", "should": "s", "skip": "k"}[row["decision"]]
            flags = "f" * row["peakGuardrailActive"] + "u" * row["summaryUpdated"]
            assert code == f"{letter}{row['rule']}{flags}"
