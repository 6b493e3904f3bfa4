"""What a worker does with work that raises: one turn is refused, a chunk tried later, and then left alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shared import keys
from shared.ledger import ChunkPlan, Wake
from shared.names import Kind
from shared.settings import Settings
from tests.support.workers import Desk, conversation
from worker.breakpoint.codec import decide_thread
from worker.process import WorkerProcess
from worker.tasks import rescue, turns
from worker.tasks.chunk import MOST_FAILURES, ChunkRunner
from worker.tasks.turns import TurnsHandler

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
        "turns-1@here", {Kind.TURNS: 2}, ledger=desk.ledger, publisher=desk.publisher, settings=settings
    )
    desk.ledger.tick(made.name, ["turns"], 2)
    return made


@pytest.fixture
def runner(process: WorkerProcess, desk: Desk) -> ChunkRunner:
    """Runs chunks in that process."""
    return ChunkRunner(process, {Kind.TURNS: TurnsHandler(process, desk.store)})


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
    monkeypatch.setattr(rescue, "decide_thread", decide)


@pytest.mark.usefixtures("failing_engine")
def test_a_turn_on_which_the_engine_fails_is_refused_alone(desk: Desk, runner: ChunkRunner) -> None:
    """It ends as `internal` in the dead set; the turns around it, and other threads, are decided."""
    threads = conversation(threads=3, turns=4)
    threads["thread-1"][2] = {"message": BAD.decode(), "messageId": "m-bad"}
    [wake] = desk.load("r1", threads)
    assert runner.run(wake) == {"chunk": "0", "decided": 12, "threads": 3, "retried": 0}
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
        patched.setattr(TurnsHandler, "work", break_down)
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

    monkeypatch.setattr(TurnsHandler, "_visit", break_down)
    for _ in range(MOST_FAILURES - 1):
        assert "tried again" in runner.run(wake)["status"]
        publish_again(desk, wake)
    assert runner.run(wake)["status"] == "failed too often, left to the poison rule"
    assert desk.client.hget(keys.chunk_key("r1", "0"), "st") == b"L"
    assert process.chunks.held() == []


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
    process.chunks.drain()
    assert runner.run(wake)["status"] == "left to another worker"
    assert desk.client.llen("proctor:turns") == 1
    assert desk.info("r1").done == 0


def test_a_suspect_is_decided_one_turn_at_a_time(desk: Desk, runner: ChunkRunner) -> None:
    """A chunk that cost two processes their lives commits each turn by itself, under one lease."""
    [wake] = desk.load("r1", conversation(threads=1, turns=5))
    desk.client.hset(keys.chunk_key("r1", "0"), "k", 2)
    assert runner.run(wake) == {"chunk": "0", "decided": 5, "threads": 5, "retried": 0}
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
    assert process.chunks.held() == []


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
