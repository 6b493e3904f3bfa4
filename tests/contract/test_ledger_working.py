"""States what `claim`, `renew`, `commit` and `commit_threads` answer, as their Lua files document it."""

import pytest

from shared import keys
from shared.ledger import ClaimedItem, HeldLease, Row, Try, Wake
from shared.ledger.bounds import LAYOUT
from shared.ledger.wire import unpack_dead
from shared.runs.upstreams import run_scope_name
from tests.support.ledger_runs import (
    Store,
    TimedLedger,
    decide,
    decide_all,
    keys_with,
    rows_of,
    state_of,
    submit_cases,
    submit_turns,
)


@pytest.fixture
def ledger(redis_client: Store) -> TimedLedger:
    """A ledger on an empty server whose clock is the test's."""
    return TimedLedger(redis_client)


def test_wakes_tell_what_a_chunk_is(ledger: TimedLedger) -> None:
    """A wake-up carries what people want to read in the queue: how many items, and the first."""
    assert submit_cases(ledger, "r1", [["0", "1"], ["2"]]) == [
        Wake("cases", "r1", "0", 2, "case 0"),
        Wake("cases", "r1", "1", 1, "case 2"),
    ]


def test_a_claim_brings_what_is_needed(ledger: TimedLedger) -> None:
    """Items come with payload, generation and attempts; threads with state, position and batches."""
    submit_cases(ledger, "r1", [["0"]])
    claim = ledger.claim("r1", "0", "token", "w1")
    assert claim.items == [ClaimedItem("0", 0, b"payload 0", 0, "")]
    submit_turns(ledger, "r2", [{"a b": [0, 1], "ü\n": [2]}], namespace="shared")
    claim = ledger.claim("r2", "0", "token", "w1")
    assert [(thread.thread, thread.pos, thread.memento) for thread in claim.threads] == [
        ("a b", 0, b""),
        ("ü\n", 0, b""),
    ]
    assert claim.namespace == "shared"
    assert not claim.suspect


def test_a_claim_sent_again_gets_the_same(ledger: TimedLedger) -> None:
    """The same token gets the same items again; another one gets nothing."""
    submit_cases(ledger, "r1", [["0", "1"]])
    first = ledger.claim("r1", "0", "token", "w1")
    assert ledger.claim("r1", "0", "token", "w1") == first
    assert ledger.claim("r1", "0", "other", "w2").status == "busy"


def test_only_published_chunks_can_be_claimed(ledger: TimedLedger) -> None:
    """A wake-up that comes late or twice finds nothing to do."""
    submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    assert ledger.claim("r1", "2", "token", "w1").status == "gone"
    decide(ledger, Wake("cases", "r1", "0", 1, ""))
    assert ledger.claim("r1", "0", "other", "w1").status == "gone"
    assert ledger.claim("r9", "0", "token", "w1").status == "gone"


def test_a_run_of_another_layout_is_left_alone(ledger: TimedLedger, redis_client: Store) -> None:
    """Chunks of a run that a newer version wrote are neither claimed nor healed nor published."""
    submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    redis_client.hset(keys.run_key("r1"), "v", LAYOUT + 1)
    assert ledger.claim("r1", "0", "token", "w1").status == "alien"
    before = redis_client.zrange(keys.live_key("cases"), 0, -1, withscores=True)
    assert ledger.live_ms(120_000, "w1") == []
    assert redis_client.zrange(keys.live_key("cases"), 0, -1, withscores=True) == before
    submit_cases(ledger, "r2", [["0"]])
    redis_client.zrem(keys.live_key("cases"), "r1 0")
    assert [wake.run for wake in ledger.live_ms(1000, "w1")] == ["r2"]


def test_renewed_leases_live(ledger: TimedLedger) -> None:
    """A lease lasts 15 s from its last renewal; a renewal tells the state of the run."""
    submit_cases(ledger, "r1", [["0"]])
    ledger.claim("r1", "0", "token", "w1")
    for _ in range(3):
        ledger.live_ms(12_000, "w1")
        assert ledger.renew([HeldLease("r1", "0", "token"), HeldLease("r1", "0", "other")]) == [
            "running",
            "lost",
        ]
    ledger.control("r1", "pause")
    assert ledger.renew([HeldLease("r1", "0", "token")]) == ["paused"]
    ledger.live_ms(17_000, "w1")
    assert ledger.renew([HeldLease("r1", "0", "token")]) == ["lost"]
    assert ledger.renew([]) == []


def test_a_result_is_written_once(ledger: TimedLedger, redis_client: Store) -> None:
    """The first result of an item stays, whoever commits again; tallies count what was written."""
    submit_cases(ledger, "r1", [["0", "1"]])
    ledger.claim("r1", "0", "token", "w1")
    rows = [Row("0", 0, b"first"), Row("0", 0, b"second")]
    committed = ledger.commit("r1", "0", "token", rows, back=False, tally={"passed": 1})
    assert committed.accepted == [True, False]
    assert ledger.commit("r1", "0", "token", rows, back=False, tally={"passed": 1}).accepted == [False, False]
    assert redis_client.hgetall(keys.results_key("r1")) == {b"0": b"0|first"}
    assert state_of(redis_client, "r1")["n:passed"] == "1"
    assert ledger.backlog() == 1


def test_a_commit_needs_the_lease(ledger: TimedLedger, redis_client: Store) -> None:
    """Who lost the chunk writes nothing."""
    submit_cases(ledger, "r1", [["0"]])
    claim = ledger.claim("r1", "0", "token", "w1")
    ledger.live_ms(17_000, "w1")
    assert ledger.commit("r1", "0", "token", rows_of(claim), back=True).status == "lost"
    assert redis_client.exists(keys.results_key("r1")) == 0


def test_the_last_commit_ends_chunk_and_run(ledger: TimedLedger, redis_client: Store) -> None:
    """The chunk closes with its last result, the run with its last chunk; a freed place is filled at once."""
    wakes = submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    committed = decide(ledger, wakes[0])
    assert (committed.state, [wake.chunk for wake in committed.wakes]) == ("running", ["2"])
    done = decide_all(ledger, [*wakes[1:], *committed.wakes])
    assert len(done) == 2
    run = state_of(redis_client, "r1")
    assert (run["state"], run["done"], int(run["finished"])) == ("finished", "3", ledger.now_ms)
    assert ledger.backlog() == 0


def test_what_is_left_is_given_back(ledger: TimedLedger) -> None:
    """A chunk that is given back is published again with what is left of it; that is no strike against it."""
    submit_cases(ledger, "r1", [["0", "1"]])
    ledger.claim("r1", "0", "a", "w1")
    back = ledger.commit("r1", "0", "a", [Row("0", 0, b"x")], back=True)
    assert [wake.chunk for wake in back.wakes] == ["0"]
    claim = ledger.claim("r1", "0", "b", "w1")
    assert [item.index for item in claim.items] == ["1"]
    assert not claim.suspect
    assert ledger.commit("r1", "0", "a", [Row("1", 0, b"x")], back=True).status == "lost"


def test_a_chunk_stands_aside_until_it_is_due(ledger: TimedLedger) -> None:
    """A delay keeps a chunk from being published, by the clock of Redis."""
    submit_cases(ledger, "r1", [["0"]])
    ledger.claim("r1", "0", "a", "w1")
    assert ledger.commit("r1", "0", "a", [], back=True, due_ms=ledger.now_ms + 5000).wakes == []
    assert ledger.live_ms(4000, "w1") == []
    assert [wake.chunk for wake in ledger.live_ms(2000, "w1")] == ["0"]


def test_a_wrong_clock_of_the_caller_does_no_harm(ledger: TimedLedger) -> None:
    """Times given to a commit are of the caller's clock, of which only the distance to now counts."""
    submit_cases(ledger, "r1", [["0"]])
    ledger.claim("r1", "0", "a", "w1")
    ledger.clock = lambda: 1_000_000
    ledger.commit("r1", "0", "a", [], back=True, due_ms=1_002_000)
    assert [wake.chunk for wake in ledger.live_ms(3000, "w1")] == ["0"]


def test_items_are_handed_out_when_they_are_due(ledger: TimedLedger) -> None:
    """An item that is to be tried again is left out until then, and comes with its attempts and error."""
    submit_cases(ledger, "r1", [["0", "1", "2"]])
    ledger.claim("r1", "0", "a", "w1")
    now = ledger.now_ms
    tries = [Try("0", 1, now + 2000, "429 | slow"), Try("1", 3, now + 9000, "")]
    ledger.commit("r1", "0", "a", [], back=True, tries=tries)
    claim = ledger.claim("r1", "0", "b", "w1")
    assert [item.index for item in claim.items] == ["2"]
    ledger.commit("r1", "0", "b", rows_of(claim), back=True, due_ms=now + 2000)
    assert ledger.live_ms(3000, "w1")
    claim = ledger.claim("r1", "0", "c", "w1")
    assert claim.items == [ClaimedItem("0", 0, b"payload 0", 1, "429 | slow")]
    assert ledger.commit("r1", "0", "c", rows_of(claim), back=True).wakes
    assert ledger.claim("r1", "0", "d", "w1").status == "later"
    assert ledger.live_ms(4000, "w1") == []
    assert ledger.live_ms(4000, "w1")
    assert [item.attempts for item in ledger.claim("r1", "0", "e", "w1").items] == [3]


def test_an_item_in_error_enters_the_dead_set(ledger: TimedLedger, redis_client: Store) -> None:
    """Payload, result and attempts are kept to be looked at, until a retry brings another result."""
    submit_cases(ledger, "r1", [["0", "1"]])
    ledger.claim("r1", "0", "a", "w1")
    ledger.commit(
        "r1", "0", "a", [Row("0", 0, b"bad", dead=True, attempts=4), Row("1", 0, b"good")], back=True
    )
    assert redis_client.zrange(keys.DEAD_KEY, 0, -1) == [b"r1 0"]
    dead = unpack_dead(redis_client.hget(keys.DEAD_ITEMS_KEY, "r1 0"))
    assert (dead.kind, dead.attempts, dead.payload, dead.result) == ("cases", 4, b"payload 0", b"bad")
    assert dead.at_ms == ledger.now_ms


def test_the_dead_set_is_bounded(ledger: TimedLedger, redis_client: Store) -> None:
    """The oldest entries make room, with everything that belongs to them."""
    submit_cases(ledger, "r1", [["0"]])
    redis_client.zadd(keys.DEAD_KEY, {f"old {at}": at for at in range(100_000)})
    redis_client.hset(keys.DEAD_ITEMS_KEY, "old 0", b"x")
    redis_client.sadd(keys.run_dead_key("old"), "0")
    ledger.claim("r1", "0", "a", "w1")
    ledger.commit("r1", "0", "a", [Row("0", 0, b"bad", dead=True)], back=True)
    assert redis_client.zcard(keys.DEAD_KEY) == 100_000
    assert redis_client.zscore(keys.DEAD_KEY, "old 0") is None
    assert redis_client.hkeys(keys.DEAD_ITEMS_KEY) == [b"r1 0"]
    assert redis_client.exists(keys.run_dead_key("old")) == 0


def test_a_finished_and_removed_run_leaves_no_trace(ledger: TimedLedger, redis_client: Store) -> None:
    """After a run is final and removed, no key has its id in name or value."""
    decide_all(ledger, submit_turns(ledger, "r1", [{"a": [0, 1]}, {"a": [2], "b": [3]}], key="k"))
    decide_all(ledger, submit_cases(ledger, "r2", [["0"], ["1"]]))
    scope = run_scope_name("r2")  # as the limiter leaves it after the run's last call
    redis_client.hset(keys.scope_key(scope), "n", 1)
    redis_client.zadd(keys.permits_key(scope), {"of a call whose process died": 1})
    redis_client.zadd(keys.SCOPES_KEY, {scope: 1})
    assert ledger.remove("r1")
    assert ledger.remove("r2")
    assert keys_with(redis_client, "r1") == []
    assert keys_with(redis_client, "r2") == []
    assert redis_client.exists(keys.idem_key("k")) == 0
