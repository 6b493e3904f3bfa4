"""Real worker processes decide runs of turns on a real Redis: whole, in order, each turn once."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from shared.kinds import TURNS
from shared.names import RunState
from shared.runs import TurnRow
from tests.support.eventually import eventually, stays
from tests.support.processes import Processes
from tests.support.workers import Desk, conversation, start_supervisor, start_worker

if TYPE_CHECKING:
    import redis


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str) -> Desk:
    """A producer on the session's server."""
    return Desk(redis_client, redis_url)


def etags(rows: Sequence[TurnRow]) -> Mapping[str, list[str]]:
    """The ETags of each thread's turns, in input order."""
    found: dict[str, list[str]] = {}
    for row in rows:
        result = json.loads(row.line)
        found.setdefault(result["threadId"], []).append(result["etag"])
    return found


def test_a_run_is_decided_end_to_end(desk: Desk, processes: Processes) -> None:
    """One worker decides every turn of a run once, and the run is finished."""
    start_worker(processes, "-Q", "turns")
    desk.submit("r1", conversation(threads=25, turns=4))
    rows = desk.finished("r1")
    assert [row.index for row in rows] == list(range(100))
    assert {json.loads(row.line)["decision"] for row in rows} >= {"should", "skip"}
    info = desk.info("r1")
    assert (info.done, info.total, info.threads) == (100, 100, 25)
    assert sum(info.tally.get(word, 0) for word in ("must", "should", "skip")) == 100


def test_order_within_threads_holds_with_several_processes(desk: Desk, processes: Processes) -> None:
    """Threads that are spread over many chunks and two processes are decided turn after turn."""
    start_supervisor(processes, 2, "-Q", "turns")
    threads = conversation(threads=6, turns=40)
    # Each chunk has one turn of each thread, so that all chunks want the same threads.
    slices = [{name: turns[at : at + 5] for name, turns in threads.items()} for at in range(0, 40, 5)]
    desk.submit_slices("r1", slices)
    rows = desk.finished("r1", within_s=60)
    assert len(rows) == 240
    assert all(found == [str(number) for number in range(1, 41)] for found in etags(rows).values())


def test_a_paused_run_is_left_alone(desk: Desk, processes: Processes) -> None:
    """Nothing of a paused run is decided, and all of it once it is resumed."""
    wakes = desk.load("r1", conversation(threads=20, turns=5))
    desk.ledger.control("r1", "pause")
    start_worker(processes, "-Q", "turns")
    desk.publisher.publish(wakes)

    def is_untouched() -> None:
        assert desk.info("r1").done == 0

    stays(is_untouched, 1.5)
    _, wakes = desk.ledger.control("r1", "resume")
    desk.publisher.publish(wakes)
    assert len(desk.finished("r1")) == 100


def test_a_cancelled_run_stops(desk: Desk, processes: Processes) -> None:
    """Cancelling in the middle ends the run within seconds, with what is decided kept."""
    desk.submit("r1", conversation(threads=2000, turns=50))
    start_worker(processes, "-Q", "turns")

    def has_begun() -> None:
        assert desk.info("r1").done > 0

    eventually(has_begun)
    desk.ledger.control("r1", "cancelled")

    def is_cancelled() -> None:
        assert desk.info("r1").state == RunState.CANCELLED

    eventually(is_cancelled, 10)
    assert 0 < desk.info("r1").done < 100_000


def test_a_repeated_request_gets_the_first_answer(desk: Desk, processes: Processes) -> None:
    """A `clientRequestId` that comes again, here in another chunk, is answered from the first time."""
    start_worker(processes, "-Q", "turns")
    turn = {"message": "I am afraid", "clientRequestId": "req-1", "messageId": "m1"}
    desk.submit_slices("r1", [{"t1": [turn]}, {"t1": [{"message": "ok"}, turn]}])
    first, _, again = desk.finished("r1")
    assert "d" in again.code
    assert json.loads(again.line) == json.loads(first.line)


def test_runs_take_turns(desk: Desk, processes: Processes) -> None:
    """A run of ten turns does not wait behind a run of a hundred thousand."""
    desk.submit("big", conversation(threads=2000, turns=50))
    start_worker(processes, "-Q", "turns")

    def has_begun() -> None:
        assert desk.info("big").done > 0

    eventually(has_begun)
    desk.submit("small", conversation(threads=2, turns=5))
    desk.finished("small")
    assert desk.info("big").state == RunState.RUNNING


def test_an_idle_worker_is_registered_and_leaves(desk: Desk, processes: Processes) -> None:
    """A worker counts as live from its first second to its last, and not a second longer."""
    worker = start_worker(processes, "-Q", "turns", "--name", "turns-1@here")

    def is_registered() -> None:
        assert [(each.name, each.capacity) for each in desk.store.workers(TURNS)] == [("turns-1@here", 2)]

    eventually(is_registered)
    assert worker.stop() == 0
    assert desk.store.workers(TURNS) == []
