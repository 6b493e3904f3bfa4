"""A retry asks for what went wrong or was never done, once, in order; old results stand meanwhile."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from producer.document import run_document
from producer.turns import retry as module
from producer.turns.retry import Retried, retry_turns
from shared.errors import RunStateError, UnknownRunError, UsageError
from shared.names import RunState
from tests.support.inline_worker import InlineWorker
from tests.support.turn_files import turn_lines

STALE = {"thread_memento_etag": "3"}
"""Wrong for the first turns of a thread; right once three turns are committed."""


def retry(worker: InlineWorker, run: str, **choice: Any) -> Retried:
    """Retries with the worker's own ledger."""
    return retry_turns(worker.ledger, worker, worker.store, run, **choice)


def work(worker: InlineWorker) -> None:
    """Works until nothing is left."""
    worker.register()
    worker.work()


def codes(worker: InlineWorker, run: str) -> list[str]:
    """The first letter of every row's code, in input order."""
    return [row.code[:1] for row in worker.store.rows(run)]


def with_errors(threads: int) -> list[dict[str, Any]]:
    """Four turns a thread, of which the first ends in error until the others are committed."""
    turns = turn_lines(threads, 4)
    for turn in turns[::4]:
        turn.update(STALE)
    return turns


def test_errors_are_asked_for_again(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """A finished run with errors runs again for those alone; they succeed, and the exit code is 0."""
    run = submitted(with_errors(30), chunk_turns=40)
    work(inline_worker)
    before = run_document(inline_worker.store, run)
    assert (before.exit, before.summary.errors) == (1, {"etag_conflict": 30})
    assert retry(inline_worker, run) == Retried(items=30, left=0)
    info = inline_worker.store.info(run)
    assert (info.state, info.total, info.done, info.generation) == (RunState.RUNNING, 120, 90, 1)
    assert codes(inline_worker, run) == ["x", "s", "s", "s"] * 30, "the old results stand meanwhile"
    work(inline_worker)
    after = run_document(inline_worker.store, run)
    assert (after.state, after.exit) == ("finished", 0)
    assert (after.counts.decided, after.counts.error, after.summary.retried) == (120, 0, 30)
    assert inline_worker.store.info(run).done == 120
    rows = list(inline_worker.store.rows(run))
    assert [row.index for row in rows] == list(range(120))
    assert [row.attempts for row in rows] == [2, 1, 1, 1] * 30
    # Retried turns go to the end of their thread.
    assert [json.loads(row.line)["etag"] for row in rows[:4]] == ["4", "1", "2", "3"]


def test_what_was_never_decided_is_asked_for(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """A cancelled run goes on where it stopped: every turn is decided once, and the run is finished."""
    run = submitted(turn_lines(40, 10), chunk_turns=100)
    inline_worker.work(chunks=1)
    inline_worker.ledger.control(run, "cancelled")
    assert retry(inline_worker, run) == Retried(items=300, left=0)
    work(inline_worker)
    info = inline_worker.store.info(run)
    assert (info.state, info.done) == (RunState.FINISHED, 400)
    rows = list(inline_worker.store.rows(run))
    assert [row.index for row in rows] == list(range(400))
    assert {row.attempts for row in rows} == {1}
    assert [json.loads(row.line)["etag"] for row in rows] == [str(1 + at % 10) for at in range(400)]


def test_a_batch_that_was_cut_in_the_middle_goes_on(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Of a batch decided in part, only the rest is asked for."""
    run = submitted(turn_lines(2, 5))
    inline_worker.work(chunks=2, turns=1)
    inline_worker.ledger.control(run, "cancelled")
    assert codes(inline_worker, run) == ["s", "s", "", "", ""] * 2
    assert retry(inline_worker, run).items == 6
    work(inline_worker)
    assert codes(inline_worker, run) == ["s"] * 10
    assert inline_worker.store.info(run).state == RunState.FINISHED


def test_resuming_leaves_errors_alone(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """Asked for open turns only, errors stay; without any open turn there is nothing to do."""
    run = submitted(with_errors(20), chunk_turns=40)
    inline_worker.work(chunks=1)
    inline_worker.ledger.control(run, "cancelled")
    assert retry(inline_worker, run, errors=False).items == 40
    work(inline_worker)
    assert codes(inline_worker, run).count("x") == 20
    with pytest.raises(UsageError, match="has nothing to retry"):
        retry(inline_worker, run, errors=False)


def test_a_retry_in_part_ends_in_the_old_state(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """A cancelled run of which some turns were decided later is still cancelled: `finished` needs all."""
    run = submitted(turn_lines(40, 10), chunk_turns=100)
    inline_worker.ledger.control(run, "cancelled")
    assert retry(inline_worker, run, indexes=[7, 399]).items == 2
    work(inline_worker)
    info = inline_worker.store.info(run)
    assert (info.state, info.done) == (RunState.CANCELLED, 2)
    assert [at for at, code in enumerate(codes(inline_worker, run)) if code] == [7, 399]
    retry(inline_worker, run)
    work(inline_worker)
    assert (inline_worker.store.info(run).state, inline_worker.store.info(run).done) == (
        RunState.FINISHED,
        400,
    )


def test_a_cancelled_retry_leaves_the_old_results(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Errors whose retry was cancelled are errors as before and can be retried; the count stays right."""
    run = submitted(with_errors(5))
    work(inline_worker)
    retry(inline_worker, run)
    inline_worker.ledger.control(run, "cancelled")
    assert codes(inline_worker, run) == ["x", "s", "s", "s"] * 5
    info = inline_worker.store.info(run)
    assert (info.is_final, info.done) == (True, 20)
    assert retry(inline_worker, run).items == 5
    work(inline_worker)
    assert codes(inline_worker, run) == ["s"] * 20
    assert (inline_worker.store.info(run).state, inline_worker.store.info(run).done) == (
        RunState.FINISHED,
        20,
    )


def test_chosen_turns_are_decided_again(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """Named turns are asked for whatever became of them; a name that is none is refused."""
    run = submitted(turn_lines(3, 4))
    work(inline_worker)
    assert retry(inline_worker, run, indexes=[0, 11]).items == 2
    work(inline_worker)
    assert [row.attempts for row in inline_worker.store.rows(run)] == [2, *[1] * 10, 2]
    assert inline_worker.store.info(run).done == 12
    with pytest.raises(UsageError, match="has no turn-12"):
        retry(inline_worker, run, indexes=[3, 12])


def test_a_second_retry_reads_the_newest_results(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Errors of a retry can be retried; turns that the first retry mended are not asked for again."""
    turns = with_errors(2)
    turns[4]["thread_memento_etag"] = "never"
    run = submitted(turns)
    work(inline_worker)
    assert retry(inline_worker, run).items == 2
    work(inline_worker)
    assert codes(inline_worker, run) == ["s"] * 4 + ["x", "s", "s", "s"]
    assert retry(inline_worker, run).items == 1
    work(inline_worker)
    assert [row.attempts for row in inline_worker.store.rows(run)] == [2, 1, 1, 1, 3, 1, 1, 1]
    assert inline_worker.store.info(run).generation == 2


def test_a_huge_retry_goes_in_steps(
    inline_worker: InlineWorker, submitted: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More turns than one call carries are left for the next retry, and counted."""
    monkeypatch.setattr(module, "MOST_TURNS", 150)
    run = submitted(turn_lines(40, 10), chunk_turns=100)
    inline_worker.ledger.control(run, "cancelled")
    asked = []
    while inline_worker.store.info(run).state != RunState.FINISHED:
        retried = retry(inline_worker, run)
        asked.append(retried)
        work(inline_worker)
    assert asked == [Retried(200, 200), Retried(200, 0)]
    assert [json.loads(row.line)["etag"] for row in inline_worker.store.rows(run)] == [
        str(1 + at % 10) for at in range(400)
    ]


def test_a_run_at_work_cannot_be_retried(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """Turns wait for the end of their run, so that none is asked for twice at a time."""
    run = submitted(turn_lines(2, 2))
    with pytest.raises(RunStateError, match="is running and cannot be retried now"):
        retry(inline_worker, run)
    work(inline_worker)
    with pytest.raises(UsageError, match="has nothing to retry") as caught:
        retry(inline_worker, run)
    assert caught.value.hint == "every turn is decided"
    with pytest.raises(UnknownRunError):
        retry(inline_worker, "run-x")
