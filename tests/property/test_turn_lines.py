"""The short form of result lines loses nothing: what is read again is what a plain encoding would be."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.codecs.turn_batches import Block, pack_block, unpack_block
from shared.codecs.turn_lines import LineWriter, expand
from tests.support.conversations import BREAKPOINTS_ONLY, POLICY, batch
from tests.support.turn_strategies import turns
from worker.breakpoint.lines import ResultLine, encode
from worker.breakpoint.memento import seed, updated
from worker.breakpoint.orchestrator import Refusal, RunPolicy, Thread, run_turn
from worker.breakpoint.thread_decider import Batch, decide_thread
from worker.breakpoint.turn_wire import WireAffectSignal, decode_turns

conversations = st.lists(turns(), min_size=1, max_size=8)
policies = st.sampled_from([POLICY, BREAKPOINTS_ONLY])
NOON = "2026-01-01T12:00:00.000Z"


def plainly(packets: list[dict[str, Any]], policy: RunPolicy) -> list[bytes | None]:
    """The results of a conversation as msgspec writes them; None for turns that are refused or repeated."""
    thread, lines, seen = Thread("t"), list[bytes | None](), set[str]()
    body = batch(packets).payload.partition(b"\n")[2]
    for index, turn in enumerate(decode_turns(body)):
        assert turn is not None
        if turn.client_request_id in seen:
            lines.append(None)
            continue
        message_id = turn.message_id or f"t#{index}"
        result = run_turn(turn, thread, policy, message_id)
        if isinstance(result, Refusal):
            lines.append(None)
            continue
        seen.update(filter(None, [turn.client_request_id]))
        decision, rule, reason = result.verdict
        frozen, applied = result.peak_guardrail_active, result.summary_updated
        memento = msgspec.Raw(encode(result.latest.memento))
        line = ResultLine(
            "t", message_id, decision, rule, frozen, applied, reason, result.source, thread.etag, memento
        )
        lines.append(encode(line))
    return lines


@given(conversations, policies, st.data())
def test_what_is_read_again_is_the_plain_encoding(
    packets: list[dict[str, Any]], policy: RunPolicy, data: st.DataObject
) -> None:
    """Byte for byte, wherever visits are cut, for turns with times, requests and mementos of their own."""
    state, known, found, offset = b"", dict[str, bytes](), list[bytes](), 0
    while offset < len(packets):
        limit = data.draw(st.integers(1, len(packets) - offset))
        part = Batch(policy, offset, batch(packets).payload, limit)
        outcome = decide_thread(thread="t", state=state, batches=[part], known=known)
        [decided] = outcome.blocks
        value = pack_block(Block(offset, 1, 2, decided.indexes, decided.codes, decided.lines))
        found += expand(decided.codes, unpack_block(value).lines)
        state, offset = outcome.state, offset + limit
    for expected, line in zip(plainly(packets, policy), found, strict=True):
        assert expected in (None, line)


def test_a_line_says_only_what_is_new() -> None:
    """After the first line, a turn that changes nothing costs its name and a number."""
    writer, latest = LineWriter(), seed("t", NOON)
    why = "s6", "no other rule matched", "stored_latest"
    first, second = (writer.line(f"m{count}", why, count, latest, latest) for count in (1, 2))
    assert second == b'["m2",0]'
    assert len(first) > 10 * len(second)
    assert b'"etag":"2"' in expand(["s6", "s6"], [first, second])[1]


def test_points_that_fall_out_of_the_middle_are_written_whole() -> None:
    """Times may go backwards, so that the oldest point is not the first: then nothing is shortened."""
    writer, why, latest = LineWriter(), ("s6", "r", "s"), seed("t", NOON)
    lines, plain = [], []
    for count, clock in enumerate(("12:00", "11:00", "12:10", "12:20"), 1):
        now = f"2026-01-01T{clock}:00.000Z"
        before, latest = (
            latest,
            updated(latest, None, WireAffectSignal("resolve", 0.1 * count), f"m{count}", now),
        )
        lines.append(writer.line(f"m{count}", why, count, before, latest))
        plain.append(encode(latest.memento))
    assert [point.end_message_id for point in latest.affect.points] == ["m1", "m3", "m4"]
    for line, memento in zip(expand(["s6"] * 4, lines), plain, strict=True):
        assert b'"memento":' + memento + b"," in line


def test_lines_in_full_stay_as_they_are() -> None:
    """Errors, repeated answers and a poisoned turn's state are no short lines."""
    lines = [b'{"error":{}}', b"", b'{"count":1}']
    assert expand(["x0", "x0p", "s6d"], lines) == lines
