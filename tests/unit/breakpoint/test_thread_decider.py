"""Batches and blocks: what stands in a line, in which order, and that parts make up the whole."""

import json
import subprocess
import sys

import pytest

from shared.codecs.turn_batches import Block, pack_block, unpack_block
from shared.codecs.turn_lines import expand
from tests.support.conversations import POLICY, batch, decide, felt, shape, signals, turn
from tests.support.tree import ROOT
from worker.breakpoint.thread_decider import (
    Batch,
    Refusal,
    RunPolicy,
    decide_thread,
    public_state,
    refused_line,
    tally_of,
)

KEYS = [
    "threadId",
    "messageId",
    "decision",
    "rule",
    "peakGuardrailActive",
    "summaryUpdated",
    "reason",
    "source",
    "etag",
    "memento",
    "response",
]


def test_a_result_has_the_promised_keys_in_order() -> None:
    """A decided turn's line is the `result` object itself."""
    [row] = decide(turn("Now trains, please.", signals=signals("pivot"), messageId="m3")).rows
    assert list(row) == KEYS
    assert {key: row[key] for key in KEYS if key != "memento"} == {
        "threadId": "t",
        "messageId": "m3",
        "decision": "must",
        "rule": 2,
        "peakGuardrailActive": False,
        "summaryUpdated": False,
        "reason": "MUST signal pivot",
        "source": "stored_latest",
        "etag": "1",
        "response": None,
    }


def test_an_error_has_the_same_keys_in_its_result() -> None:
    """A refused turn's line holds error and result."""
    [row] = decide(turn(thread_memento_etag="9")).rows
    assert list(row) == ["error", "result"]
    assert list(row["error"]) == ["code", "message"]
    assert list(row["result"]) == KEYS
    assert row["result"]["reason"] == row["error"]["message"]


def test_codes_say_what_happened() -> None:
    """Decision, rule and flags of each turn, and their counts."""
    decided = decide(
        turn(summaryChanged=True, affectSignal=felt(0.9), modelShape=shape("one")),
        turn(signals=signals("scope_changed"), modelShape=shape("two")),
        turn(signals=signals("risk_or_conflict"), modelShape=shape("three")),
        turn(driftRisk=True),
        turn("ok"),
        turn(),
        turn(thread_memento_etag="0"),
    )
    assert decided.codes == ["m1u", "m2u", "s3f", "s4f", "k5f", "s6f", "x0"]
    block = decided.outcome.blocks[0]
    assert tally_of(block.codes) == {"must": 2, "should": 3, "skip": 1, "error": 1, "frozen": 4, "updated": 2}
    assert block.dead == [6]


def test_message_ids_default_to_thread_and_position_in_the_input() -> None:
    """The default is stable: it depends on nothing but the input."""
    decided = decide(turn(), turn(messageId="own"), turn(), first_index=40)
    assert [row["messageId"] for row in decided.rows] == ["t#40", "own", "t#42"]


def test_blocks_can_be_packed_as_they_are() -> None:
    """A block fits the rows that producer and worker share."""
    block = decide(turn('café ☕ \u2028 \\ " \x7f'), turn("ok")).outcome.blocks[0]
    packed = Block(block.offset, 1, 2, block.indexes, block.codes, block.lines)
    assert unpack_block(pack_block(packed)) == packed


def test_turns_of_other_runs_follow_their_own_settings() -> None:
    """An inbox may hold turns of several runs: each run's time and policy count for its own turns."""
    batches = [
        batch([turn("ok", modelShape=shape("one"))], RunPolicy("r1", 0, "breakpoints"), 5),
        batch([turn("ok", modelShape=shape("two"))], RunPolicy("r2", 1_000, "guardrail"), 7),
    ]
    outcome = decide_thread(thread="t", state=b"", batches=batches, known={})
    assert [(block.indexes, block.codes) for block in outcome.blocks] == [([5], ["k5"]), ([7], ["k5u"])]
    stored = json.loads(public_state(outcome.state)[1])
    assert (stored["createdTs"], stored["updatedAt"]) == (
        "1970-01-01T00:00:00.000Z",
        "1970-01-01T00:00:01.000Z",
    )


@pytest.mark.parametrize("at", range(6))
def test_a_batch_may_be_decided_in_parts(at: int) -> None:
    """Offset and limit cut a batch anywhere, and the parts say what the whole says."""
    turns = [turn(f"Step {n}.", modelShape=shape(f"arc {n}"), affectSignal=felt(n / 6)) for n in range(6)]
    whole = decide(*turns)
    payload = batch(turns).payload
    first = decide_thread(thread="t", state=b"", batches=[Batch(POLICY, 0, payload, at)], known={})
    rest = decide_thread(thread="t", state=first.state, batches=[Batch(POLICY, at, payload)], known={})
    blocks = [first.blocks[0], rest.blocks[0]]
    lines = [line for block in blocks for line in expand(block.codes, block.lines)]
    assert lines == whole.outcome.blocks[0].lines
    assert [index for block in blocks for index in block.indexes] == list(range(6))
    assert [block.offset for block in blocks] == [0, at]
    assert rest.state == whole.outcome.state


def test_dead_positions_count_from_the_start_of_the_batch() -> None:
    """A part that begins later names its errors by their place in the whole batch."""
    payload = batch([turn(), turn(), turn(thread_memento_etag="9")]).payload
    first = decide_thread(thread="t", state=b"", batches=[Batch(POLICY, 0, payload, 2)], known={})
    rest = decide_thread(thread="t", state=first.state, batches=[Batch(POLICY, 2, payload)], known={})
    assert rest.blocks[0].dead == [2]


def test_a_line_that_is_no_turn_spoils_nothing_else() -> None:
    """A line that somehow slipped past the door is an error of its own; its neighbours are decided."""
    good = json.dumps(turn()).encode()
    for bad in (b"{broken", b'{"threadId":"t"}', b"\xff", b"null", b"[" * 3_000):
        lines = Batch(POLICY, 0, b"4,5,6\n" + b"\n".join([good, bad, good]))
        outcome = decide_thread(thread="t", state=b"", batches=[lines], known={})
        assert outcome.blocks[0].codes == ["s6", "x0", "s6"]
        row = json.loads(outcome.blocks[0].lines[1])
        assert (row["error"]["code"], row["result"]["messageId"]) == ("invalid_turn", "t#5")


def test_the_public_state_is_the_last_result() -> None:
    """Etag and memento of a stored thread are those of its last turn, without what is private."""
    decided = decide(turn(affectSignal=felt(0.4)), turn(modelShape=shape("two")))
    etag, memento = public_state(decided.outcome.state)
    assert etag == decided.rows[-1]["etag"] == "2"
    assert json.loads(memento) == decided.rows[-1]["memento"]


def test_nothing_is_decided_for_an_empty_inbox() -> None:
    """Without batches the state stays."""
    state = decide(turn()).outcome.state
    outcome = decide_thread(thread="t", state=state, batches=[], known={})
    assert outcome.state == state
    assert outcome.blocks == []


def test_deciding_needs_no_pydantic() -> None:
    """The engine starts without the contracts of the door, which cost a worker time and memory."""
    program = "import sys, worker.breakpoint.thread_decider; print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize("state", [b"", decide(turn(modelShape=shape("one"))).outcome.state])
def test_lines_of_turns_that_nobody_decided(state: bytes) -> None:
    """Poison and engine failures are written in the form of every other refusal."""
    line = refused_line("t", "t#4", Refusal("poison", "lost"), state=state, now_ms=0)
    row = json.loads(line)
    assert list(row["result"]) == KEYS
    assert (row["error"], row["result"]["reason"]) == ({"code": "poison", "message": "lost"}, "lost")
    assert row["result"]["memento"]["arc"] == ("one" if state else "support")
    assert row["result"]["etag"] == ("1" if state else "0")
