"""`kill -9` of workers, in the middle of much work and at every single step of a little: nothing is lost."""

import os
import signal
from time import monotonic
from typing import Final

import pytest

from shared.ledger.scripts import compose_all
from shared.ledger.times import Times
from shared.settings import LEASE_S
from tests.support.invariants import UNACKED_INDEX, deliver_again, let_ledger_time_pass
from tests.support.processes import SHORT_LEASE_S, Process, Processes
from tests.support.proxy import Door, Trap
from tests.support.redis_server import RedisServer
from tests.support.trial import Stopwatch, Trial, woven_turns

pytestmark = pytest.mark.chaos

TURNS: Final = 100
CHUNK_TURNS: Final = 40
"""Small, so that the run has a middle: hundreds of messages, and four chunks that share the same threads."""


@pytest.fixture
def threads(lease_s: int) -> int:
    """4,000 turns, or 20,000 in the long form."""
    return 40 if lease_s < LEASE_S else 200


def test_a_killed_worker_costs_seconds_and_no_turn(trial: Trial, threads: int) -> None:
    """One of two workers killed amid thousands of turns: each turn once, in order, soon after the lease."""
    workers = trial.workers("one@test", "two@test")
    file = trial.file(woven_turns(threads, TURNS))
    started_at = monotonic()
    run = trial.submit(file, chunk_turns=CHUNK_TURNS)
    trial.middle(run)
    victim, _ = trial.freeze_at_work(workers, run)
    watch = Stopwatch(trial, run, started_at)
    workers[victim].kill()
    trial.finished(run)
    watch.check()
    rows = trial.check(run, file)
    trial.nothing_is_left(fetched=True)
    trial.wakes_of_the_dead_do_nothing(run, rows)


SCRIPTS: Final = compose_all(times=Times.of(SHORT_LEASE_S))
"""As the programs under test have them."""
STAGES: Final = {
    "wake-up fetched": (b"proctor.turns.evaluate", "reply"),
    "claim sent": (SCRIPTS["claim"].sha.encode(), "before"),
    "claimed, nothing decided": (SCRIPTS["claim"].sha.encode(), "after"),
    "decided, not committed": (SCRIPTS["commit_threads"].sha.encode(), "before"),
    "committed, next chunk not published": (SCRIPTS["commit_threads"].sha.encode(), "after"),
    "done, not acknowledged": (UNACKED_INDEX.encode(), "acknowledgement"),
    "healed, wake-ups not published": (SCRIPTS["tick"].sha.encode(), "after"),
}
"""Where a worker can stand when it dies: the message that passes then, and on which side of it."""


def trap(stage: str, victim: Process) -> Trap:
    """Kills the victim at a stage."""
    word, when = STAGES[stage]

    def kill() -> None:
        os.kill(victim.pid, signal.SIGKILL)

    if when == "acknowledgement":
        word = b"ZREM\r\n$" + str(len(word)).encode() + b"\r\n" + word
    return Trap(word, kill, is_reply=when == "reply", after=when == "after")


@pytest.mark.parametrize("stage", STAGES)
def test_a_worker_killed_at_any_step_loses_nothing(
    server: RedisServer, processes: Processes, stage: str
) -> None:
    """Whatever a worker had just sent or heard when it was killed, each turn is decided once, in order."""
    with Door(server.socket) as door, Trial.on(server, processes, url=door.url) as trial:
        for script in SCRIPTS.values():
            trial.client.script_load(script.text)
        victim = trial.worker("victim@test")
        file = trial.file(woven_turns(20, 10))
        door.trap = trap(stage, victim)
        run = trial.submit(file, chunk_turns=CHUNK_TURNS, await_disk=False)
        assert victim.wait(10) == -signal.SIGKILL
        assert door.trap.sprung.is_set()
        let_ledger_time_pass(trial.client, trial.lease_s + 1)
        deliver_again(trial.client)
        trial.worker("survivor@test")
        trial.finished(run, within_s=10)
        trial.check(run, file)
        trial.nothing_is_left()
