"""Whatever goes wrong while a file is loaded, nothing is lost and nothing is left; on a real Redis."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producer import submit as module
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared import keys
from shared.clock import now_ms
from shared.errors import (
    InputError,
    LoadLostError,
    NoRoomError,
    RedisUnreachableError,
)
from shared.kinds import TURNS
from shared.ledger import Wake
from shared.ledger.ledger import Ledger
from shared.names import RunState
from shared.server.client import RedisTarget
from tests.support.inline_worker import InlineWorker
from tests.support.redis_server import RedisServer
from tests.support.turn_files import stdin, turn_lines, write_turns

if TYPE_CHECKING:
    import redis


class Hook:
    """A publisher that does something at its first call, then publishes."""

    def __init__(self, worker: InlineWorker, act: Callable[[], object]) -> None:
        self.worker, self.act = worker, act

    def publish(self, wakes: Sequence[Wake]) -> None:
        """Publishes, after the first time's surprise."""
        act, self.act = self.act, lambda: None
        act()
        self.worker.publish(wakes)


def left(client: "redis.Redis") -> set[bytes]:
    """What is left of runs in Redis; the ledger's clock stays."""
    found: Any = client.keys("proctor:*")
    return set(found) - {keys.CLOCK_KEY.encode()}


def repeatable(turns: Sequence[dict[str, object]]) -> Source:
    """A stream that can be read again, as a file can."""

    class Again(Source):
        """A stream that starts anew each time."""

        @property
        def repeatable(self) -> bool:
            """Always."""
            return True

        def _open(self) -> io.BytesIO:
            return io.BytesIO(b"".join(json.dumps(turn).encode() + b"\n" for turn in turns))

    return Again("-")


@pytest.mark.parametrize("key", ["", "k"])
def test_a_bad_line_leaves_nothing(
    inline_worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path, key: str
) -> None:
    """A bad line at the end of a file takes back all that was loaded before it, and frees the key."""
    turns = turn_lines(600, 20, message="x" * 250)
    path = write_turns(tmp_path / "a.jsonl", [*turns, {"threadId": "t", "message": ""}])
    loaded = list[int]()
    options = SubmitOptions(idempotency_key=key, on_progress=loaded.append)
    with pytest.raises(InputError, match=r"a\.jsonl:12001: message: is empty"):
        submit(inline_worker.ledger, inline_worker, Source(path), options=options)
    assert loaded, "the error was meant to come after the first call of the ledger"
    assert left(redis_client) == set()
    assert not inline_worker.published
    write_turns(path, turns)
    assert submit(inline_worker.ledger, inline_worker, Source(path), options=options).total == 12_000


def test_the_first_bad_line_never_reaches_redis(
    inline_worker: InlineWorker, redis_client: "redis.Redis"
) -> None:
    """A file that is bad from the start opens no run."""
    with pytest.raises(InputError):
        submit(inline_worker.ledger, inline_worker, stdin([{"threadId": "t"}]), kind=TURNS)
    assert redis_client.dbsize() == 0


def test_an_interrupt_leaves_nothing(
    inline_worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path
) -> None:
    """Ctrl-C in the middle of a load takes back what was loaded."""
    path = write_turns(tmp_path / "a.jsonl", turn_lines(600, 20, message="x" * 250))

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submit(
            inline_worker.ledger, inline_worker, Source(path), options=SubmitOptions(on_progress=interrupt)
        )
    assert left(redis_client) == set()


def test_a_full_ledger_refuses_in_time(inline_worker: InlineWorker, redis_client: "redis.Redis") -> None:
    """With too much unfinished work and nobody who works, a submit ends with exit 3 and leaves nothing."""
    first = submit(inline_worker.ledger, inline_worker, stdin(turn_lines(5, 4)))
    before = left(redis_client)
    reasons = list[str]()
    options = SubmitOptions(max_backlog_items=20, patience_s=0.3, on_wait=reasons.append)
    with pytest.raises(NoRoomError, match="20 items wait for workers, and 20 is the limit") as caught:
        submit(inline_worker.ledger, inline_worker, stdin(turn_lines(1, 1)), options=options)
    assert caught.value.exit_code == 3
    assert len(reasons) == 1
    assert left(redis_client) == before
    assert [info.run for info in inline_worker.store.list()] == [first.run]


def test_a_full_ledger_is_waited_for(inline_worker: InlineWorker) -> None:
    """When workers make room within the patience, the load goes on."""

    def work() -> None:
        inline_worker.work()

    submit(inline_worker.ledger, inline_worker, stdin(turn_lines(5, 4)))
    options = SubmitOptions(max_backlog_items=20, on_wait=lambda _: work())
    assert submit(inline_worker.ledger, inline_worker, stdin(turn_lines(1, 1)), options=options).total == 1


def test_what_redis_loses_is_loaded_again(
    inline_worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path
) -> None:
    """Batches that were confirmed and then lost are found missing by the seal; a file is loaded once more."""
    path = write_turns(tmp_path / "a.jsonl", turn_lines(30, 10))
    losses = iter([True])

    def lose(_: int) -> None:
        for key in redis_client.keys("proctor:run:*:plan") if next(losses, False) else ():
            redis_client.hdel(key, "0")

    reasons = list[str]()
    options = SubmitOptions(chunk_turns=100, on_progress=lose, on_wait=reasons.append)
    run = submit(inline_worker.ledger, inline_worker, Source(path), options=options)
    assert run.total == 300
    assert reasons == ["Redis lost a part of the load; loading again"]
    inline_worker.work()
    assert inline_worker.store.info(run.run).state == RunState.FINISHED
    assert len(inline_worker.store.list()) == 1


def test_a_lost_stream_is_an_error(inline_worker: InlineWorker, redis_client: "redis.Redis") -> None:
    """A stream that Redis lost a part of cannot be read again: exit 3, and nothing is left."""

    def lose(_: int) -> None:
        for key in redis_client.keys("proctor:run:*:plan"):
            redis_client.delete(key)

    with pytest.raises(LoadLostError) as caught:
        submit(
            inline_worker.ledger,
            inline_worker,
            stdin(turn_lines(3, 3)),
            options=SubmitOptions(on_progress=lose),
        )
    assert caught.value.exit_code == 3
    assert left(redis_client) == set()


def test_a_run_that_a_crash_took_back_is_loaded_again(
    inline_worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path
) -> None:
    """A sealed run that is gone when the disk is looked at is loaded again before its id is returned."""
    path = write_turns(tmp_path / "a.jsonl", turn_lines(3, 3))
    run = submit(inline_worker.ledger, Hook(inline_worker, redis_client.flushall), Source(path))
    inline_worker.work()
    assert inline_worker.store.info(run.run).state == RunState.FINISHED


def test_a_server_that_cannot_tell_about_its_disk_is_looked_at_again(
    new_redis_server: Callable[..., RedisServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an append-only file the submit waits for what a crash could take, and looks again."""
    monkeypatch.setattr(module, "LOST_WRITES_S", 0.05)
    with new_redis_server("--appendonly", "no").client() as client:
        worker = InlineWorker(client)
        run = submit(worker.ledger, Hook(worker, client.flushall), repeatable(turn_lines(3, 3)))
        assert worker.store.info(run.run).total == 9


def test_redis_may_be_away_in_the_middle(
    new_redis_server: Callable[..., RedisServer], tmp_path: Path
) -> None:
    """A server that is killed in the middle of a load and comes back costs nothing but time."""
    server = new_redis_server()
    path = write_turns(tmp_path / "a.jsonl", turn_lines(600, 20, message="x" * 250))
    kills = iter([True])

    def kill(_: int) -> None:
        if next(kills, False):
            server.kill()
            server.start(wait=False)

    with server.client() as client:
        worker = InlineWorker(client)
        run = submit(worker.ledger, worker, Source(path), options=SubmitOptions(on_progress=kill))
        assert run.total == 12_000
        worker.register()
        worker.work()
        assert worker.store.info(run.run).state == RunState.FINISHED


def test_redis_that_stays_away_is_named_in_time(new_redis_server: Callable[..., RedisServer]) -> None:
    """When the server does not come back within the patience, the submit ends with exit 3."""
    server = new_redis_server()
    with RedisTarget.parse(server.url).client() as client:
        ledger = Ledger(client, patience_s=0.3)
        options = SubmitOptions(on_progress=lambda _: server.kill())
        with pytest.raises(RedisUnreachableError) as caught:
            submit(ledger, InlineWorker(client), stdin(turn_lines(3, 3)), options=options)
        assert caught.value.exit_code == 3


def test_a_dead_loader_is_replaced_without_any_worker(
    inline_worker: InlineWorker, redis_client: "redis.Redis"
) -> None:
    """A key whose loader was killed is taken over, also when no worker moves the ledger's clock."""
    redis_client.hset(keys.CLOCK_KEY, mapping={"at": now_ms() - 10_000, "lc": 5_000})
    dead = "dead"
    inline_worker.ledger.open(
        "run-dead", kind="turns", namespace="", key="k", token=dead, snapshot=b"{}", ttl_s=60
    )
    # One millisecond beyond what the clock reaches by itself.
    redis_client.hset(keys.run_key("run-dead"), "until", 7_001)
    options = SubmitOptions(idempotency_key="k", await_disk=False)
    run = submit(inline_worker.ledger, inline_worker, stdin(turn_lines(1, 2)), options=options)
    assert [info.run for info in inline_worker.store.list()] == [run.run]
