"""How a run stands by its counters, without its rows: good, bad, at work, and how much of it passed."""

from enum import Enum
from typing import NamedTuple

from producer.run_settings import is_freeform
from producer.text import share
from shared.names import Outcome, RunState
from shared.runs import RunInfo


class Standing(Enum):
    """How a run stands, at a glance."""

    GOOD = "good"
    BAD = "bad"
    """It has failures, or was aborted."""
    SHORT = "short"
    """It was ended early."""
    WORKING = "working"
    WAITING = "waiting"
    """Paused, or without a worker."""


class Passed(NamedTuple):
    """How many of the items with a result passed."""

    passed: int
    done: int


def standing_of(info: RunInfo, *, is_worked_on: bool) -> Standing:
    """Returns how a run stands.

    Args:
        info: the run.
        is_worked_on: whether a live worker works on its kind.
    """
    match info.state:
        case RunState.FINISHED:
            has_failures = any(info.tally.get(word) for word in (Outcome.FAILED, Outcome.ERROR))
            return Standing.BAD if has_failures else Standing.GOOD
        case RunState.ABORTED:
            return Standing.BAD
        case RunState.CANCELLED | RunState.INCOMPLETE:
            return Standing.SHORT
        case RunState.PAUSED:
            return Standing.WAITING
        case RunState.LOADING | RunState.CANCELLING:
            return Standing.WORKING
        case RunState.RUNNING:
            return Standing.WORKING if is_worked_on else Standing.WAITING


def state_text(info: RunInfo, *, is_worked_on: bool) -> str:
    """Returns the state of a run, with how far it came.

    A running run without workers was interrupted, by Ctrl-C or by the end of its workers; one that was never
    begun waits.
    """
    if info.state in {RunState.FINISHED, RunState.LOADING}:
        return str(info.state)
    word = str(info.state)
    if info.state == RunState.RUNNING and not is_worked_on:
        word = "interrupted" if info.done else "waiting"
    return f"{word} {share(info.done, info.total)}"


def passed_of(info: RunInfo) -> Passed | None:
    """Returns how many items passed; None where nothing is checked or answered."""
    counted = [info.tally.get(word, 0) for word in info.kind.outcomes]
    passed, errors = info.tally.get(Outcome.PASSED, 0), info.tally.get(Outcome.ERROR, 0)
    is_checked = Outcome.PASSED in info.kind.outcomes and not is_freeform(info)
    # A run that an earlier version retried also counted the results that were replaced.
    if not is_checked or sum(counted) != info.done or info.done <= errors:
        return None
    return Passed(passed, info.done)
