"""A turn kills every process that reads it: it is found, given up and kept; all others are decided."""

import json
import sys
from typing import Final

import pytest

from tests.support.eventually import eventually
from tests.support.invariants import let_ledger_time_pass
from tests.support.poisoned_worker import DEATH, POISON
from tests.support.trial import Trial, woven_turns

pytestmark = pytest.mark.chaos

DEATHS: Final = 5
"""Two of the chunk as a whole, three of the turn alone."""
POISONED: Final = 55


def dies(trial: Trial, run: str, number: int) -> bool:
    """Starts a worker process that the poison kills, and tells whether it died before the run ended."""
    command = (sys.executable, "-m", "tests.support.poisoned_worker", "-Q", "turns")
    worker = trial.processes.start(*command, "--name", f"poisoned-{number}@test")

    def has_died() -> bool:
        if worker.is_running():
            assert trial.info(run).is_final
            return False
        assert worker.popen.returncode == DEATH, worker.output_text()
        return True

    return eventually(has_died, 30)


def test_a_poisoned_turn_is_given_up_after_five_deaths(trial: Trial) -> None:
    """It ends as an error and in the dead set, its neighbours are decided; a retry decides it later."""
    turns = woven_turns(20, 5)
    turns[POISONED]["message"] = POISON
    file = trial.file(turns)
    run = trial.submit(file)
    deaths = 0
    while dies(trial, run, deaths):
        deaths += 1
        let_ledger_time_pass(trial.client, trial.lease_s + 1)
        assert deaths <= DEATHS
    assert deaths == DEATHS
    trial.finished(run)
    rows = trial.check(run, file, poisoned=[POISONED])
    assert rows[POISONED]["result"]["messageId"] == turns[POISONED]["messageId"]
    dead = json.loads(trial.cli("dead", "list", "--json").out)["dead"]
    assert [(entry["item_id"], entry["error"]["code"]) for entry in dead] == [(f"turn-{POISONED}", "poison")]
    trial.nothing_is_left(fetched=True)

    # Who reads it now survives it: as if the cause had been mended.
    for worker in trial.processes:
        worker.kill_tree()
    trial.worker("mended@test")
    done = trial.cli("retry", run, "--json")
    assert done.code == 0, done
    rows = trial.check(run, file, retried=[POISONED])
    assert rows[POISONED]["attempts"] == 2
    assert json.loads(trial.cli("dead", "list", "--json").out)["dead"] == []
    trial.nothing_is_left(fetched=True)
