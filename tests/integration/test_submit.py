"""A file becomes a run, all of it or nothing, and the same key twice is one run; on a real Redis."""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from producer import submit as module
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared import keys
from shared.errors import (
    IdempotencyConflictError,
    InputError,
    LoadLostError,
    NoRoomError,
    RedisUnreachableError,
    UsageError,
)
from shared.ledger import Ledger, Wake
from shared.names import Kind, RunState
from shared.rows import unpack_batch
from shared.target import RedisTarget
from shared.turn_words import SummaryPolicy
from tests.support.inline_worker import InlineWorker
from tests.support.redis_server import RedisServer
from tests.support.turn_files import turn_lines, write_turns

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


@pytest.fixture
def worker(redis_client: "redis.Redis") -> Iterator[InlineWorker]:
    """Ledger, store and publisher on an empty server, which writes to its disk without being waited for."""
    redis_client.config_set("appendfsync", "always")
    yield InlineWorker(redis_client)
    redis_client.config_set("appendfsync", "everysec")


def left(client: "redis.Redis") -> set[bytes]:
    """What is left of runs in Redis; the ledger's clock stays."""
    return set(client.keys("proctor:*")) - {keys.CLOCK_KEY.encode()}


def stdin(turns: Sequence[dict[str, object]]) -> Source:
    """A stream with these turns."""
    return Source("-", stdin=io.BytesIO(b"".join(json.dumps(turn).encode() + b"\n" for turn in turns)))


def test_a_file_becomes_a_run(worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path) -> None:
    """All lines are there, whole threads in chunks, with the submit's settings; the first are published."""
    path = write_turns(tmp_path / "a.jsonl", turn_lines(30, 10))
    seen = list[int]()
    options = SubmitOptions(
        chunk_turns=100, summary_policy=SummaryPolicy.BREAKPOINTS, on_progress=seen.append
    )
    run = submit(worker.ledger, worker, Source(path), options=options)
    assert (run.kind, run.total, run.threads, run.duplicate) == (Kind.TURNS, 300, 30, False)
    info = worker.store.info(run.run)
    assert (info.state, info.total, info.done, info.threads) == (RunState.RUNNING, 300, 0, 30)
    assert (info.snapshot["source"], info.snapshot["summary_policy"]) == ("a.jsonl", "breakpoints")
    assert seen[-1] == 300
    assert [(wake.chunk, wake.items, wake.first) for wake in worker.wakes] == [
        ("0", 100, "t0"),
        ("1", 100, "t10"),
    ]
    batch = redis_client.hget(keys.items_key(run.run), "1.3")
    indexes, body = unpack_batch(batch)
    assert indexes == list(range(130, 140))
    assert body.split(b"\n") == path.read_bytes().split(b"\n")[130:140]


def test_a_stream_becomes_a_run(worker: InlineWorker) -> None:
    """Standard input is loaded like a file, and named `stdin`."""
    run = submit(worker.ledger, worker, stdin(turn_lines(2, 2)))
    assert run.total == 4
    assert worker.store.info(run.run).source == "stdin"


def test_run_ids_are_in_the_order_of_time(worker: InlineWorker) -> None:
    """Later runs have larger ids."""
    runs = [submit(worker.ledger, worker, stdin(turn_lines(1, 1))).run for _ in range(3)]
    assert runs == sorted(set(runs))
    assert all(run.startswith("run-") and len(run) == 19 for run in runs)


@pytest.mark.parametrize("key", ["", "k"])
def test_a_bad_line_leaves_nothing(
    worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path, key: str
) -> None:
    """A bad line at the end of a file takes back all that was loaded before it, and frees the key."""
    turns = turn_lines(600, 20, message="x" * 250)
    path = write_turns(tmp_path / "a.jsonl", [*turns, {"threadId": "t", "message": ""}])
    loaded = list[int]()
    options = SubmitOptions(idempotency_key=key, on_progress=loaded.append)
    with pytest.raises(InputError, match=r"a\.jsonl:12001: message: is empty"):
        submit(worker.ledger, worker, Source(path), options=options)
    assert loaded, "the error was meant to come after the first call of the ledger"
    assert left(redis_client) == set()
    assert not worker.published
    write_turns(path, turns)
    assert submit(worker.ledger, worker, Source(path), options=options).total == 12_000


def test_the_first_bad_line_never_reaches_redis(worker: InlineWorker, redis_client: "redis.Redis") -> None:
    """A file that is bad from the start opens no run."""
    with pytest.raises(InputError):
        submit(worker.ledger, worker, stdin([{"threadId": "t"}]), kind=Kind.TURNS)
    assert redis_client.dbsize() == 0


def test_an_interrupt_leaves_nothing(
    worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path
) -> None:
    """Ctrl-C in the middle of a load takes back what was loaded."""
    path = write_turns(tmp_path / "a.jsonl", turn_lines(600, 20, message="x" * 250))

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submit(worker.ledger, worker, Source(path), options=SubmitOptions(on_progress=interrupt))
    assert left(redis_client) == set()


def test_the_same_key_is_the_same_run(worker: InlineWorker, tmp_path: Path) -> None:
    """A repeated submit answers the first run's id, whether it has ended or not, from a file or a stream."""
    turns = turn_lines(5, 4)
    options = SubmitOptions(idempotency_key="nightly 7")
    first = submit(worker.ledger, worker, Source(write_turns(tmp_path / "a", turns)), options=options)
    published = worker.published
    again = submit(worker.ledger, worker, stdin(turns), options=options)
    assert again == first._replace(duplicate=True)
    assert worker.published == published
    worker.work()
    assert submit(worker.ledger, worker, stdin(turns), options=options).run == first.run
    assert len(worker.store.list()) == 1


@pytest.mark.parametrize(
    "changed",
    [
        SubmitOptions(idempotency_key="k", summary_policy=SummaryPolicy.BREAKPOINTS),
        SubmitOptions(idempotency_key="k", namespace="other"),
    ],
)
def test_other_settings_under_the_same_key_are_refused(worker: InlineWorker, changed: SubmitOptions) -> None:
    """A key stands for content and for the settings that decide what comes out."""
    submit(worker.ledger, worker, stdin(turn_lines(1, 2)), options=SubmitOptions(idempotency_key="k"))
    with pytest.raises(IdempotencyConflictError, match="'k' belongs to run-"):
        submit(worker.ledger, worker, stdin(turn_lines(1, 2)), options=changed)


def test_other_content_under_the_same_key_is_refused(worker: InlineWorker) -> None:
    """One changed letter is other content; the first run stays as it was."""
    options = SubmitOptions(idempotency_key="k")
    first = submit(worker.ledger, worker, stdin(turn_lines(1, 2)), options=options)
    changed = turn_lines(1, 2)
    changed[1]["message"] = "Turn 1"
    with pytest.raises(IdempotencyConflictError) as caught:
        submit(worker.ledger, worker, stdin(changed), options=options)
    assert caught.value.exit_code == 2
    assert [info.run for info in worker.store.list()] == [first.run]


def test_a_live_loader_of_the_same_key_is_waited_for(worker: InlineWorker) -> None:
    """While another submit loads the key, this one waits, says so, and takes over when that one gives up."""
    loader = "other"
    worker.ledger.open(
        "run-other", kind="turns", namespace="", key="k", token=loader, snapshot=b"{}", ttl_s=60
    )
    told = list[str]()

    def give_up(why: str) -> None:
        told.append(why)
        worker.ledger.discard("run-other", loader)

    options = SubmitOptions(idempotency_key="k", on_wait=give_up)
    run = submit(worker.ledger, worker, stdin(turn_lines(1, 2)), options=options)
    assert told == ["another submit with this key is loading run-other"]
    assert worker.store.info(run.run).state == RunState.RUNNING


def test_a_full_ledger_refuses_in_time(worker: InlineWorker, redis_client: "redis.Redis") -> None:
    """With too much unfinished work and nobody who works, a submit ends with exit 3 and leaves nothing."""
    first = submit(worker.ledger, worker, stdin(turn_lines(5, 4)))
    before = left(redis_client)
    told = list[str]()
    options = SubmitOptions(max_backlog_items=20, patience_s=0.3, on_wait=told.append)
    with pytest.raises(NoRoomError, match="20 items wait for workers, and 20 is the limit") as caught:
        submit(worker.ledger, worker, stdin(turn_lines(1, 1)), options=options)
    assert caught.value.exit_code == 3
    assert len(told) == 1
    assert left(redis_client) == before
    assert [info.run for info in worker.store.list()] == [first.run]


def test_a_full_ledger_is_waited_for(worker: InlineWorker) -> None:
    """When workers make room within the patience, the load goes on."""
    submit(worker.ledger, worker, stdin(turn_lines(5, 4)))
    options = SubmitOptions(max_backlog_items=20, on_wait=lambda _: worker.work())
    assert submit(worker.ledger, worker, stdin(turn_lines(1, 1)), options=options).total == 1


def test_what_redis_loses_is_loaded_again(
    worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path
) -> None:
    """Batches that were confirmed and then lost are found missing by the seal; a file is loaded once more."""
    path = write_turns(tmp_path / "a.jsonl", turn_lines(30, 10))
    losses = iter([True])

    def lose(_: int) -> None:
        for key in redis_client.keys("proctor:run:*:plan") if next(losses, False) else ():
            redis_client.hdel(key, "0")

    told = list[str]()
    options = SubmitOptions(chunk_turns=100, on_progress=lose, on_wait=told.append)
    run = submit(worker.ledger, worker, Source(path), options=options)
    assert run.total == 300
    assert told == ["Redis lost a part of the load; loading again"]
    worker.work()
    assert worker.store.info(run.run).state == RunState.FINISHED
    assert len(worker.store.list()) == 1


def test_a_lost_stream_is_an_error(worker: InlineWorker, redis_client: "redis.Redis") -> None:
    """A stream that Redis lost a part of cannot be read again: exit 3, and nothing is left."""

    def lose(_: int) -> None:
        for key in redis_client.keys("proctor:run:*:plan"):
            redis_client.delete(key)

    with pytest.raises(LoadLostError) as caught:
        submit(worker.ledger, worker, stdin(turn_lines(3, 3)), options=SubmitOptions(on_progress=lose))
    assert caught.value.exit_code == 3
    assert left(redis_client) == set()


def test_a_run_that_a_crash_took_back_is_loaded_again(
    worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path
) -> None:
    """A sealed run that is gone when the disk is looked at is loaded again before its id is told."""
    path = write_turns(tmp_path / "a.jsonl", turn_lines(3, 3))
    run = submit(worker.ledger, Hook(worker, redis_client.flushall), Source(path))
    worker.work()
    assert worker.store.info(run.run).state == RunState.FINISHED


def test_a_server_that_cannot_tell_about_its_disk_is_looked_at_again(
    new_redis_server: Callable[..., RedisServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an append-only file the submit waits for what a crash could take, and looks again."""
    monkeypatch.setattr(module, "LOST_WRITES_S", 0.05)
    with new_redis_server("--appendonly", "no").client() as client:
        worker = InlineWorker(client)
        run = submit(worker.ledger, Hook(worker, client.flushall), _repeatable(turn_lines(3, 3)))
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


def test_a_namespace_must_be_a_name(worker: InlineWorker) -> None:
    """A namespace that could not stand in a key is refused before anything is loaded."""
    with pytest.raises(UsageError, match="namespace 'a b' cannot be used"):
        submit(worker.ledger, worker, stdin(turn_lines(1, 1)), options=SubmitOptions(namespace="a b"))


def test_other_kinds_are_refused_by_name(worker: InlineWorker) -> None:
    """Asking for a kind that this version does not run is a usage error."""
    with pytest.raises(UsageError, match="describes cases"):
        submit(worker.ledger, worker, stdin([]), kind=Kind.CASES)


def _repeatable(turns: Sequence[dict[str, object]]) -> Source:
    """A stream that can be read again, as a file can."""

    class Again(Source):
        @property
        def repeatable(self) -> bool:
            """Always."""
            return True

        def _open(self) -> io.BytesIO:
            return io.BytesIO(b"".join(json.dumps(turn).encode() + b"\n" for turn in turns))

    return Again("-")
