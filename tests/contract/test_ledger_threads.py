"""States how turns are handed out and committed: whole threads, in order, each turn and each request once."""

import pytest

from shared import keys
from shared.codecs.turn_batches import Block, pack_block, unpack_block
from shared.errors import RunStateError
from shared.ledger import PartCommit, ThreadCommit, Try, Wake
from shared.ledger.wire import unpack_dead
from shared.runs import RunStore
from tests.support.ledger_runs import (
    Store,
    TimedLedger,
    decide,
    decide_all,
    keys_with,
    state_of,
    submit_cases,
    submit_turns,
    threads_of,
)


@pytest.fixture
def ledger(redis_client: Store) -> TimedLedger:
    """A ledger on an empty server whose clock is the test's."""
    return TimedLedger(redis_client)


def test_threads_keep_their_order_and_state(ledger: TimedLedger, redis_client: Store) -> None:
    """Turns of a thread are decided in input order over all chunks, and each hands its state to the next."""
    decide_all(
        ledger, submit_turns(ledger, "r1", [{"a": [0, 2], "b": [1]}, {"a": [3]}, {"b": [4], "a": [5]}])
    )
    assert redis_client.hget(keys.mementos_key("r1"), "a") == b"r1/0,r1/2,r1/3,r1/5,"
    assert redis_client.hget(keys.mementos_key("r1"), "b") == b"r1/1,r1/4,"
    assert redis_client.hlen(keys.results_key("r1")) == 5
    assert state_of(redis_client, "r1")["state"] == "finished"


def test_a_worker_gets_the_whole_inbox(ledger: TimedLedger) -> None:
    """What other runs of the namespace have published for a thread is decided along with it."""
    first = submit_turns(ledger, "r1", [{"a": [0]}], namespace="shared")
    second = submit_turns(ledger, "r2", [{"a": [0, 1]}], namespace="shared")
    claim = ledger.claim("r1", "0", "token", "w1")
    assert [(batch.run, batch.count) for batch in claim.threads[0].batches] == [("r1", 1), ("r2", 2)]
    assert ledger.claim("r2", "0", "other", "w2").busy_threads == 1
    tally = {"r1": {"must": 1}, "r2": {"must": 2}, "r3": {"must": 9}}
    committed = ledger.commit_threads("r1", "0", "token", threads_of(claim), back=True, tally=tally)
    assert committed.state == "finished"
    assert ledger.commit_threads("r2", "0", "other", [], back=True).state == "finished"
    assert [state_of(ledger.client, run)["n:must"] for run in ("r1", "r2")] == ["1", "2"]
    assert ledger.client.exists(keys.run_key("r3")) == 0
    assert first
    assert second


@pytest.mark.parametrize("is_decided", [False, True], ids=["turns are left", "turns were decided"])
@pytest.mark.parametrize("is_late", [False, True], ids=["waits", "comes back late"])
def test_a_chunk_that_waits_for_a_thread_is_woken_by_its_release(
    ledger: TimedLedger, *, is_decided: bool, is_late: bool
) -> None:
    """Whether or not the holder has decided its turns; one that comes back later does not wait at all."""
    submit_turns(ledger, "r1", [{"a": [0]}], namespace="shared")
    if is_decided:
        submit_turns(ledger, "r2", [{"a": [0]}], namespace="shared")
    holder = ledger.claim("r1", "0", "token", "w1")
    if not is_decided:
        submit_turns(ledger, "r2", [{"a": [0]}], namespace="shared")
    assert ledger.claim("r2", "0", "other", "w2").busy_threads == 1

    def release() -> list[Wake]:
        return ledger.commit_threads("r1", "0", "token", threads_of(holder), back=True).wakes

    def wait() -> list[Wake]:
        due_ms = ledger.clock() + 1000
        return ledger.commit_threads("r2", "0", "other", [], back=True, awaits=True, due_ms=due_ms).wakes

    first, second = (release, wait) if is_late else (wait, release)
    assert first() == []
    assert [wake.run for wake in second()] == ([] if is_late and is_decided else ["r2"])
    if is_decided and is_late:
        assert state_of(ledger.client, "r2")["state"] == "finished"
    else:
        claim = ledger.claim("r2", "0", "again", "w2")
        assert (claim.status, claim.busy_threads) == ("done" if is_decided else "ok", 0)


def test_turns_enter_a_shared_inbox_when_published(ledger: TimedLedger) -> None:
    """A run's chunks do not stand in other runs' way before it is their turn."""
    submit_turns(ledger, "r1", [{"a": [0]}, {"a": [1]}, {"a": [2]}], namespace="shared")
    claim = ledger.claim("r1", "0", "token", "w1")
    assert len(claim.threads[0].batches) == 2


def test_a_thread_is_committed_at_the_position_that_was_read(ledger: TimedLedger) -> None:
    """A commit for a thread whose front has moved is refused as a whole; a new claim sees what is left."""
    submit_turns(ledger, "r1", [{"a": [0, 1], "b": [2]}])
    claim = ledger.claim("r1", "0", "token", "w1")
    rows = threads_of(claim)
    assert ledger.commit_threads("r1", "0", "token", rows, back=False).accepted == [True, True]
    assert ledger.commit_threads("r1", "0", "token", rows, back=False).accepted == [False, False]
    assert ledger.claim("r1", "0", "token", "w1").status == "done"


def test_a_part_of_a_batch_can_be_committed(ledger: TimedLedger, redis_client: Store) -> None:
    """Turns may be committed one by one; the rest of the batch waits with its offset."""
    submit_turns(ledger, "r1", [{"a": [0, 1, 2]}])
    for offset in range(3):
        claim = ledger.claim("r1", "0", "token", "w1")
        assert (claim.threads[0].offset, claim.threads[0].pos) == (offset, offset)
        back = offset == 2
        assert ledger.commit_threads("r1", "0", "token", threads_of(claim, 1), back=back).accepted == [True]
    names = sorted(redis_client.hkeys(keys.results_key("r1")))
    assert names == [b"0.0", b"0.0:0", b"0.0:1"]
    blocks = [unpack_block(redis_client.hget(keys.results_key("r1"), name)[2:]) for name in names]
    assert sorted(index for block in blocks for index in block.indexes) == [0, 1, 2]


def test_a_thread_can_stay_locked_between_its_turns(ledger: TimedLedger, redis_client: Store) -> None:
    """With `hold` a worker commits turn after turn without a new claim, and nobody else gets the thread."""
    submit_turns(ledger, "r1", [{"a": [0, 1], "b": [2]}], namespace="shared")
    submit_turns(ledger, "r2", [{"a": [0]}], namespace="shared")
    claim = ledger.claim("r1", "0", "token", "w1")
    first = [row for row in threads_of(claim, 1) if row.thread == "a"]
    assert ledger.commit_threads("r1", "0", "token", first, back=False, hold=True).accepted == [True]
    other = ledger.claim("r2", "0", "other", "w2")
    assert (other.threads, other.busy_threads) == ([], 1)
    [part] = first[0].parts
    second = first[0]._replace(pos=first[0].pos + 1, parts=[part._replace(offset=1)])
    assert ledger.commit_threads("r1", "0", "token", [second], back=False).accepted == [True]
    assert ledger.commit_threads("r2", "0", "other", [], back=True).status == "ok"
    assert redis_client.hkeys(keys.owners_key("shared")) == [b"b"]


def test_a_thread_that_is_held_is_free_when_its_lease_ends(ledger: TimedLedger, redis_client: Store) -> None:
    """What was committed with `hold` leaves no lock behind, and the rest is handed out again."""
    submit_turns(ledger, "r1", [{"a": [0, 1]}])
    claim = ledger.claim("r1", "0", "token", "w1")
    assert ledger.commit_threads("r1", "0", "token", threads_of(claim, 1), back=False, hold=True).accepted
    assert redis_client.hlen(keys.owners_key("r1")) == 1
    ledger.commit("r1", "0", "token", [], back=True)
    assert redis_client.hlen(keys.owners_key("r1")) == 0
    assert ledger.claim("r1", "0", "again", "w1").threads[0].offset == 1


def test_what_a_turn_waits_for_is_noted_and_read_again(ledger: TimedLedger, redis_client: Store) -> None:
    """Notes of waits stand beside the chunk until its run ends."""
    submit_turns(ledger, "r1", [{"a": [0]}])
    ledger.claim("r1", "0", "token", "w1")
    note = Try("r1 0.0 0", 2, ledger.now_ms + 5_000, "upstream_timeout 0 300")
    noted = ledger.commit("r1", "0", "token", [], back=True, tries=[note])
    found = ledger.tries("r1", ["r1 0.0 0", "r1 0.0 1"])
    assert {name: (each.attempts, each.parked_state) for name, each in found.items()} == {
        "r1 0.0 0": (2, "upstream_timeout 0 300")
    }
    assert ledger.tries("r1", []) == {}
    decide_all(ledger, noted.wakes)
    assert redis_client.exists(keys.tries_key("r1")) == 0


def test_the_first_to_commit_a_request_wins(ledger: TimedLedger) -> None:
    """A clientRequestId is answered once in a namespace; who loses the race computes its thread again."""
    submit_turns(ledger, "r1", [{"a": [0]}], namespace="shared")
    submit_turns(ledger, "r2", [{"b": [0], "c": [1]}], namespace="shared")
    one, two = (ledger.claim(run, "0", f"token {run}", "w1") for run in ("r1", "r2"))
    assert ledger.requests("shared", ["q", "other"]) == {}
    first = [row._replace(requests=[("q", b"one")]) for row in threads_of(one)]
    assert ledger.commit_threads("r1", "0", "token r1", first, back=True).accepted == [True]
    late = threads_of(two)
    late[0] = late[0]._replace(requests=[("new", b"n"), ("q", b"two")])
    assert ledger.commit_threads("r2", "0", "token r2", late, back=False).accepted == [False, True]
    assert ledger.requests("shared", ["q", "new"]) == {"q": b"one"}
    again = ledger.claim("r2", "0", "token r2", "w1")
    assert [thread.thread for thread in again.threads] == ["b"]
    assert ledger.commit_threads("r2", "0", "token r2", threads_of(again), back=True).state == "finished"


def test_one_commit_cannot_answer_a_request_twice(ledger: TimedLedger) -> None:
    """Two threads of one commit with the same new clientRequestId: the second one is computed again."""
    submit_turns(ledger, "r1", [{"a": [0], "b": [1]}])
    claim = ledger.claim("r1", "0", "token", "w1")
    rows = [row._replace(requests=[("q", row.thread.encode())]) for row in threads_of(claim)]
    assert ledger.commit_threads("r1", "0", "token", rows, back=False).accepted == [True, False]
    assert ledger.requests("r1", ["q"]) == {"q": b"a"}


def test_turns_in_error_enter_the_dead_set_one_by_one(ledger: TimedLedger, redis_client: Store) -> None:
    """A dead turn is kept with its own line and its own result."""
    submit_turns(ledger, "r1", [{"a": [4, 7, 9]}])
    claim = ledger.claim("r1", "0", "token", "w1")
    block = Block(0, 1, 2, [4, 7, 9], ["m2", "x0", "x0"], [b"fine", b"bad", b"worse"])
    thread = ThreadCommit("a", claim.threads[0].pos, b"state", [PartCommit(0, 3, pack_block(block), [1, 2])])
    ledger.commit_threads("r1", "0", "token", [thread], back=True)
    assert redis_client.zrange(keys.DEAD_KEY, 0, -1) == [b"r1 7", b"r1 9"]
    dead = unpack_dead(redis_client.hget(keys.DEAD_ITEMS_KEY, "r1 9"))
    assert (dead.kind, dead.payload, dead.result) == ("turns", b'{"turn":9}', b"worse")


def test_a_chunk_of_turns_can_be_given_back_untouched(ledger: TimedLedger, redis_client: Store) -> None:
    """At shutdown a worker gives a chunk back with an empty commit: locks go, and it is no strike."""
    submit_turns(ledger, "r1", [{"a": [0], "b": [1]}])
    for number in range(6):
        claim = ledger.claim("r1", "0", f"token {number}", "w1")
        assert (len(claim.threads), claim.suspect) == (2, False)
        assert ledger.commit("r1", "0", f"token {number}", [], back=True).status == "ok"
        assert redis_client.exists(keys.owners_key("r1")) == 0


def test_threads_in_use_are_not_forgotten(ledger: TimedLedger, redis_client: Store) -> None:
    """While a run is open its namespace stays as it is, and the error names the run."""
    wakes = submit_turns(ledger, "r1", [{"a": [0]}, {"a": [1], "b": [2]}], namespace="shared")
    with pytest.raises(RunStateError, match="threads of shared are in use by run r1"):
        ledger.forget("shared")
    decide(ledger, wakes[0])
    for threads in ({}, {"a": b""}):
        with pytest.raises(RunStateError):
            ledger.forget("shared", threads)
    assert redis_client.hexists(keys.mementos_key("shared"), "a")


def test_forgotten_threads_begin_anew(ledger: TimedLedger, redis_client: Store) -> None:
    """Some threads of a namespace go, or all of it with every key; runs after that find them new."""
    for run in ("r1", "r2"):
        decide_all(ledger, submit_turns(ledger, run, [{"a": [0], "b": [1], "c": [2]}], namespace="shared"))
        redis_client.hset(keys.requests_key("shared"), mapping={"of a": "1", "of b": "2"})
        if run == "r1":
            assert ledger.forget("shared", {"a": b"r1/0,", "nobody": b""}, ["of a"]) == 1
            assert redis_client.hkeys(keys.requests_key("shared")) == [b"of b"]
    assert redis_client.hgetall(keys.mementos_key("shared")) == {
        b"a": b"r2/0,",
        b"b": b"r1/1,r2/1,",
        b"c": b"r1/2,r2/2,",
    }
    assert ledger.forget("shared") == 3
    assert ledger.forget("shared") == 0
    assert keys_with(redis_client, ":ns:shared:") == []


def test_a_thread_goes_in_the_state_that_was_read(ledger: TimedLedger, redis_client: Store) -> None:
    """With a turn that was decided since, nothing is removed; a removal that is sent again is none more."""
    decide_all(ledger, submit_turns(ledger, "r1", [{"a": [0], "b": [1]}], namespace="shared"))
    redis_client.hset(keys.requests_key("shared"), "of b", "1")
    for read in ({"b": b"r1/1,", "a": b""}, {"b": b"r1/1,", "a": b"r1/0"}):
        with pytest.raises(RunStateError, match="a turn of thread a has just been decided"):
            ledger.forget("shared", read, ["of b"])
    assert redis_client.hlen(keys.mementos_key("shared")) == 2
    assert redis_client.hexists(keys.requests_key("shared"), "of b")
    for gone in (2, 0):
        assert ledger.forget("shared", {"b": b"r1/1,", "a": b"r1/0,"}, ["of b"]) == gone


def test_a_clock_that_is_set_back_puts_nothing_off(ledger: TimedLedger) -> None:
    """A chunk and a turn that wait for a second wait for a second, though Redis' clock falls back an hour."""
    submit_turns(ledger, "r1", [{"a": [0]}])
    ledger.tick("w1", ["turns"], 1)
    ledger.claim("r1", "0", "token", "w1")
    due_ms = ledger.now_ms + 1_000
    note = Try("r1 0.0 0", 2, due_ms, "upstream_timeout 0 300")
    ledger.commit("r1", "0", "token", [], back=False, tries=[note])
    ledger.commit_threads("r1", "0", "token", [], back=True, due_ms=due_ms)
    ledger.pass_ms(-3_600_000)
    assert ledger.tick("w1", ["turns"], 1) == []
    assert ledger.tries("r1", ["r1 0.0 0"])["r1 0.0 0"].not_before_ms == ledger.now_ms + 1_000
    ledger.pass_ms(1_000)
    assert [wake.chunk for wake in ledger.tick("w1", ["turns"], 1)] == ["0"]
    assert ledger.tries("r1", ["r1 0.0 0"])["r1 0.0 0"].not_before_ms == ledger.now_ms


def test_people_read_when_an_item_is_due_by_the_time_of_day(ledger: TimedLedger, redis_client: Store) -> None:
    """Also when the clock of Redis was set back by an hour before."""
    submit_cases(ledger, "r1", [["0"]])
    ledger.tick("w1", ["cases"], 1)
    ledger.pass_ms(-3_600_000)
    ledger.tick("w1", ["cases"], 1)
    ledger.claim("r1", "0", "token", "w1")
    due_ms = ledger.now_ms + 2_000
    ledger.commit("r1", "0", "token", [], back=True, due_ms=due_ms, tries=[Try("0", 1, due_ms, "429 | slow")])
    assert RunStore(redis_client).tries("r1")[0].not_before_ms == due_ms
