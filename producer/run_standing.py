"""How a run stands: good, bad, at work, and how much of it passed, by its counters or its cases."""

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from producer.cases.repeats import Verdicts
from producer.row_reader import state_of
from producer.run_settings import has_quorums, is_freeform
from producer.text import share
from shared.contracts.case_run import decode_case
from shared.names import Outcome, RunState
from shared.runs import RunInfo, RunStore

MOST_KEPT: Final = 10_000
"""Runs whose verdicts on cases are remembered."""


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
    """How many of the items with a result passed; of a run with verdicts on cases, of the cases."""

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
            has_failures = any(info.outcomes.get(word) for word in (Outcome.FAILED, Outcome.ERROR))
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
    """Returns how many items passed; None where nothing is checked or answered, or no case is counted."""
    done = sum(info.outcomes.get(word, 0) for word in info.kind.outcomes)
    passed, errors = info.outcomes.get(Outcome.PASSED, 0), info.outcomes.get(Outcome.ERROR, 0)
    is_checked = Outcome.PASSED in info.kind.outcomes and not is_freeform(info)
    # A run that an earlier version retried also counted the results that were replaced.
    is_counted = done == info.done and not has_quorums(info) if info.verdicts is None else True
    return Passed(passed, done) if is_checked and is_counted and done > errors else None


def counted(store: RunStore, info: RunInfo) -> RunInfo:
    """Returns a run with the verdicts on its cases, where their answers count together and it has ended.

    Counters of a run are of answers, so the rows are read; once for each state of a run.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    if not info.is_final or not has_quorums(info):
        return info
    return replace(info, verdicts=_verdicts(store, info.run, state_of(info)))


@lru_cache(MOST_KEPT)
def _verdicts(store: RunStore, run: str, _state: str) -> Mapping[str, int]:
    verdicts = Verdicts()
    for page in store.item_pages(run, with_payload=True):
        for row in page:
            verdicts.add(decode_case(row.payload), row.outcome, is_needed=True)
    return verdicts.summary().counts.named()
