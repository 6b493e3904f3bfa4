"""States that the ledger reads from a run how its items lie, and knows no kind by its name."""

import pytest

from shared import keys, kinds
from shared.codecs.turn_batches import Block, pack_block
from shared.kinds import Kind, Storage, all_kinds, register
from shared.ledger import PartCommit, ThreadCommit
from shared.ledger.scripts import compose_all
from shared.ledger.wire import unpack_dead
from tests.support.ledger_runs import (
    Store,
    TimedLedger,
    decide_all,
    state_of,
    submit_cases,
    submit_turns,
    threads_of,
)
from tests.support.ledger_twin import TEST_CLOCK


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch) -> Kind:
    """A fourth kind, whose items lie in mailboxes as turns do."""
    monkeypatch.setattr(kinds, "_registry", dict(kinds._registry))
    task = "proctor.letters.read"
    return register(Kind("letters", "letter", task, Storage.MAILBOXES, outcomes=("passed", "error")))


@pytest.fixture
def ledger(redis_client: Store, letters: Kind) -> TimedLedger:
    """A ledger on an empty server whose clock is the test's, with scripts that look after letters."""
    assert letters in all_kinds()
    return TimedLedger(redis_client, scripts=compose_all({"now": TEST_CLOCK}))


def test_a_run_stores_how_its_items_lie(ledger: TimedLedger) -> None:
    """It is set when the run is opened, from its kind."""
    submit_turns(ledger, "r1", [{"a": [0]}])
    submit_cases(ledger, "r2", [["0"]])
    assert [state_of(ledger.client, run)["storage"] for run in ("r1", "r2")] == ["mailboxes", "list"]


def test_runs_of_the_version_before_are_read(ledger: TimedLedger, redis_client: Store) -> None:
    """They have no such field: turns lie in mailboxes, everything else in a list."""
    wakes = submit_turns(ledger, "r1", [{"a": [0, 2]}, {"a": [3]}])
    redis_client.hdel(keys.run_key("r1"), "storage")
    decide_all(ledger, wakes)
    submit_cases(ledger, "r2", [["0"]])
    redis_client.hdel(keys.run_key("r2"), "storage")
    assert redis_client.hget(keys.mementos_key("r1"), "a") == b"r1/0,r1/2,r1/3,"
    assert state_of(redis_client, "r1")["state"] == "finished"
    assert [item.index for item in ledger.claim("r2", "0", "token", "w1").items] == ["0"]


def test_a_further_kind_lies_in_mailboxes(ledger: TimedLedger, redis_client: Store) -> None:
    """Its threads are decided in order by a worker of that kind, and a tick hands out what is left."""
    wakes = submit_turns(ledger, "r1", [{"a": [0, 2]}, {"a": [3]}], kind="letters")
    assert {wake.kind for wake in wakes} == {"letters"}
    decide_all(ledger, wakes)
    assert redis_client.hget(keys.mementos_key("r1"), "a") == b"r1/0,r1/2,r1/3,"
    assert state_of(redis_client, "r1")["state"] == "finished"


def test_dead_items_have_the_kind_of_their_run(ledger: TimedLedger, redis_client: Store) -> None:
    """Also where a worker on turns has met them in a namespace that runs share."""
    submit_turns(ledger, "r1", [{"a": [0]}], kind="letters", namespace="shared")
    claim = ledger.claim("r1", "0", "token", "w1")
    [thread] = threads_of(claim)
    block = Block(0, 1, 2, [0], ["m2"], [b"{}"])
    parts = [PartCommit(0, 1, pack_block(block), dead=[0])]
    found = ThreadCommit(thread.thread, thread.pos, thread.memento, parts)
    ledger.commit_threads("r1", "0", "token", [found], back=True, tally={"r1": {"error": 1}})
    assert unpack_dead(redis_client.hget(keys.DEAD_ITEMS_KEY, "r1 0") or b"").kind == "letters"


def test_poison_of_a_further_kind_is_counted_as_its_own(ledger: TimedLedger, redis_client: Store) -> None:
    """A letter that no worker survives ends in error, in the counters of letters."""
    submit_turns(ledger, "r1", [{"a": [0]}], kind="letters")
    for number in range(5):
        ledger.claim("r1", "0", f"token{number}", "w1")
        ledger.live_ms(20_000)
    assert state_of(redis_client, "r1")["n:error"] == "1"
    assert redis_client.hget(keys.COUNTERS_KEY, "items letters error") == b"1"
    assert unpack_dead(redis_client.hget(keys.DEAD_ITEMS_KEY, "r1 0") or b"").kind == "letters"
