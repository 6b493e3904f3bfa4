"""States what `control`, `retry`, `remove` and `backlog` answer, as their Lua files document it."""

import pytest

from shared import keys
from shared.errors import RunStateError, UnknownRunError, UsageError
from shared.ledger import ChunkPlan, Row, Wake
from shared.ledger.bounds import BULK
from tests.support.ledger_runs import (
    Store,
    TimedLedger,
    batch_of,
    decide,
    decide_all,
    keys_with,
    open_run,
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


def cancel(ledger: TimedLedger, run: str) -> str:
    """Cancels a run, and returns its state."""
    return ledger.control(run, "cancelled")[0]


# ---- control


def test_a_paused_run_hands_nothing_out(ledger: TimedLedger) -> None:
    """Pause takes effect at once; resume goes on where it was."""
    submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    assert ledger.control("r1", "pause") == ("paused", [])
    assert ledger.claim("r1", "0", "token", "w1").status == "paused"
    assert ledger.live_ms(100_000, "w1") == []
    assert [wake.chunk for wake in ledger.control("r1", "resume")[1]] == ["0", "1"]
    assert decide(ledger, Wake("cases", "r1", "0", 1, "")).accepted == [True]


def test_pausing_makes_room_for_other_runs(ledger: TimedLedger) -> None:
    """A paused run's published chunks give their places up as they are claimed."""
    submit_cases(ledger, "r1", [["0"], ["1"]])
    assert submit_cases(ledger, "r2", [["0"]]) == []
    ledger.control("r1", "pause")
    assert [wake.run for wake in ledger.claim("r1", "0", "token", "w1").wakes] == ["r2"]


@pytest.mark.parametrize("end", ["cancelled", "aborted", "incomplete"])
def test_a_run_can_be_ended(ledger: TimedLedger, redis_client: Store, end: str) -> None:
    """What is not leased is dropped at once; a leased chunk may commit, and the run ends with it."""
    wakes = submit_cases(ledger, "r1", [["0", "1"], ["2"], ["3"]])
    claim = ledger.claim("r1", "0", "token", "w1")
    assert ledger.control("r1", end)[0] == "cancelling"
    assert ledger.claim("r1", "1", "other", "w1").status == "gone"
    done = ledger.commit("r1", "0", "token", rows_of(claim)[:1], back=True)
    assert (done.state, done.accepted) == (end, [True])
    assert redis_client.hkeys(keys.results_key("r1")) == [b"0"]
    assert ledger.control("r1", "cancelled") == (end, [])
    assert ledger.backlog() == 0
    assert wakes


def test_a_cancelled_run_of_any_size_ends_at_once(ledger: TimedLedger, redis_client: Store) -> None:
    """What was never handed out goes in one stroke, however much it is."""
    submit_cases(ledger, "r1", [[str(at)] for at in range(3 * BULK)])
    assert cancel(ledger, "r1") == "cancelled"
    assert redis_client.exists(keys.plan_key("r1"), keys.wait_key("r1"), keys.admitted_key("r1")) == 0


def test_what_was_handed_out_is_dropped_by_the_hundred(ledger: TimedLedger, redis_client: Store) -> None:
    """No single call holds the server for long; the steward drops the rest."""
    ledger.tick("w1", ["cases"], 200)
    ledger.live_ms(1000)
    submit_cases(ledger, "r1", [[str(at)] for at in range(3 * BULK)])
    ledger.live_ms(1000)
    assert redis_client.scard(keys.admitted_key("r1")) == 3 * BULK
    assert cancel(ledger, "r1") == "cancelling"
    assert redis_client.scard(keys.admitted_key("r1")) == 2 * BULK
    left = str(min(map(int, redis_client.smembers(keys.admitted_key("r1")))))
    assert ledger.claim("r1", left, "token", "w1").status == "gone"
    ledger.live_ms(2000)
    assert state_of(redis_client, "r1")["state"] == "cancelled"


def test_a_cancelled_runs_turns_leave_the_inboxes(ledger: TimedLedger, redis_client: Store) -> None:
    """Other runs of the namespace find nothing of it, and who had read its turns cannot commit them."""
    submit_turns(ledger, "r1", [{"a": [0]}], namespace="shared")
    submit_turns(ledger, "r2", [{"a": [7], "b": [8]}], namespace="shared")
    claim = ledger.claim("r1", "0", "token", "w1")
    assert [batch.run for batch in claim.threads[0].batches] == ["r1", "r2"]
    assert cancel(ledger, "r2") == "cancelled"
    assert ledger.commit_threads("r1", "0", "token", threads_of(claim), back=False).accepted == [False]
    claim = ledger.claim("r1", "0", "token", "w1")
    assert [batch.run for batch in claim.threads[0].batches] == ["r1"]
    assert ledger.commit_threads("r1", "0", "token", threads_of(claim), back=True).state == "finished"
    assert redis_client.keys("proctor:ns:shared:in:*") == []
    assert state_of(redis_client, "r2")["done"] == "0"


def test_control_of_nothing(ledger: TimedLedger) -> None:
    """An unknown run is an error; a loading or final one stays what it is."""
    with pytest.raises(UnknownRunError, match="no run is called r9"):
        ledger.control("r9", "pause")
    open_run(ledger, "r1", "cases")
    assert ledger.control("r1", "cancelled") == ("loading", [])
    decide_all(ledger, submit_cases(ledger, "r2", [["0"]]))
    assert ledger.control("r2", "pause") == ("finished", [])


# ---- retry


def test_retried_items_keep_their_old_result_until_the_new_one(
    ledger: TimedLedger, redis_client: Store
) -> None:
    """A retry raises the generation; the dead set forgets an item when its new result is in."""
    submit_cases(ledger, "r1", [["0", "1"]])
    ledger.claim("r1", "0", "a", "w1")
    ledger.commit("r1", "0", "a", [Row("0", 0, b"bad", dead=True), Row("1", 0, b"good")], back=True)
    (wake,) = ledger.retry("r1", "op", chunks=[ChunkPlan("case 0", ["0"])])
    assert wake == Wake("cases", "r1", "1.0", 1, "case 0")
    assert redis_client.pttl(keys.run_key("r1")) == -1
    assert ledger.backlog() == 1
    claim = ledger.claim("r1", "1.0", "b", "w1")
    assert (claim.items[0].generation, redis_client.hget(keys.results_key("r1"), "0")) == (1, b"0|bad")
    assert ledger.commit("r1", "1.0", "b", [Row("0", 0, b"late")], back=False).accepted == [False]
    done = ledger.commit("r1", "1.0", "b", rows_of(claim, b"better"), back=True)
    assert (done.state, redis_client.hget(keys.results_key("r1"), "0")) == ("finished", b"1|better")
    assert redis_client.exists(keys.DEAD_KEY, keys.DEAD_ITEMS_KEY, keys.run_dead_key("r1")) == 0
    assert redis_client.pttl(keys.run_key("r1")) > 0


def test_a_retry_sent_again_is_one_retry(ledger: TimedLedger, redis_client: Store) -> None:
    """The name of the operation tells a repeated call from a second retry."""
    decide_all(ledger, submit_cases(ledger, "r1", [["0"]]))
    chunks = [ChunkPlan("case 0", ["0"])]
    assert len(ledger.retry("r1", "op", chunks=chunks)) == 1
    assert ledger.retry("r1", "op", chunks=chunks) == []
    assert state_of(redis_client, "r1")["gen"] == "1"
    with pytest.raises(UsageError, match="nothing to retry"):
        ledger.retry("r1", "other", chunks=chunks)


def test_a_cancelled_retry_leaves_everything_as_it_was(ledger: TimedLedger, redis_client: Store) -> None:
    """The old results stand, and the same items can be retried again, to the end."""
    decide_all(ledger, submit_cases(ledger, "r1", [["0"], ["1"], ["2"]]))
    chunks = [ChunkPlan(f"case {at}", [str(at)]) for at in range(3)]
    ledger.retry("r1", "first", chunks=chunks)
    assert cancel(ledger, "r1") == "cancelled"
    assert redis_client.hgetall(keys.results_key("r1")) == {str(at).encode(): b"0|fine" for at in range(3)}
    decide_all(ledger, ledger.retry("r1", "second", chunks=chunks))
    run = state_of(redis_client, "r1")
    assert (run["state"], run["goal"], run["done"]) == ("finished", "6", "6")


def test_a_partly_retried_cancelled_run_ends_cancelled(ledger: TimedLedger, redis_client: Store) -> None:
    """Finished needs all results; resuming the rest gives them."""
    wakes = submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    decide(ledger, wakes[0])
    cancel(ledger, "r1")
    decide_all(ledger, ledger.retry("r1", "one", chunks=[ChunkPlan("a", ["1"])]))
    assert state_of(redis_client, "r1")["state"] == "cancelled"
    decide_all(ledger, ledger.retry("r1", "two", chunks=[ChunkPlan("a", ["2"])]))
    assert state_of(redis_client, "r1")["state"] == "finished"


def test_only_results_of_a_running_run_can_be_retried(ledger: TimedLedger) -> None:
    """What is still to be decided, or asked for already, is left out."""
    wakes = submit_cases(ledger, "r1", [["0"], ["1"]])
    decide(ledger, wakes[0])
    ledger.claim("r1", "1", "token", "w1")
    assert [wake.items for wake in ledger.retry("r1", "op", chunks=[ChunkPlan("a", ["0", "1", "9"])])] == [1]
    with pytest.raises(UsageError):
        ledger.retry("r1", "other", chunks=[ChunkPlan("a", ["0", "1", "9"])])


def tally_of(redis_client: Store, run: str) -> dict[str, int]:
    """Outcomes as they are counted for a run."""
    return {
        name.removeprefix("n:"): int(value)
        for name, value in state_of(redis_client, run).items()
        if name.startswith("n:")
    }


def commit_one(ledger: TimedLedger, chunk: str, index: str, generation: int, code: str) -> None:
    """Claims a chunk of one case, and commits its result with its tally."""
    ledger.claim("r1", chunk, chunk, "w1")
    word = {"p": "passed", "f": "failed", "x": "error"}[code]
    row = Row(index, generation, f"{code}|1|2".encode(), dead=code == "x")
    ledger.commit("r1", chunk, chunk, [row], back=True, tally={word: 1})


def test_the_tally_counts_the_results_that_there_are(ledger: TimedLedger, redis_client: Store) -> None:
    """An outcome that is asked for again is taken out, and put back when the retry is cancelled."""
    submit_cases(ledger, "r1", [["0"], ["1"]])
    commit_one(ledger, "0", "0", 0, "x")
    commit_one(ledger, "1", "1", 0, "p")
    ledger.retry("r1", "first", chunks=[ChunkPlan("a", ["0"]), ChunkPlan("b", ["1"])])
    assert tally_of(redis_client, "r1") == {"error": 0, "passed": 0}
    commit_one(ledger, "1.0", "0", 1, "f")
    cancel(ledger, "r1")
    assert tally_of(redis_client, "r1") == {"error": 0, "passed": 1, "failed": 1}
    ledger.retry("r1", "second", chunks=[ChunkPlan("a", ["0"])])
    commit_one(ledger, "2.0", "0", 2, "p")
    assert tally_of(redis_client, "r1") == {"error": 0, "passed": 2, "failed": 0}


def test_an_item_that_no_worker_survived_counts_once(ledger: TimedLedger, redis_client: Store) -> None:
    """Its error is replaced in the tally like any other."""
    submit_cases(ledger, "r1", [["0"]])
    commit_one(ledger, "0", "0", 0, "p")
    redis_client.hset(keys.results_key("r1"), "0", b"0|poison")
    redis_client.hset(keys.run_key("r1"), mapping={"n:passed": 0, "n:error": 1})
    ledger.retry("r1", "op", chunks=[ChunkPlan("a", ["0"])])
    commit_one(ledger, "1.0", "0", 1, "p")
    assert tally_of(redis_client, "r1") == {"passed": 1, "error": 0}


def test_the_tally_of_retried_turns_counts_each_once(ledger: TimedLedger, redis_client: Store) -> None:
    """Marks say which outcomes are replaced; those of a cancelled retry are put back."""
    decide_all(ledger, submit_turns(ledger, "r1", [{"a": [0, 1, 2]}]))
    redis_client.hset(keys.run_key("r1"), mapping={"n:error": 2, "n:must": 1})
    chunks, items = [ChunkPlan("a", [("x", "a", 3, "xm0")])], {"x": batch_of([0, 1, 2])}
    ledger.retry("r1", "first", chunks=chunks, items=items)
    assert tally_of(redis_client, "r1") == {"error": 1, "must": 0}
    cancel(ledger, "r1")
    assert tally_of(redis_client, "r1") == {"error": 2, "must": 1}


def test_the_time_before_a_retry_is_idle(ledger: TimedLedger, redis_client: Store) -> None:
    """What lies between the end of a run and its retries is kept apart, and adds up."""
    decide_all(ledger, submit_cases(ledger, "r1", [["0"]]))
    for number, pause_ms in enumerate([5_000, 2_000]):
        ledger.pass_ms(pause_ms)
        wakes = ledger.retry("r1", str(number), chunks=[ChunkPlan("a", ["0"])])
        ledger.pass_ms(300)
        decide_all(ledger, wakes)
    assert state_of(redis_client, "r1")["idle"] == "7000"


def test_a_retry_may_ask_models_anew(ledger: TimedLedger) -> None:
    """Workers are told with the claim; an ordinary retry of other items meanwhile is not affected."""
    wakes = submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    decide(ledger, wakes[0])
    decide(ledger, wakes[1])
    ledger.retry("r1", "anew", chunks=[ChunkPlan("a", ["0"])], is_anew=True)
    ledger.retry("r1", "cached", chunks=[ChunkPlan("b", ["1"])])
    asked = {}
    for chunk in ("2", "1.0", "2.0"):
        claim = ledger.claim("r1", chunk, chunk, "w1")
        asked[chunk] = claim.is_anew
        ledger.commit("r1", chunk, chunk, rows_of(claim), back=True)
    assert asked == {"2": False, "1.0": True, "2.0": False}


def test_retried_turns_go_to_the_end_of_their_thread(ledger: TimedLedger, redis_client: Store) -> None:
    """They come in batches of the new generation, which the reader finds by their chunk."""
    decide_all(ledger, submit_turns(ledger, "r1", [{"a": [0, 1], "b": [2]}]))
    chunks = [ChunkPlan("a", [("x", "a", 1), ("y", "b", 1)])]
    items = {"x": batch_of([0]), "y": batch_of([2])}
    decide_all(
        ledger,
        ledger.retry("r1", "op", chunks=chunks, items=items, extra=2),
    )
    assert redis_client.hgetall(keys.batches_key("r1")) == {b"0": b"2", b"1.0": b"2"}
    assert sorted(redis_client.hkeys(keys.results_key("r1"))) == [b"0.0", b"0.1", b"1.0.0", b"1.0.1"]
    assert (redis_client.hget(keys.results_key("r1"), "1.0.1")).startswith(b"1|0|")
    assert redis_client.hget(keys.mementos_key("r1"), "a") == b"r1/0,r1/1,r1/0,"
    run = state_of(redis_client, "r1")
    assert (run["state"], run["done"], run["goal"], run["total"]) == ("finished", "5", "5", "3")


def test_cancelled_retries_of_turns_do_not_add_up(ledger: TimedLedger, redis_client: Store) -> None:
    """Turns to be decided again count only while they are asked for, also when half of them were."""
    decide_all(ledger, submit_turns(ledger, "r1", [{"a": [0, 1, 2]}]))
    chunks, items = [ChunkPlan("a", [("x", "a", 3, "111")])], {"x": batch_of([0, 1, 2])}
    ledger.retry("r1", "first", chunks=chunks, items=items)
    claim = ledger.claim("r1", "1.0", "token", "w1")
    ledger.commit_threads("r1", "1.0", "token", threads_of(claim, 1), back=False)
    cancel(ledger, "r1")
    ledger.commit_threads("r1", "1.0", "token", [], back=True)
    run = state_of(redis_client, "r1")
    assert (run["state"], run["done"], run["goal"]) == ("cancelled", "4", "4")
    ledger.retry("r1", "second", chunks=chunks, items=items)
    cancel(ledger, "r1")
    decide_all(ledger, ledger.retry("r1", "third", chunks=chunks, items=items))
    assert state_of(redis_client, "r1")["state"] == "finished"


def test_turns_can_be_retried_in_a_final_run_only(ledger: TimedLedger) -> None:
    """Two retries at a time would put the same turn into its thread twice."""
    submit_turns(ledger, "r1", [{"a": [0]}])
    chunks, items = [ChunkPlan("a", [("x", "a", 1)])], {"x": batch_of([0])}
    with pytest.raises(RunStateError, match="is running"):
        ledger.retry("r1", "op", chunks=chunks, items=items)
    decide(ledger, Wake("turns", "r1", "0", 1, "a"))
    decide_all(ledger, ledger.retry("r1", "op", chunks=chunks, items=items, extra=1, generation=0))
    with pytest.raises(RunStateError, match="somebody else"):
        ledger.retry("r1", "late", chunks=chunks, items=items, extra=1, generation=0)


def test_retry_of_nothing(ledger: TimedLedger) -> None:
    """Unknown, loading and cancelling runs are refused, each with its reason."""
    with pytest.raises(UnknownRunError):
        ledger.retry("r9", "op", chunks=[ChunkPlan("a", ["0"])])
    open_run(ledger, "r1", "cases")
    with pytest.raises(RunStateError, match="is loading"):
        ledger.retry("r1", "op", chunks=[ChunkPlan("a", ["0"])])


# ---- remove


def test_a_run_at_work_is_not_removed(ledger: TimedLedger) -> None:
    """Running and loading runs are refused; an unknown one is no error."""
    assert ledger.remove("r9") is False
    open_run(ledger, "r1", "cases")
    with pytest.raises(RunStateError, match="r1 is loading"):
        ledger.remove("r1")
    submit_cases(ledger, "r2", [["0"]])
    with pytest.raises(RunStateError, match="r2 is running"):
        ledger.remove("r2")


def test_a_paused_run_is_removed_from_everywhere(ledger: TimedLedger, redis_client: Store) -> None:
    """Leases, locks, marks and inboxes go with it; its workers find their chunks gone."""
    submit_turns(ledger, "r1", [{"a": [0, 1], "b": [2]}, {"a": [3]}, {"b": [4]}], namespace="shared", key="k")
    submit_turns(ledger, "r2", [{"a": [0]}], namespace="shared")
    ledger.live_ms(1000, "w1")
    claim = ledger.claim("r1", "0", "token", "w1")
    ledger.commit_threads("r1", "0", "token", threads_of(claim, 1), back=False)
    ledger.claim("r1", "0", "token", "w1")
    ledger.control("r1", "pause")
    assert ledger.remove("r1")
    assert ledger.commit_threads("r1", "0", "token", [], back=True).status == "lost"
    assert keys_with(redis_client, "r1") == ["proctor:ns:shared:mem"]  # the test's own text in the state
    assert redis_client.exists(keys.idem_key("k")) == 0
    decide_all(ledger, ledger.live_ms(1000, "w1"))
    assert state_of(redis_client, "r2")["state"] == "finished"


def test_a_run_whose_loader_is_gone_can_be_removed(ledger: TimedLedger, redis_client: Store) -> None:
    """Nobody has to wait for a steward to clear a dead load away."""
    open_run(ledger, "r1", "cases", key="k")
    ledger.pass_ms(1000)
    redis_client.hset(keys.CLOCK_KEY, mapping={"at": ledger.now_ms, "lc": 100_000})
    assert ledger.remove("r1")
    assert keys_with(redis_client, "r1") == []
