"""Redis is killed, frozen, cut off or emptied of wake-ups in the middle of the work: nothing is lost."""

from time import monotonic
from typing import Final

import pytest

from shared.kinds import TURNS
from shared.ledger.scripts import compose_all
from shared.ledger.times import Times
from tests.support.eventually import eventually, stays
from tests.support.invariants import UNACKED, UNACKED_INDEX, let_ledger_time_pass
from tests.support.processes import SHORT_LEASE_S, Processes
from tests.support.proxy import Door, Trap
from tests.support.redis_server import RedisServer
from tests.support.trial import Trial, woven_turns

pytestmark = pytest.mark.chaos

CHUNK_TURNS: Final = 10
"""So small that a few thousand turns have a middle."""
SCRIPTS: Final = compose_all(times=Times.of(SHORT_LEASE_S))
"""As the programs under test have them."""


@pytest.mark.parametrize("seconds", [4, pytest.param(22, marks=pytest.mark.slow)])
def test_a_frozen_redis_ends_no_lease(server: RedisServer, own_trial: Trial, seconds: int) -> None:
    """While Redis stands still nobody can renew, so nobody's lease ends, however long it takes."""
    trial = own_trial
    workers = trial.workers("one@test", "two@test")
    file = trial.file(woven_turns(60, 100))
    run = trial.submit(file, chunk_turns=CHUNK_TURNS)
    trial.middle(run)
    # The holder stands still too: only the clock of Redis could end its leases.
    holder, held = trial.freeze_at_work(workers, run)
    server.freeze()
    stays(lambda: None, seconds)
    server.thaw()

    def are_held() -> None:
        assert trial.held(run, holder) == held

    stays(are_held, 3)
    workers[holder].thaw()
    trial.finished(run)
    # An acknowledgement may have gone over a connection that was given up meanwhile.
    trial.wakes_of_the_dead_do_nothing(run, trial.check(run, file))


@pytest.mark.timeout(240)
def test_connections_that_break_cost_nothing_but_time(server: RedisServer, processes: Processes) -> None:
    """All connections are reset five times, and replies of every kind of call are lost: one result a turn."""
    with Door(server.socket) as door, Trial.on(server, processes, url=door.url) as trial:
        for script in SCRIPTS.values():
            trial.client.script_load(script.text)
        workers = trial.workers("one@test", "two@test").values()
        file = trial.file(woven_turns(60, 100))
        run = trial.submit(file, chunk_turns=CHUNK_TURNS)
        for share, name in enumerate(("claim", "commit_threads", "tick", "commit_threads", "claim"), 1):
            trial.middle(run, share / 20)
            trap = door.trap = Trap(SCRIPTS[name].sha.encode(), lambda: None, after=True)
            # An earlier cut may have taken every wake-up that was on its way: they come again first.
            eventually(lambda trap=trap: _sprung(trap), trial.overdue_s + 15)  # type: ignore[misc] # the loop's own trap
            door.cut()
        # Wake-ups were on the connections too. They come again after half a minute, which passes now.
        let_ledger_time_pass(trial.client, trial.overdue_s)
        trial.finished(run)
        trial.check(run, file)
        trial.nothing_is_left(fetched=True)
        for worker in workers:
            assert worker.is_running()
            assert "Traceback" not in worker.errors


def _sprung(trap: Trap) -> None:
    assert trap.sprung.is_set()


@pytest.mark.parametrize("waits", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_wake_ups_that_the_broker_loses_come_again(trial: Trial, *, waits: bool) -> None:
    """Emptying the broker costs half a minute for the chunks that were in it, and no result."""
    file = trial.file(woven_turns(20, CHUNK_TURNS, width=1))  # a chunk is a thread
    run = trial.submit(file, chunk_turns=CHUNK_TURNS)
    queue = f"proctor:{TURNS}"
    assert trial.client.llen(queue) == 2
    trial.client.delete(queue, UNACKED, UNACKED_INDEX)
    trial.worker("one@test")
    lost_at = monotonic()

    def only_they_are_left() -> None:
        assert trial.info(run).done == trial.info(run).total - 2 * CHUNK_TURNS

    eventually(only_they_are_left, 20)
    if not waits:
        let_ledger_time_pass(trial.client, trial.overdue_s)
    trial.finished(run, within_s=trial.overdue_s + 15)
    assert monotonic() - lost_at < trial.overdue_s + 10
    trial.check(run, file)
    trial.nothing_is_left()
