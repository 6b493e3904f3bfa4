"""Repeated requests and stale tokens: the first result again, or an error, and nothing written."""

import json

import pytest

from tests.support.conversations import batch, decide, felt, shape, signals, turn
from worker.breakpoint.thread_decider import Batch, decide_thread, request_ids, tally_of

PROPOSED = turn("Friday then.", clientRequestId="c1", modelShape=shape("one"), affectSignal=felt(0.4))


def test_a_repeated_request_gets_the_first_result() -> None:
    """The same content under the same id is answered with the first line, flagged, and changes nothing."""
    decided = decide(PROPOSED, turn("More."), PROPOSED)
    first, _, again = decided.outcome.blocks[0].lines
    assert again == first
    assert decided.codes == ["s6u", "s6", "s6ud"]
    assert tally_of(decided.outcome.blocks[0].codes) == {"should": 3, "updated": 2, "duplicate": 1}
    assert json.loads(decided.outcome.state)["count"] == 2
    assert [name for name, _ in decided.outcome.requests] == ["c1"]


def test_ids_are_known_across_visits_runs_and_threads() -> None:
    """What the namespace remembers is enough: a later visit answers from it."""
    known: dict[str, bytes] = {}
    first = decide(PROPOSED, known=known)
    stored = dict(first.outcome.requests)
    assert stored == known
    later = decide(PROPOSED, state=first.outcome.state, known=dict(stored), first_index=9)
    assert later.codes == ["s6ud"]
    assert later.outcome.blocks[0].lines == first.outcome.blocks[0].lines
    assert later.outcome.state == first.outcome.state
    assert later.outcome.requests == []


def test_the_same_item_is_no_duplicate_of_itself() -> None:
    """An item that is decided again, after a retry, gets its first result unflagged: its trace stays."""
    first = decide(PROPOSED)
    again = decide(PROPOSED, state=first.outcome.state, known=dict(first.outcome.requests))
    assert (again.codes, again.rows) == (["s6u"], first.rows)
    assert again.outcome.state == first.outcome.state


@pytest.mark.parametrize(
    "other",
    [
        {**PROPOSED, "message": "Monday then."},
        {**PROPOSED, "messageId": "m1"},
        {**PROPOSED, "signals": signals()},
        {**PROPOSED, "modelShape": shape("two")},
        {**PROPOSED, "meta": {"a": 1}},
        {**PROPOSED, "role": "assistant"},
    ],
)
def test_other_content_under_the_same_id_is_a_conflict(other: dict[str, object]) -> None:
    """The turn ends in an error with the thread's state as it stays; nothing is written."""
    first = decide(PROPOSED)
    decided = decide(other, state=first.outcome.state, known=dict(first.outcome.requests), first_index=1)
    [row] = decided.rows
    assert row["error"]["code"] == "idempotency_conflict"
    assert (row["result"]["decision"], row["result"]["rule"], row["result"]["etag"]) == (None, None, "1")
    assert row["result"]["memento"] == first.rows[0]["memento"]
    assert (decided.codes, decided.outcome.blocks[0].dead) == (["x0"], [0])
    assert (decided.outcome.state, decided.outcome.requests) == (first.outcome.state, [])


def test_the_same_content_in_another_thread_is_a_conflict() -> None:
    """The thread is part of what a request says."""
    known = dict(decide(PROPOSED).outcome.requests)
    outcome = decide_thread(
        thread="u", state=b"", batches=[batch([{**PROPOSED, "threadId": "u"}])], known=known
    )
    assert outcome.blocks[0].codes == ["x0"]
    assert outcome.state == b""


def test_spelling_is_not_content() -> None:
    """Order of keys, white space, defaults and the spelling of numbers and characters do not matter."""
    first = json.dumps({**PROPOSED, "meta": {"a": 1, "b": "é"}}).encode()
    keys = {"meta": {"b": "é", "a": 1}, "role": "user", "driftRisk": False, **PROPOSED}
    again = json.dumps(keys, indent=None, separators=(" , ", " : "), ensure_ascii=False).encode()
    lines = Batch(batch([]).policy, 0, b"0,1\n" + first + b"\n" + again)
    assert decide_thread(thread="t", state=b"", batches=[lines], known={}).blocks[0].codes == ["s6u", "s6ud"]


@pytest.mark.parametrize("sent", [{"ts": "2026-01-01T00:00:05Z"}, {"thread_memento_etag": "1"}, {}])
def test_when_it_was_sent_is_not_content(sent: dict[str, str]) -> None:
    """A client that repeats a request stamps it anew and may have read the token again: the first result."""
    first = {**PROPOSED, "ts": "2026-01-01T00:00:00Z", "thread_memento_etag": "0"}
    decided = decide(first, {**PROPOSED, **sent})
    assert decided.codes == ["s6u", "s6ud"]
    assert decided.rows[0] == decided.rows[1]


def test_a_refused_turn_may_come_again() -> None:
    """An id whose turn was refused is not taken: with a fresh token the same request is decided."""
    stale = {**PROPOSED, "thread_memento_etag": "7"}
    refused = decide(turn(), stale)
    assert (refused.codes, refused.outcome.requests) == (["s6", "x0"], [])
    fresh = decide({**stale, "thread_memento_etag": "1"}, state=refused.outcome.state)
    assert fresh.codes == ["s6u"]


def test_a_repetition_is_answered_whatever_its_token() -> None:
    """A request that was answered gets its answer although its token is stale by now."""
    assert decide(
        {**PROPOSED, "thread_memento_etag": "0"}, {**PROPOSED, "thread_memento_etag": "0"}
    ).codes == [
        "s6u",
        "s6ud",
    ]


def test_the_etag_counts_committed_turns() -> None:
    """Each decided turn moves it by one; an etag that fits is accepted, also for a new thread."""
    rows = decide(turn(thread_memento_etag="0"), turn(thread_memento_etag="1"), turn()).rows
    assert [row["etag"] for row in rows] == ["1", "2", "3"]


@pytest.mark.parametrize("token", ["0", "2", "01", "", "x"])
def test_a_stale_token_writes_nothing(token: str) -> None:
    """Any other token is a conflict that carries the current one and the current memento."""
    first = decide(turn(modelShape=shape("one")))
    decided = decide(
        turn(thread_memento_etag=token, modelShape=shape("two"), affectSignal=felt(0.9)),
        state=first.outcome.state,
    )
    [row] = decided.rows
    assert row["error"]["code"] == "etag_conflict"
    assert "1" in row["error"]["message"]
    assert row["result"]["etag"] == "1"
    assert row["result"]["memento"] == first.rows[0]["memento"]
    assert decided.outcome.state == first.outcome.state
    assert tally_of(decided.outcome.blocks[0].codes) == {"error": 1}


def test_a_conflict_in_a_new_thread_shows_the_seed() -> None:
    """The memento is never null, also where nothing is stored yet, and the thread stays new."""
    decided = decide(turn(thread_memento_etag="3"))
    assert decided.rows[0]["result"]["memento"]["arc"] == "support"
    assert decided.rows[0]["result"]["etag"] == "0"
    assert decided.outcome.state == b""


def test_request_ids_are_found_however_they_are_spelt() -> None:
    """A key may be written with escaped letters; other lines and bad lines are passed over."""
    escaped = b'{"threadId":"t","message":"hi","client\\u0052equestId":"c2"}'
    plain = b'{"threadId":"t","message":"hi","clientRequestId":"c1"}'
    mentions = b'{"threadId":"t","message":"clientRequestId"}'
    assert request_ids([b"0,1,2\n" + b"\n".join([plain, mentions, b"{broken"]), b"3\n" + escaped]) == {
        "c1",
        "c2",
    }
    assert request_ids([b"0\n" + mentions]) == set()
    assert request_ids([]) == set()
