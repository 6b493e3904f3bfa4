"""Workers are told to end, or stand still, in the middle of the work: nothing waits, nothing comes twice."""

import signal
from time import monotonic
from typing import Final

import pytest

from tests.support.trial import Stopwatch, Trial, woven_turns

pytestmark = pytest.mark.chaos

CHUNK_TURNS: Final = 10
"""So small that a few thousand turns have a middle."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_workers_that_are_told_to_end_give_everything_back(trial: Trial, number: signal.Signals) -> None:
    """Told gently or at once: what they did not finish is free when they are gone, and waits for no lease."""
    workers = trial.workers("one@test", "two@test").values()
    file = trial.file(woven_turns(60, 100))
    started_at = monotonic()
    run = trial.submit(file, chunk_turns=CHUNK_TURNS)
    trial.middle(run)
    for worker in workers:
        worker.send(number)
    assert [worker.wait(10) for worker in workers] == [0, 0]
    assert not trial.info(run).is_final
    assert trial.held(run) == {}
    assert trial.store.workers("turns") == []
    watch = Stopwatch(trial, run, started_at)
    trial.worker("three@test")
    trial.finished(run)
    watch.check(trial.lease_s - 1)
    trial.check(run, file)
    trial.nothing_is_left(fetched=number == signal.SIGQUIT)
    assert "Traceback" not in "".join(worker.errors for worker in workers)


def test_a_worker_that_stood_still_comes_too_late(trial: Trial) -> None:
    """A worker is stopped for longer than its lease: others do its work, and its own commits are refused."""
    workers = trial.workers("one@test", "two@test")
    file = trial.file(woven_turns(60, 100))
    started_at = monotonic()
    run = trial.submit(file, chunk_turns=CHUNK_TURNS)
    trial.middle(run)
    name, _ = trial.freeze_at_work(workers, run)
    sleeper = workers.pop(name)
    watch = Stopwatch(trial, run, started_at)
    trial.finished(run)
    watch.check()
    rows = trial.check(run, file)
    sleeper.thaw()
    trial.nothing_is_left()
    assert trial.rows(run) == rows
    assert sleeper.is_running()
    assert "Traceback" not in sleeper.errors
    # It is a worker like any other again, also alone.
    [other] = workers.values()
    assert other.stop() == 0
    again = trial.file(woven_turns(20, 10))
    second = trial.submit(again, chunk_turns=CHUNK_TURNS)
    trial.finished(second)
    trial.check(second, again)
