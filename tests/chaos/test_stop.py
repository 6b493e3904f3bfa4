"""Workers are signalled to end, or stand still, during the work: nothing waits, nothing comes twice."""

import signal
from time import monotonic
from typing import Final

import pytest

from shared.kinds import TURNS
from tests.support.trial import Stopwatch, Trial, woven_turns

pytestmark = pytest.mark.chaos

CHUNK_TURNS: Final = 10
"""So small that a few thousand turns have a middle."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_workers_that_are_stopped_give_everything_back(trial: Trial, number: signal.Signals) -> None:
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
    assert trial.store.workers(TURNS) == []
    watch = Stopwatch(trial, run, started_at)
    trial.worker("three@test")
    trial.finished(run)
    watch.check(trial.lease_s - 1)
    trial.check(run, file)
    trial.nothing_is_left(fetched=number == signal.SIGQUIT)
    assert "Traceback" not in "".join(worker.errors for worker in workers)
