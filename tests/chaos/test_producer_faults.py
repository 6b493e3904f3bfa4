"""The producer dies in the middle of a submit: nothing of it is left, and nothing of it is ever published."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from shared import keys
from shared.errors import UnknownRunError
from shared.names import RunState
from tests.support.eventually import eventually
from tests.support.invariants import let_ledger_time_pass
from tests.support.processes import Process
from tests.support.trial import Trial, woven_turns

pytestmark = pytest.mark.chaos

TURNS: Final = 12_000
"""Two megabytes: a part of it is loaded while the rest is still to come."""


class Pipe:
    """Standard input of a command, written by the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        # Open at both ends, so that the command can open it; its own end is closed once it has.
        self._both = os.open(path, os.O_RDWR)
        self._end = os.open(path, os.O_WRONLY)

    def begin(self) -> None:
        """Lets go of the reading end, so that a reader that is gone is noticed."""
        os.close(self._both)

    def write(self, content: bytes) -> None:
        """Writes all of it, as fast as the command reads."""
        while content:
            content = content[os.write(self._end, content) :]

    def close(self) -> None:
        """Ends the input."""
        os.close(self._end)


@contextmanager
def submitting(trial: Trial, *options: str) -> Iterator[tuple[Process, Pipe, str]]:
    """Starts a submit and stops writing to it when a part of its run is loaded."""
    pipe = Pipe(trial.processes.folder / "pipe")
    process = trial.cli.start("submit", "-", *options, stdin=pipe.path)
    pipe.begin()
    pipe.write(b"".join(json.dumps(turn).encode() + b"\n" for turn in woven_turns(TURNS // 100, 100)))
    pipe.write(b'{"threadId": "t0", "mess')
    yield process, pipe, eventually(lambda: loading_run(trial), 20)


def loading_run(trial: Trial) -> str:
    """The run that is being loaded, once a part of it is there."""
    [info] = trial.store.list()
    assert info.state == RunState.LOADING
    assert trial.client.hlen(keys.items_key(info.run)) > 0
    return info.run


def nothing_was_submitted(trial: Trial, run: str) -> None:
    """Asserts that a run has left nothing behind."""
    assert trial.store.list() == []
    with pytest.raises(UnknownRunError):
        trial.info(run)
    assert trial.client.keys("proctor:run:*") == []
    trial.nothing_is_left()


def test_a_killed_submit_disappears(trial: Trial) -> None:
    """What a killed producer had loaded is never worked on, and goes when its time is over."""
    trial.worker("one@test")
    with submitting(trial) as (process, pipe, run):
        process.kill()
        pipe.close()
        assert trial.info(run).state == RunState.LOADING
        let_ledger_time_pass(trial.client, trial.times.loader_ms / 1000)
        eventually(lambda: nothing_was_submitted(trial, run), 10)


def test_the_same_key_takes_over_from_a_killed_submit(trial: Trial) -> None:
    """A submit with the key of a killed one waits until that one is surely gone, then loads all of it."""
    trial.worker("one@test")
    with submitting(trial, "--idempotency-key", "k") as (process, pipe, run):
        process.kill()
        pipe.close()
        file = trial.file(woven_turns(TURNS // 100, 100))
        second = trial.cli.start("submit", file, "--idempotency-key", "k")
        second.wait_for(f"another submit with this key is loading {run}")
        let_ledger_time_pass(trial.client, trial.times.loader_ms / 1000)
        assert second.wait() == 0, second.output_text()
    [submitted] = second.output.split()
    trial.finished(submitted)
    trial.check(submitted, file)
    assert [info.run for info in trial.store.list()] == [submitted]
    again = trial.cli("submit", file, "--idempotency-key", "k")
    assert again.out.split() == [submitted]
    trial.nothing_is_left()


@pytest.mark.parametrize("how", ["cut off", "interrupted"])
def test_a_broken_off_stream_leaves_nothing(trial: Trial, how: str) -> None:
    """Input that ends within a line, or Ctrl-C, takes back what was loaded, and says so in a line."""
    with submitting(trial) as (process, pipe, run):
        if how == "interrupted":
            process.send(signal.SIGINT)
        else:
            pipe.close()
        assert process.wait() == (130 if how == "interrupted" else 2)
    expected = "interrupted" if how == "interrupted" else f"error: stdin:{TURNS + 1}: "
    assert [line for line in process.errors.splitlines() if line.startswith(expected)], process.output_text()
    assert "Traceback" not in process.errors
    assert process.output == ""
    nothing_was_submitted(trial, run)
