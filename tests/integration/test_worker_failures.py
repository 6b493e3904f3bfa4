"""What a worker does with work that raises: one turn is refused, a chunk tried later, and then left alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producer.fleet_state import read_overview
from producer.metrics.look import take_look
from shared import keys
from shared.errors import RedisRefusingError
from shared.kinds import TURNS, all_kinds
from shared.ledger import ChunkPlan, HeldLease, Wake
from shared.ledger.ledger import Ledger
from shared.ledger.times import Times
from shared.processes.heartbeat import FOLDER
from shared.settings import Settings
from tests.support.eventually import eventually
from tests.support.workers import Desk, conversation
from worker import periodic_jobs
from worker.breakpoint.thread_decider import decide_thread
from worker.executors import turns
from worker.executors.chunk import MOST_FAILURES, ChunkRunner
from worker.executors.turns import TurnsExecutor
from worker.periodic_jobs import PeriodicJobs
from worker.process import WorkerProcess

if TYPE_CHECKING:
    import redis

BAD = b"a turn on which the engine fails"


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str) -> Desk:
    """A producer on the session's server."""
    return Desk(redis_client, redis_url)


@pytest.fixture
def process(desk: Desk, tmp_path: Path) -> WorkerProcess:
    """A worker process without Celery around it: its wake-up calls are delivered by the test."""
    settings = Settings.from_environment({"PROCTOR_DATA_DIR": str(tmp_path)})
    made = WorkerProcess(
        "turns-1@here", {TURNS: 2}, ledger=desk.ledger, publisher=desk.publisher, settings=settings
    )
    desk.ledger.tick(made.name, ["turns"], 2)
    return made


@pytest.fixture
def runner(process: WorkerProcess, desk: Desk) -> ChunkRunner:
    """Runs chunks in that process."""
    return ChunkRunner(process, {TURNS: TurnsExecutor(process, desk.store)})


@pytest.fixture
def failing_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that raises whenever it meets the bad turn."""

    def decide(**arguments: Any) -> Any:
        for batch in arguments["batches"]:
            lines = batch.payload.split(b"\n")[1:]
            end = None if batch.limit is None else batch.offset + batch.limit
            if any(BAD in line for line in lines[batch.offset : end]):
                raise ZeroDivisionError("division by zero")
        return decide_thread(**arguments)

    monkeypatch.setattr(turns, "decide_thread", decide)


@pytest.mark.usefixtures("failing_engine")
def test_a_turn_on_which_the_engine_fails_is_refused_alone(desk: Desk, runner: ChunkRunner) -> None:
    """It ends as `internal` in the dead set; the turns around it, and other threads, are decided."""
    threads = conversation(threads=3, turns=4)
    threads["thread-1"][2] = {"message": BAD.decode(), "messageId": "m-bad"}
    [wake] = desk.load("r1", threads)
    found = runner.run(wake)
    assert found["must"] + found["should"] + found["skip"] == 11
    counts = {"errors": 1, "chunk": "0", "decided": 12, "threads": 3, "retried": 0}
    assert found == {**found, **counts}
    rows = desk.finished("r1")
    assert [row.index for row in rows if row.code.startswith("x")] == [6]
    line = json.loads(rows[6].line)
    assert line["error"] == {"code": "internal", "message": "the engine failed: ZeroDivisionError"}
    assert (line["result"]["messageId"], line["result"]["etag"]) == ("m-bad", "2")
    assert [json.loads(row.line)["etag"] for row in rows[4:6] + rows[7:8]] == ["1", "2", "3"]
    assert desk.client.zrange(keys.DEAD_KEY, 0, -1) == [b"r1 6"]


def test_a_chunk_whose_work_raises_is_tried_later_and_later(
    desk: Desk, runner: ChunkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task does not fail; the chunk stands aside for one second, then two, and is then decided."""
    [wake] = desk.load("r1", conversation(threads=2, turns=2))

    def break_down(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(TurnsExecutor, "execute", break_down)
        assert runner.run(wake)["status"] == "failed, tried again after 1000 ms"
        publish_again(desk, wake)
        assert runner.run(wake)["status"] == "failed, tried again after 2000 ms"
    publish_again(desk, wake)
    assert runner.run(wake)["decided"] == 4


def test_a_chunk_that_keeps_raising_is_left_to_the_poison_rule(
    desk: Desk, runner: ChunkRunner, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some failures the lease is kept from being renewed: it runs out, which the ledger counts."""
    [wake] = desk.load("r1", conversation(threads=2, turns=2))

    def break_down(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(TurnsExecutor, "_execute_claim", break_down)
    for _ in range(MOST_FAILURES - 1):
        assert "tried again" in runner.run(wake)["status"]
        publish_again(desk, wake)
    assert runner.run(wake)["status"] == "failed too often, left to the poison rule"
    assert desk.client.hget(keys.chunk_key("r1", "0"), "st") == b"L"
    assert process.leases.held() == []


def test_a_wake_up_call_that_comes_twice_does_nothing(desk: Desk, runner: ChunkRunner) -> None:
    """The second delivery of a chunk finds it done."""
    [wake] = desk.load("r1", conversation(threads=2, turns=2))
    assert runner.run(wake)["decided"] == 4
    assert runner.run(wake)["status"] == "gone"


def test_a_wake_up_call_that_comes_while_ending_goes_to_another(
    desk: Desk, runner: ChunkRunner, process: WorkerProcess
) -> None:
    """A process that drains claims nothing; the call is published again at once."""
    [wake] = desk.load("r1", conversation(threads=2, turns=2))
    process.leases.drain()
    assert runner.run(wake)["status"] == "left to another worker"
    assert desk.client.llen("proctor:turns") == 1
    assert desk.info("r1").done == 0


def test_a_suspect_is_decided_one_turn_at_a_time(desk: Desk, runner: ChunkRunner) -> None:
    """A chunk that cost two processes their lives commits each turn by itself, under one lease."""
    [wake] = desk.load("r1", conversation(threads=1, turns=5))
    desk.client.hset(keys.chunk_key("r1", "0"), "k", 2)
    found = runner.run(wake)
    assert found == {**found, "errors": 0, "chunk": "0", "decided": 5, "threads": 5, "retried": 0}
    assert [row.index for row in desk.finished("r1")] == [0, 1, 2, 3, 4]


def test_a_thread_that_is_held_elsewhere_puts_the_chunk_aside(
    desk: Desk, runner: ChunkRunner, process: WorkerProcess
) -> None:
    """What is free is decided; the chunk stands aside for the rest and is not closed over it."""
    slices = [{"a": [{"message": "ok"}]}, {"a": [{"message": "no"}], "b": [{"message": "thanks"}]}]
    first, second = desk.load_slices("r1", slices)
    other = desk.ledger.claim("r1", first.chunk, "token-of-another", "turns-2@here")
    assert [thread.thread for thread in other.threads] == ["a"]
    assert runner.run(second)["threads"] == 1
    assert desk.info("r1").done == 1
    assert desk.client.zcard(keys.parked_key("turns")) == 1
    assert process.leases.held() == []


def test_retried_turns_are_counted_as_such(desk: Desk, runner: ChunkRunner) -> None:
    """A chunk of a retry says so in its value, which Flower shows."""
    [wake] = desk.load("r1", conversation(threads=1, turns=2))
    runner.run(wake)
    lines = b'0,1\n{"threadId":"thread-0","message":"ok"}\n{"threadId":"thread-0","message":"no"}'
    plan = ChunkPlan("thread-0", [("b", "thread-0", 2)])
    [again] = desk.ledger.retry("r1", "op-1", chunks=[plan], items={"b": lines}, extra=2)
    assert runner.run(again)["retried"] == 2


def publish_again(desk: Desk, wake: Wake) -> None:
    """Ends a chunk's delay, as the clock would."""
    member = f"{wake.run} {wake.chunk}"
    desk.client.zadd(keys.parked_key("turns"), {member: 1})
    desk.client.hset(keys.CLOCK_KEY, "at", 1)
    wakes = desk.ledger.tick("turns-1@here", ["turns"], 2)
    assert [(each.run, each.chunk) for each in wakes] == [(wake.run, wake.chunk)]


def test_the_next_process_of_this_host_replaces_killed_ones(
    desk: Desk, process: WorkerProcess, tmp_path: Path
) -> None:
    """Whatever the ledger clock says, leases and calls of a process that is known to be dead end at once."""
    [wake] = desk.load("r1", conversation(threads=3, turns=4))
    dead, elsewhere = "turns-1.7@here", "turns-1.7@there"
    for name in (dead, elsewhere):
        desk.ledger.tick(name, ["turns"], 1)
        heartbeat = tmp_path / FOLDER / f"{name}.alive"
        heartbeat.parent.mkdir(exist_ok=True)
        heartbeat.touch()
    assert desk.ledger.claim("r1", wake.chunk, f"{dead}.0123abcd.1", dead).status == "ok"
    permits = {f"p 1 {dead}.0123abcd.1": 9e15, f"p 2 {elsewhere}.0123abcd.1": 9e15}
    desk.client.zadd(keys.SCOPES_KEY, {"openai/gpt-4o": 1})
    desk.client.zadd(keys.permits_key("openai/gpt-4o"), permits)
    process.replace_dead_workers()
    desk.client.hset(keys.CLOCK_KEY, "at", 1)  # so that the next tick is not too early
    assert desk.ledger.tick(process.name, ["turns"], 2) == [wake]
    assert {worker.name for worker in desk.store.workers(TURNS)} == {process.name, elsewhere}
    assert [
        b"there" in permit for permit in desk.client.zrange(keys.permits_key("openai/gpt-4o"), 0, -1)
    ] == [True]


def test_a_run_that_waits_for_a_dead_worker_says_so(redis_client: "redis.Redis", redis_url: str) -> None:
    """Until its leases run out, a run all of whose chunks a silent worker holds names that as the reason."""
    desk = Desk(redis_client, redis_url)
    desk.ledger = Ledger(redis_client, times=Times.of(3))
    desk.ledger.tick("w1", ["turns"], 1)
    [wake] = desk.load("r1", conversation(threads=1, turns=1))
    assert desk.ledger.claim("r1", wake.chunk, "token", "w1").status == "ok"

    def is_reported() -> None:
        desk.ledger.tick("w2", ["turns"], 1)
        assert "1 of its chunks is held by a worker that does not answer" in desk.store.wait_reason("r1")

    assert desk.store.wait_reason("r1") == ""
    eventually(is_reported, 5)
    assert desk.ledger.renew([HeldLease("r1", wake.chunk, "token")]) == ["running"]
    assert desk.store.wait_reason("r1") == ""


def test_a_worker_that_drains_takes_no_work(desk: Desk, process: WorkerProcess) -> None:
    """From the beginning of the drain it is counted nowhere, while its leases are renewed as before."""
    jobs = PeriodicJobs(process)
    jobs.start()
    eventually(lambda: _count(desk, 1))
    process.drain()
    eventually(lambda: _count(desk, 0))
    registered = desk.client.zrange(keys.workers_key("turns"), 0, -1)
    assert registered == [process.name.encode()]  # it still ticks
    desk.load("r1", conversation(threads=1, turns=1))
    assert desk.store.wait_reason("r1") == "no worker is alive; run `proctor worker -Q turns`"
    assert read_overview(desk.client, dict.fromkeys(all_kinds())).workers == ()
    look = take_look(desk.ledger.caller)
    assert (look.workers["turns", "ready"], look.workers["turns", "draining"]) == (0, 1)
    jobs.stop()
    process.close()
    assert desk.client.zcard(keys.workers_key("turns")) == 0


def test_an_announcement_that_a_full_server_refuses_is_no_failure(
    desk: Desk, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that cannot say what it has while Redis is full tries again later, and logs no traceback."""
    monkeypatch.setattr(periodic_jobs, "ANNOUNCE_AFTER_S", 0.0)
    jobs = PeriodicJobs(process)
    desk.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(RedisRefusingError):
            jobs._announce_plugins()
    finally:
        desk.client.config_set("maxmemory", 0)


def _count(desk: Desk, wanted: int) -> None:
    assert len(desk.store.workers(TURNS)) == wanted
