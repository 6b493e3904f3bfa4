"""States what a tick heals: lost workers, lost wake-ups, poison; and what a frozen clock must not do."""

import pytest

from shared import keys
from shared.codecs.turn_batches import unpack_block
from shared.ledger import ChunkPlan, HeldLease, Wake
from shared.ledger.bounds import FIRST_LAYOUT, LAYOUT
from shared.ledger.times import TIMES
from shared.ledger.wire import unpack_dead
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
    threads_of,
)


@pytest.fixture
def ledger(redis_client: Store) -> TimedLedger:
    """A ledger on an empty server whose clock is the test's."""
    return TimedLedger(redis_client)


def die(ledger: TimedLedger, wake: Wake, number: int) -> list[Wake]:
    """A worker claims a chunk and is never heard of again; returns what the steward publishes."""
    assert ledger.claim(wake.run, wake.chunk, f"dead {wake.chunk} {number}", f"dead {number}").status == "ok"
    return ledger.live_ms(17_000)


def test_the_window_follows_the_workers(ledger: TimedLedger) -> None:
    """Two chunks without a worker, then twice what the live workers can do, less again when one leaves."""
    submit_cases(ledger, "r1", [[str(at)] for at in range(20)])
    assert len(ledger.live_ms(1000)) == 0
    ledger.tick("w1", ["cases"], 3)
    ledger.tick("w2", ["cases"], 1)
    assert len(ledger.live_ms(1000)) == 8 - 2
    ledger.leave("w1")
    ledger.leave("nobody")
    assert ledger.client.hget(keys.pace_key("cases"), "window") == b"2"
    assert ledger.client.hkeys(keys.capacity_key("cases")) == [b"w2"]
    assert ledger.client.hgetall(keys.layouts_key("cases")) == {b"w2": str(LAYOUT).encode()}


def test_a_run_of_a_million_does_not_block_a_run_of_ten(ledger: TimedLedger) -> None:
    """Runs of a kind take turns at being published."""
    submit_cases(ledger, "big", [[str(at)] for at in range(30)])
    submit_cases(ledger, "small", [["0"], ["1"]])
    wakes = ledger.tick("w1", ["cases"], 4)
    assert [wake.run for wake in wakes][:4].count("small") == 2


def test_ticks_close_together_do_nothing_more(ledger: TimedLedger) -> None:
    """Any number of stewards need no lock: a tick right after another one only registers its worker."""
    submit_cases(ledger, "r1", [[str(at)] for at in range(20)])
    assert ledger.live_ms(1000, "w1") == []
    ledger.pass_ms(500)
    assert ledger.tick("w2", ["cases"], 8) == []
    assert ledger.client.zcard(keys.workers_key("cases")) == 2
    ledger.pass_ms(400)
    assert len(ledger.tick("w1", ["cases"], 1)) == 16


def test_a_tick_of_an_earlier_version_does_not_count(ledger: TimedLedger) -> None:
    """Such a tick publishes nothing of newer runs, so that stewards of this version do not wait after it."""
    submit_cases(ledger, "r1", [[str(at)] for at in range(20)], layout=LAYOUT)
    assert ledger.live_ms(1000, "w1") == []
    ledger.pass_ms(1000)
    ledger.client.hset(keys.CLOCK_KEY, "at", ledger.now_ms)  # all that it writes of a tick
    ledger.pass_ms(100)
    assert len(ledger.tick("w1", ["cases"], 8)) == 16 - 2
    assert ledger.client.hget(keys.CLOCK_KEY, "back") is None


def test_wake_ups_that_outdated_workers_take_are_repeated_at_once(ledger: TimedLedger) -> None:
    """Other wake-ups are repeated after twice the time each, since another worker may have them."""
    store: Store = ledger.client
    for run, layout in (("r1", LAYOUT), ("r2", FIRST_LAYOUT)):
        submit_cases(ledger, run, [["0"]], layout=layout)
    ledger.live_ms(1000, "w1")

    def repeated() -> list[str]:
        wakes = []
        for _ in range(TIMES.unclaimed_ms // 1000):
            ledger.pass_ms(1000)
            wakes += ledger.tick("w1", ["cases"], 1, idle=["cases"])
        return [wake.run for wake in wakes]

    assert sorted(repeated()) == ["r1", "r2"]
    assert repeated() == []
    assert sorted(repeated()) == ["r1", "r2"]
    store.zadd(keys.workers_key("cases"), {"of the first version": 9e12})
    assert [repeated() for _ in range(3)] == [["r1"]] * 3


def test_a_dead_workers_chunk_comes_back(ledger: TimedLedger) -> None:
    """A lease ends 15 s after its last renewal, and its chunk is published at once."""
    (wake,) = submit_cases(ledger, "r1", [["0"]])
    ledger.claim("r1", "0", "token", "w1")
    assert ledger.live_ms(14_000) == []
    assert ledger.live_ms(2000) == [wake]


def test_locks_go_with_the_lease(ledger: TimedLedger, redis_client: Store) -> None:
    """Threads that a dead worker held are free when its lease ends."""
    (wake,) = submit_turns(ledger, "r1", [{"a": [0], "b": [1]}])
    assert redis_client.exists(keys.owners_key("r1")) == 0
    ledger.claim("r1", "0", "token", "w1")
    assert redis_client.hlen(keys.owners_key("r1")) == 2
    assert ledger.live_ms(17_000) == [wake]
    assert redis_client.exists(keys.owners_key("r1")) == 0


def test_a_frozen_redis_ends_no_lease(ledger: TimedLedger) -> None:
    """An hour without ticks counts two seconds: nobody could have renewed a lease meanwhile."""
    submit_cases(ledger, "r1", [["0"]])
    ledger.live_ms(2000, "w1")
    ledger.claim("r1", "0", "token", "w1")
    ledger.pass_ms(3_600_000)
    assert ledger.live_ms(5000, "w1") == []
    assert decide(ledger, Wake("cases", "r1", "0", 1, ""), "token").state == "finished"


def test_a_clock_that_steps_back_ends_no_lease(ledger: TimedLedger) -> None:
    """A clock set back by an hour neither ends leases nor stops the ticks."""
    submit_cases(ledger, "r1", [["0"]])
    ledger.live_ms(2000, "w1")
    ledger.claim("r1", "0", "token", "w1")
    ledger.pass_ms(-3_600_000)
    assert ledger.live_ms(10_000, "w1") == []
    assert len(ledger.live_ms(8000, "w1")) == 1


def test_a_lost_wake_up_is_repeated(ledger: TimedLedger) -> None:
    """A wake-up that nobody claimed is published again after 30 s, then after 60, then after 120."""
    (wake,) = submit_cases(ledger, "r1", [["0"]])
    for pause in (30_000, 60_000, 120_000):
        assert ledger.live_ms(pause - 2000, "w1") == []
        assert ledger.live_ms(3000, "w1") == [wake]
        ledger.pass_ms(-1000)


def test_an_idle_worker_finds_a_lost_wake_up_sooner(ledger: TimedLedger) -> None:
    """Where a worker has nothing to do a wake-up counts as lost after 3 s, then after 6; else after 30."""
    ledger.live_ms(1000, "w1")
    wakes = submit_cases(ledger, "r1", [["0"], ["1"]])
    assert ledger.claim("r1", wakes[0].chunk, "token", "w1").status == "ok"
    for passed_ms, idle, found in (
        (2000, "cases", []), (1000, "turns", []), (0, "cases", wakes[1:]),
        (5000, "cases", []), (1000, "cases", wakes[1:]),
    ):  # fmt: skip
        assert ledger.live_ms(passed_ms, "w1") == []
        assert ledger.tick("w2", ["cases"], 1, idle=[idle]) == found


def test_a_long_queue_is_not_taken_for_loss(ledger: TimedLedger) -> None:
    """Where chunks take long, wake-ups are given three times that long."""
    ledger.live_ms(1000)
    wakes = submit_cases(ledger, "r1", [["0"], ["1"]])
    ledger.claim("r1", "0", "token", "w1")
    for _ in range(4):
        ledger.live_ms(10_000, "w1")
        assert ledger.renew([HeldLease("r1", "0", "token")]) == ["running"]
    decide(ledger, wakes[0], "token")
    assert ledger.client.hget(keys.pace_key("cases"), "usual") == b"40000"
    (late,) = submit_cases(ledger, "r2", [["0"]])
    again = ledger.live_ms(118_000, "w1")
    assert late not in again
    assert late in ledger.live_ms(4000, "w1")


def test_what_a_dead_worker_had_fetched_is_repeated(ledger: TimedLedger) -> None:
    """When a worker falls silent, unclaimed wake-ups are sent again at once: it may have taken them along."""
    (wake,) = submit_cases(ledger, "r1", [["0"]])
    ledger.tick("w1", ["cases"], 1)
    assert ledger.live_ms(14_000) == []
    assert ledger.live_ms(3000) == [wake]
    assert ledger.live_ms(30_000) == []


def test_what_a_worker_took_along_is_repeated_when_somebody_knows(ledger: TimedLedger) -> None:
    """Leaving in good order costs nobody anything; after a worker that did not, wake-ups come again."""
    (wake,) = submit_cases(ledger, "r1", [["0"]])
    ledger.tick("w1", ["cases"], 1)
    ledger.leave("w1")
    ledger.leave("w1", abrupt=True)  # not registered any more
    assert ledger.live_ms(2000) == []
    ledger.tick("w1", ["cases"], 1)
    ledger.leave("w1", abrupt=True)
    assert ledger.live_ms(1000) == [wake]


def test_the_leases_of_a_worker_that_is_known_to_be_dead_end_at_once(ledger: TimedLedger) -> None:
    """When a new process takes the name of a dead one, nobody has to wait for the dead one's leases."""
    mine, other = submit_cases(ledger, "r1", [["0"], ["1"]])
    ledger.tick("w1", ["cases"], 1)
    ledger.tick("w2", ["cases"], 1)
    ledger.claim("r1", mine.chunk, "token", "w1")
    ledger.claim("r1", other.chunk, "other", "w2")
    ledger.leave("w1", abrupt=True)
    assert ledger.live_ms(1000) == [mine]
    assert (
        ledger.renew([HeldLease("r1", mine.chunk, "token"), HeldLease("r1", other.chunk, "other")])[0]
        == "lost"
    )
    assert ledger.commit("r1", other.chunk, "other", [], back=True).status == "ok"


def test_a_chunk_that_kills_workers_is_taken_apart(ledger: TimedLedger, redis_client: Store) -> None:
    """After two lost leases its items come one by one, and a worker holds one such suspect at a time."""
    (wake,) = submit_cases(ledger, "r1", [["0", "1", "2"]])
    assert die(ledger, wake, 1) == [wake]
    pieces = die(ledger, wake, 2)
    assert [(piece.chunk, piece.items, piece.first) for piece in pieces] == [
        ("0/0", 1, "case 0"),
        ("0/1", 1, "case 0 +1"),
    ]
    assert ledger.claim("r1", "0/0", "a", "w1").suspect
    assert ledger.claim("r1", "0/1", "b", "w1").status == "later"
    assert ledger.claim("r1", "0/0", "a", "w1").status == "ok"
    assert keys_with(redis_client, "r1 0/0 a") == ["proctor:suspects"]


def test_poison_is_given_up_and_its_neighbours_are_not(ledger: TimedLedger, redis_client: Store) -> None:
    """An item whose lease ran out five times becomes an error in the dead set; the others get results."""
    wakes = submit_cases(ledger, "r1", [["0", "1"]])
    number = 0
    while wakes:
        wake = wakes.pop(0)
        if wake.chunk in {"0", "0/1"}:
            number += 1
            wakes += die(ledger, wake, number)
        else:
            wakes += decide(ledger, wake).wakes
    assert number == 5
    assert redis_client.hgetall(keys.results_key("r1")) == {b"0": b"0|fine", b"1": b"0|poison"}
    dead = unpack_dead(redis_client.hget(keys.DEAD_ITEMS_KEY, "r1 1"))
    assert (dead.code, dead.attempts, dead.payload) == ("poison", 5, b"payload 1")
    assert state_of(redis_client, "r1")["state"] == "finished"


def test_a_poisoned_turn_is_skipped_and_its_thread_goes_on(ledger: TimedLedger, redis_client: Store) -> None:
    """The turn at the front becomes an error that holds the thread's state; those behind it are decided."""
    wakes = submit_turns(ledger, "r1", [{"a": [3, 5, 8], "b": [9]}])
    number = 0
    while wakes:
        wake = wakes.pop(0)
        claim = ledger.claim(wake.run, wake.chunk, f"dead {number}", f"w{number}")
        if claim.status != "ok":
            wakes += claim.wakes
            continue
        number += 1
        thread = claim.threads[0]
        if thread.thread == "a" and thread.offset == 1:
            wakes += ledger.live_ms(17_000)
        else:
            most = 1 if thread.thread == "a" else 1000
            rows = threads_of(claim, most)
            wakes += ledger.commit_threads(wake.run, wake.chunk, f"dead {number - 1}", rows, back=True).wakes
    blocks = [unpack_block(value[2:]) for value in redis_client.hvals(keys.results_key("r1"))]
    poisoned = [block for block in blocks if block.codes == ["x0p"]]
    assert [(block.offset, block.indexes, block.lines) for block in poisoned] == [(1, [5], [b"r1/3,"])]
    assert redis_client.hget(keys.mementos_key("r1"), "a") == b"r1/3,r1/8,"
    assert unpack_dead(redis_client.hget(keys.DEAD_ITEMS_KEY, "r1 5")).payload == b'{"turn":5}'
    run = state_of(redis_client, "r1")
    assert (run["state"], run["done"], run["n:error"]) == ("finished", "4", "1")


def test_waiting_for_a_thread_is_no_strike(ledger: TimedLedger) -> None:
    """A chunk that died while another one held its only thread is not blamed for it."""
    submit_turns(ledger, "r1", [{"a": [0]}], namespace="shared")
    submit_turns(ledger, "r2", [{"a": [0]}], namespace="shared")
    ledger.claim("r1", "0", "holder", "w1")
    for number in range(6):
        assert ledger.claim("r2", "0", f"waiter {number}", f"w{number}").busy_threads == 1
        for _ in range(4):
            assert ledger.renew([HeldLease("r1", "0", "holder")]) == ["running"]
            ledger.live_ms(5000)
    assert ledger.client.hget(keys.chunk_key("r2", "0"), "k") is None


def test_a_final_run_expires_as_a_whole(ledger: TimedLedger, redis_client: Store) -> None:
    """All keys of a final run go at the same moment, and the steward takes it off every list."""
    wakes = submit_turns(ledger, "r1", [{"a": [0]}], key="k", ttl_s=100)
    decide(ledger, wakes[0])
    there = list(redis_client.keys("proctor:*r1*"))
    assert {redis_client.pexpiretime(key) for key in there} == {ledger.now_ms + 100_000}
    assert redis_client.pexpiretime(keys.idem_key("k")) == ledger.now_ms + 100_000
    ledger.live_ms(99_000)
    assert keys_with(redis_client, "r1")
    ledger.live_ms(2000)
    assert keys_with(redis_client, "r1") == []


def test_a_run_may_be_kept_for_ever(ledger: TimedLedger, redis_client: Store) -> None:
    """With no time to live, nothing of a final run expires."""
    decide(ledger, submit_cases(ledger, "r1", [["0"]], ttl_s=0)[0])
    assert redis_client.pttl(keys.run_key("r1")) == -1
    assert redis_client.exists(keys.EXPIRING_KEY) == 0


def test_a_shared_namespace_outlives_its_runs(ledger: TimedLedger, redis_client: Store) -> None:
    """Its time to live counts from the end of the last run that used it, until another one begins."""
    ledger.namespace_ttl_s = 500
    first = submit_turns(ledger, "r1", [{"a": [0]}], namespace="shared")
    second = submit_turns(ledger, "r2", [{"b": [0]}], namespace="shared")
    decide(ledger, first[0])
    assert redis_client.pttl(keys.mementos_key("shared")) == -1
    decide(ledger, second[0])
    assert redis_client.pexpiretime(keys.mementos_key("shared")) == ledger.now_ms + 500_000
    ledger.remove("r1")
    third = submit_turns(ledger, "r3", [{"a": [0]}], namespace="shared")
    assert redis_client.pttl(keys.mementos_key("shared")) == -1
    assert ledger.claim("r3", "0", "token", "w1").threads[0].memento == b"r1/0,"
    assert third


def test_a_run_of_limited_width_is_worked_on_in_order(ledger: TimedLedger) -> None:
    """Only so many of its chunks are under way at a time, however many workers wait; a retry keeps that."""
    ledger.tick("w1", ["cases"], 10)
    ledger.live_ms(1000)
    wakes = submit_cases(ledger, "r1", [[str(at)] for at in range(5)], wide=2)
    assert [wake.chunk for wake in wakes] == ["0", "1"]
    assert ledger.live_ms(5000, "w1") == []
    ledger.claim("r1", "0", "a", "w1")
    assert [wake.chunk for wake in ledger.commit("r1", "0", "a", [], back=True).wakes] == ["0"]
    assert [wake.chunk for wake in decide(ledger, wakes[1]).wakes] == ["2"]
    done = decide_all(ledger, [wakes[0]])
    assert [wake.chunk for wake in done] == ["0", "3", "4"]
    decide(ledger, Wake("cases", "r1", "2", 1, ""))
    again = ledger.retry("r1", "op", chunks=[ChunkPlan("a", [str(at)]) for at in range(5)])
    assert [wake.chunk for wake in again] == ["1.0", "1.1"]


def test_a_chunk_that_comes_back_counts_by_what_is_left_of_it(ledger: TimedLedger) -> None:
    """A run of limited width begins with its next chunk while two halves take the place of one."""
    ledger.tick("w1", ["cases"], 10)
    ledger.live_ms(1000)
    submit_cases(ledger, "r1", [[str(at), str(at + 1)] for at in range(0, 12, 2)], wide=2)
    for chunk, following in (("0", "2"), ("1", "3")):
        half = rows_of(ledger.claim("r1", chunk, "a", "w1"))[:1]
        parked = ledger.commit("r1", chunk, "a", half, back=True, due_ms=ledger.now_ms + 1000)
        assert [wake.chunk for wake in parked.wakes] == [following]
    ledger.pass_ms(2000)
    back = ledger.tick("w1", ["cases"], 10)
    assert sorted(wake.chunk for wake in back) == ["0", "1"]
    assert decide(ledger, Wake("cases", "r1", "2", 2, "")).wakes == []
    assert [wake.chunk for wake in decide(ledger, back[0]).wakes] == ["4"]
