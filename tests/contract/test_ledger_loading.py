"""States what `open`, `load`, `seal` and `discard` answer, as the heads of their Lua files document it."""

from collections.abc import Callable
from contextlib import closing

import pytest

from shared import keys
from shared.errors import LoadLostError, UsageError
from shared.ledger import ChunkPlan, Opened
from shared.ledger.times import TIMES
from shared.ledger.wire import LOAD_ITEMS
from shared.runs import RunStore
from tests.support.ledger_runs import (
    Store,
    TimedLedger,
    batch_of,
    decide_all,
    keys_with,
    open_run,
    state_of,
    submit_cases,
    submit_turns,
)
from tests.support.redis_server import RedisServer


@pytest.fixture
def ledger(redis_client: Store) -> TimedLedger:
    """A ledger on an empty server whose clock is the test's."""
    return TimedLedger(redis_client)


def again(ledger: TimedLedger, run: str, token: str, key: str = "k") -> Opened:
    """Somebody else opens with the same key."""
    return ledger.open(run, kind="cases", namespace="", key=key, token=token, snapshot=b"{}", ttl_s=60)


def test_open_is_the_same_when_sent_again(ledger: TimedLedger, redis_client: Store) -> None:
    """The same token may open its run twice; what was loaded stays."""
    open_run(ledger, "r1", "cases", key="k")
    ledger.load("r1", "load", {"0": b"x"}, {})
    assert again(ledger, "r1", "load") == Opened("ok", "r1", "")
    assert redis_client.hlen(keys.items_key("r1")) == 1


def test_open_with_the_key_of_a_sealed_run_finds_that_run(ledger: TimedLedger) -> None:
    """The idempotency key of a sealed run leads to it, with the digest of its input."""
    submit_cases(ledger, "r1", [["0"]], key="k")
    assert again(ledger, "r2", "other") == Opened("sealed", "r1", "digest")


def test_open_waits_for_a_loader_that_is_alive(ledger: TimedLedger) -> None:
    """While a loader loads, another one with the same key has to wait; each batch renews its lease."""
    open_run(ledger, "r1", "cases", key="k")
    ledger.live_ms(TIMES.loader_ms - 3000)
    ledger.load("r1", "load", {"0": b"x"}, {})
    ledger.live_ms(TIMES.loader_ms - 3000)
    assert again(ledger, "r2", "other").status == "busy"


def test_open_takes_over_from_a_loader_that_is_gone(ledger: TimedLedger, redis_client: Store) -> None:
    """Some time after the last batch another loader gets the run's id, from zero; the first one is fenced."""
    open_run(ledger, "r1", "cases", key="k")
    ledger.load("r1", "load", {"0": b"x"}, {"0": ChunkPlan("a", ["0"])})
    ledger.pass_ms(1000)
    redis_client.hset(keys.CLOCK_KEY, mapping={"at": ledger.now_ms, "lc": 2 * TIMES.loader_ms})
    assert again(ledger, "r2", "other") == Opened("ok", "r1", "")
    assert redis_client.exists(keys.items_key("r1"), keys.plan_key("r1")) == 0
    with pytest.raises(LoadLostError, match="not ours any more"):
        ledger.load("r1", "load", {"1": b"x"}, {})
    with pytest.raises(LoadLostError, match="not ours any more"):
        ledger.seal("r1", "load", 1, "digest")


def test_a_run_whose_loader_is_gone_is_deleted(ledger: TimedLedger, redis_client: Store) -> None:
    """The steward clears away what a dead loader left, key included."""
    open_run(ledger, "r1", "cases", key="k")
    ledger.load("r1", "load", {"0": b"x"}, {"0": ChunkPlan("a", ["0"])})
    ledger.live_ms(TIMES.loader_ms + 3000)
    assert keys_with(redis_client, "r1") == []


def test_a_taken_id_is_reported(ledger: TimedLedger) -> None:
    """A run id that another loader has is refused, so that the caller takes the next one."""
    open_run(ledger, "r1", "cases")
    assert again(ledger, "r1", "other", key="") == Opened("exists", "r1", "")


def test_an_id_whose_threads_are_in_use_is_taken(ledger: TimedLedger) -> None:
    """A run cannot have the name of a namespace, whose threads it would inherit and take with it."""
    decide_all(ledger, submit_turns(ledger, "r1", [{"t": [0]}], namespace="support"))
    assert again(ledger, "support", "other", key="").status == "exists"


def test_a_namespace_cannot_be_a_run(ledger: TimedLedger) -> None:
    """A run's own threads go with it, so nobody else may share them."""
    open_run(ledger, "r1", "turns")
    with pytest.raises(UsageError, match="is the id of a run"):
        open_run(ledger, "r2", "turns", namespace="r1")
    with pytest.raises(UsageError, match="is the id of a run"):
        open_run(ledger, "r3", "turns", namespace="r3")


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a/b", "é", "-a", "a\n", "x" * 129])
def test_names_that_cannot_stand_in_keys_are_refused(ledger: TimedLedger, name: str) -> None:
    """Runs and namespaces hold nothing that keys and references are put together with."""
    with pytest.raises(UsageError, match="cannot be used"):
        open_run(ledger, name, "turns")
    if name:
        with pytest.raises(UsageError, match="cannot be used"):
            open_run(ledger, "r1", "turns", namespace=name)


def test_a_repeated_load_writes_the_same(ledger: TimedLedger, redis_client: Store) -> None:
    """Loading a chunk twice leaves what loading it once leaves."""
    open_run(ledger, "r1", "turns")
    plan = {"0": ChunkPlan("t", [("0.0", "t", 2)])}
    assert ledger.load("r1", "load", {"0.0": batch_of([0, 1])}, plan) == 1
    assert ledger.load("r1", "load", {"0.0": batch_of([0, 1])}, plan) == 1
    assert redis_client.zcard(keys.wait_key("r1")) == 1
    assert redis_client.hgetall(keys.batches_key("r1")) == {b"0": b"1"}
    assert redis_client.smembers(keys.threads_key("r1")) == {b"t"}
    assert [wake.items for wake in ledger.seal("r1", "load", 2, "digest")] == [2]


def test_a_big_load_is_split(ledger: TimedLedger, redis_client: Store) -> None:
    """Loads of any size go in, in calls that Lua can take."""
    open_run(ledger, "r1", "cases")
    indexes = [str(number) for number in range(3 * LOAD_ITEMS + 1)]
    plan = {index: ChunkPlan(f"case {index}", [index]) for index in indexes}
    assert ledger.load("r1", "load", dict.fromkeys(indexes, b"x"), plan) == len(indexes)
    assert redis_client.hlen(keys.plan_key("r1")) == len(indexes)
    ledger.seal("r1", "load", len(indexes), "digest")
    assert ledger.backlog() == len(indexes)


def test_a_chunk_of_too_many_parts_is_refused(ledger: TimedLedger) -> None:
    """A chunk whose fields would not fit into one command never gets into the ledger."""
    open_run(ledger, "r1", "cases")
    with pytest.raises(ValueError, match="parts"):
        ledger.load("r1", "load", {}, {"0": ChunkPlan("a", [str(at) for at in range(2001)])})
    with pytest.raises(ValueError, match="parts"):
        ledger.load("r1", "load", {}, {"0": ChunkPlan("a", [])})


@pytest.mark.parametrize("total", [0, 1, 3])
def test_seal_wants_the_number_that_was_read(ledger: TimedLedger, redis_client: Store, total: int) -> None:
    """A run that lost batches, or has none, is not sealed and not published."""
    open_run(ledger, "r1", "cases")
    if total:
        ledger.load("r1", "load", {"0": b"x", "1": b"x"}, {"0": ChunkPlan("a", ["0", "1"])})
    with pytest.raises(LoadLostError, match="items were read"):
        ledger.seal("r1", "load", total, "digest")
    assert state_of(redis_client, "r1")["state"] == "loading"


def test_seal_counts_turns(ledger: TimedLedger, redis_client: Store) -> None:
    """The total of a turns run is its turns, not its batches; times and digest are noted."""
    submit_turns(ledger, "r1", [{"a": [0, 1], "b": [2]}, {"a": [3]}])
    run = state_of(redis_client, "r1")
    assert (run["total"], run["goal"], run["done"], run["digest"]) == ("4", "4", "0", "digest")
    assert int(run["created"]) == int(run["sealed"]) == ledger.now_ms
    assert redis_client.scard(keys.threads_key("r1")) == 2


def test_seal_sent_again_seals_once(ledger: TimedLedger, redis_client: Store) -> None:
    """A seal whose reply was lost may be sent again."""
    wakes = submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    assert len(wakes) == 2
    assert ledger.seal("r1", "load", 3, "digest") == []
    assert redis_client.zcard(keys.wait_key("r1")) == 1


def test_nothing_of_a_loading_run_is_published(ledger: TimedLedger) -> None:
    """Workers see a run only when all of it is there."""
    open_run(ledger, "r1", "turns", namespace="shared")
    ledger.load("r1", "load", {"0.0": batch_of([0])}, {"0": ChunkPlan("t", [("0.0", "t", 1)])})
    assert ledger.live_ms(5000, "w1") == []
    assert ledger.claim("r1", "0", "token", "w1").status == "gone"


def test_discard_leaves_nothing(ledger: TimedLedger, redis_client: Store) -> None:
    """A discarded run is gone with its key; only its own loader can do that."""
    open_run(ledger, "r1", "turns", key="k", namespace="shared")
    ledger.load("r1", "load", {"0.0": batch_of([0])}, {"0": ChunkPlan("t", [("0.0", "t", 1)])})
    ledger.discard("r1", "other")
    assert keys_with(redis_client, "r1")
    ledger.discard("r1", "load")
    ledger.discard("r1", "load")
    assert keys_with(redis_client, "r1") == []


def test_a_sealed_run_cannot_be_discarded(ledger: TimedLedger, redis_client: Store) -> None:
    """A discard that comes late changes nothing."""
    submit_cases(ledger, "r1", [["0"]])
    ledger.discard("r1", "load")
    assert state_of(redis_client, "r1")["state"] == "running"


def test_what_was_written_is_on_disk(ledger: TimedLedger) -> None:
    """After the seal the producer can wait for the server's disk, where the server can tell."""
    submit_cases(ledger, "r1", [["0"]])
    major, minor = ledger.client.info("server")["redis_version"].split(".")[:2]
    assert ledger.wait_durable(10) is ((int(major), int(minor)) >= (7, 2))


def test_a_server_without_a_log_cannot_say_what_is_on_disk(
    new_redis_server: Callable[..., RedisServer],
) -> None:
    """Where the server keeps no append-only file, waiting for the disk says no at once."""
    with closing(new_redis_server("--appendonly", "no").client()) as client:
        assert TimedLedger(client).wait_durable(10) is False


def test_a_file_that_items_share_stays_and_goes_with_its_run(
    ledger: TimedLedger, redis_client: Store
) -> None:
    """It is no item, is read by its name, needs the loader's token, and is discarded with the run."""
    open_run(ledger, "r1", "cases")
    ledger.load_file("r1", "load", "image", b"\x00\x01")
    ledger.load_file("r1", "load", "image", b"\x00\x01")
    ledger.load("r1", "load", {"0": b"x"}, {"0": ChunkPlan("x", ["0"])})
    store = RunStore(redis_client)
    assert (store.file("r1", "image"), store.file("r1", "other")) == (b"\x00\x01", None)
    with pytest.raises(LoadLostError):
        ledger.load_file("r1", "other", "image", b"")
    ledger.seal("r1", "load", 1, "digest")
    assert store.file("r1", "image") == b"\x00\x01"
    with pytest.raises(LoadLostError):
        ledger.load_file("r1", "load", "late", b"")
    open_run(ledger, "r2", "cases")
    ledger.load_file("r2", "load", "image", b"\x00")
    ledger.discard("r2", "load")
    assert keys_with(redis_client, "r2") == []
