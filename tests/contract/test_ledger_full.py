"""States what the ledger does on a full server: what makes room works, what needs room waits."""

from collections.abc import Callable, Iterator
from contextlib import closing
from time import monotonic

import pytest
import redis

from shared import keys
from shared.errors import RedisFullError, RedisRefusingError
from shared.ledger import HeldLease, Row
from shared.ledger.calls import ScriptCaller, refused_write
from shared.ledger.ledger import Ledger
from shared.server import diagnostics
from tests.support.ledger_runs import Store, TimedLedger, open_run, state_of, submit_cases, submit_turns
from tests.support.redis_server import RedisServer, break_snapshots
from worker.upstream.stack import compose_all

NewServer = Callable[..., RedisServer]


@pytest.fixture
def client(new_redis_server: NewServer) -> Iterator[Store]:
    """A client of a server of the test's own."""
    with closing(new_redis_server().client()) as made:
        yield made


@pytest.fixture
def ledger(client: Store) -> TimedLedger:
    """A ledger whose clock is the test's, and that waits for nothing."""
    made = TimedLedger(client)
    made.caller.patience_s = made.caller.refused_s = made.caller.full_s = 0.0
    return made


def fill(client: Store) -> None:
    """Lets the server have less memory than it uses."""
    client.config_set("maxmemory", "1mb")
    assert refused_write(client).startswith("OOM ")


def later(ledger: TimedLedger, client: Store) -> None:
    """Lets a second pass; the test's clock is a key, for which there has to be room."""
    client.config_set("maxmemory", 0)
    ledger.pass_ms(1000)
    fill(client)


@pytest.mark.parametrize("kind", ["cases", "turns"])
def test_what_makes_room_works_on_a_full_server(ledger: TimedLedger, client: Store, kind: str) -> None:
    """Pause, resume, cancel and remove, also of a run that is worked on; and workers are heard of."""
    if kind == "cases":
        submit_cases(ledger, "r1", [["0"], ["1"], ["2"]])
    else:
        submit_turns(ledger, "r1", [{"a": [0]}, {"b": [1]}, {"c": [2]}])
    ledger.live_ms(1000, "w1")
    assert ledger.claim("r1", "0", "token", "w1").status == "ok"
    fill(client)
    assert ledger.control("r1", "pause")[0] == "paused"
    assert ledger.control("r1", "resume")[0] == "running"
    assert ledger.renew([HeldLease("r1", "0", "token")]) == ["running"]
    later(ledger, client)
    ledger.tick("w1", [kind], 1)
    assert ledger.control("r1", "cancelled")[0] == "cancelling"
    assert ledger.renew([HeldLease("r1", "0", "token")]) == ["cancelling"]
    assert ledger.remove("r1")
    assert ledger.renew([HeldLease("r1", "0", "token")]) == ["lost"]
    ledger.leave("w1")
    assert not client.keys("proctor:*r1*")


def test_a_cancelled_chunk_is_given_back_on_a_full_server(ledger: TimedLedger, client: Store) -> None:
    """The worker that hears of the end lets go of its chunk, and the run is cancelled."""
    submit_cases(ledger, "r1", [["0"], ["1"]])
    ledger.claim("r1", "0", "token", "w1")
    fill(client)
    ledger.control("r1", "cancelled")
    assert ledger.commit("r1", "0", "token", [], back=True).status == "ok"
    assert state_of(client, "r1")["state"] == "cancelled"


def test_a_load_that_filled_the_server_can_be_removed(ledger: TimedLedger, client: Store) -> None:
    """The loader takes its own back; when it is gone, a tick does."""
    for run in ("r1", "r2"):
        open_run(ledger, run, "cases")
    fill(client)
    ledger.discard("r1", "load")
    assert not client.exists(keys.run_key("r1"))
    for _ in range(20):
        later(ledger, client)
        ledger.tick("w1", ["cases"], 1)
    assert not client.exists(keys.run_key("r2"))


def test_what_needs_room_waits_and_names_who_has_it(ledger: TimedLedger, client: Store) -> None:
    """The error says that Redis is full, how much it may use, which runs hold it, and what to do."""
    submit_cases(ledger, "small", [["0"]])
    open_run(ledger, "large", "cases")
    ledger.load("large", "load", {"0": b"x" * 2_000_000}, {})
    fill(client)
    with pytest.raises(RedisFullError) as caught:
        ledger.claim("small", "0", "token", "w1")
    assert "Redis is full:" in caught.value.message
    assert "maxmemory is 1.0 MB; large (loading) holds 2." in caught.value.message
    assert "small (running)" in caught.value.message
    assert "proctor runs rm RUN" in caught.value.hint
    found = diagnostics.check_writes(refused_write(client), ())
    assert found.status == "fail"
    assert diagnostics.check_memory(client.info()).status == "fail"


def test_a_worker_waits_for_room_longer_than_for_a_server_that_is_away(client: Store) -> None:
    """A call that may wait for ever goes on at the moment there is room, and periodic ones do not wait."""
    ledger = TimedLedger(client)
    submit_cases(ledger, "r1", [["0"]])
    claim = ledger.claim("r1", "0", "token", "w1")
    fill(client)
    ledger.caller.patience_s, ledger.caller.refused_s, ledger.caller.full_s = 0.0, 30.0, 30.0
    began_s = monotonic()
    rows = [Row(item.index, 0, b"an answer that cost money") for item in claim.items]
    client.config_set("min-replicas-to-write", 1)
    with pytest.raises(RedisRefusingError):
        ledger.renew([HeldLease("r1", "0", "token")])
    assert monotonic() - began_s < 5
    client.config_set("min-replicas-to-write", 0)
    refusals: list[redis.RedisError] = []
    once = ledger.caller.client.evalsha

    def evalsha(*args: object) -> object:
        """Makes room when the call was refused for the third time."""
        if len(refusals) == 3:
            client.config_set("maxmemory", 0)
        try:
            return once(*args)
        except redis.RedisError as error:
            refusals.append(error)
            raise

    ledger.caller.client.evalsha = evalsha
    assert ledger.commit("r1", "0", "token", rows, back=True).accepted == [True]
    assert len(refusals) == 3


def test_calls_to_upstreams_end_on_a_full_server(client: Store) -> None:
    """A permit is given back and renewed, and a cost is settled, without room."""
    caller = ScriptCaller(client, patience_s=0.0, scripts=compose_all())
    client.hset(keys.cost_key("r1"), mapping={"c:call": 5, "held": 5})
    scope = ("alpha", 0, 0, 0, 0, 1)
    assert caller.run("acquire", "permit", "0", 1, 0, 1, *scope)[0] == b"go"
    fill(client)
    with pytest.raises(RedisFullError):
        caller.run("acquire", "other", "0", 1, 0, 1, *scope)
    caller.run("renew_permits", "alpha", "permit")
    assert caller.run("release", "permit", "ok", 10, -1, 1, 0, 1, "alpha", 0) == [b"ok"]
    assert caller.run("settle_cost", "r1", "call", "7", "") == [b"ok"]
    assert client.hget(keys.cost_key("r1"), "spent") == b"7"


def test_a_disk_that_is_full_is_waited_for_with_one_line(new_redis_server: NewServer) -> None:
    """MISCONF: the caller hears once why it waits; in the end the error names the cause and the way out."""
    server = new_redis_server("--appendonly", "no")
    with closing(server.client()) as client:
        break_snapshots(server.folder, client)
        heard: list[str] = []
        ledger = Ledger(client, patience_s=1.0, on_refusal=heard.append)
        with pytest.raises(RedisRefusingError, match=r"takes no writes: MISCONF .*RDB snapshots") as caught:
            ledger.control("r1", "pause")
        assert len(heard) == 1
        assert "on @user_script" not in caught.value.message
        assert "disk" in caught.value.hint
        found = diagnostics.check_writes(refused_write(client))
        assert (found.status, found.fix) == ("fail", caught.value.hint)
