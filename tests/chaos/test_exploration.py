"""Explores lives of the ledger under faults: producers, workers, broker and operators in seeded disorder.

After every script all invariants of `tests/support/ledger_simulation_checks.py` hold; in the end every run is
final, in order, and leaves nothing behind. A seed that fails is repeated with `Simulation(seed).run(STEPS)`.
`EXPLORE_SEEDS` sets how many seeds the long form takes.
"""

import os
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import pytest

from tests.support.ledger_model import LedgerModel
from tests.support.ledger_model_state import Part, Ref, Run
from tests.support.ledger_simulation import Simulation
from tests.support.ledger_twin import Twin
from tests.support.redis_server import RedisServer

STEPS: Final = 1000
SHORT_SEEDS: Final = 15
LONG_SEEDS: Final = int(os.environ.get("EXPLORE_SEEDS", "3000"))
HOLE_SEEDS: Final = 400

pytestmark = pytest.mark.chaos


def explore(first: int, seeds: int) -> None:
    """Lives many lives; a failure names its seed."""
    for seed in range(first, first + seeds):
        try:
            Simulation(seed).run(STEPS)
        except Exception as error:
            error.add_note(f"seed {seed}: Simulation({seed}).run({STEPS})")
            raise


def explore_twins(server: RedisServer, first: int, seeds: int, *, compare_each: int) -> None:
    """Lives lives on the real scripts too, on a server of their own: its clock is the test's."""
    for seed in range(first, first + seeds):
        with closing(server.client()) as client:
            client.flushall()
            twin = Twin(client, compare_each=compare_each)
            life = Simulation(seed, twin.mirror)
            try:
                life.run(STEPS)
                twin.compare(life.model, "everything")
            except Exception as error:
                error.add_note(f"seed {seed}: Simulation({seed}, Twin(client).mirror).run({STEPS})")
                raise


def test_no_fault_breaks_an_invariant() -> None:
    """Whatever dies, is lost, comes twice or comes late: every result is there once and in order."""
    explore(1, SHORT_SEEDS)


def test_the_scripts_live_the_same_life(new_redis_server: Callable[[], RedisServer]) -> None:
    """On a real server every script answers what the model answers, and leaves the same keys."""
    explore_twins(new_redis_server(), 1, 2, compare_each=5)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_no_fault_breaks_an_invariant_for_long() -> None:
    """The same, with many more lives."""
    explore(1_000_000, LONG_SEEDS)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_the_scripts_live_the_same_life_for_long(new_redis_server: Callable[[], RedisServer]) -> None:
    """The same, with more lives on the server."""
    explore_twins(new_redis_server(), 2_000_000, max(20, LONG_SEEDS // 20), compare_each=7)


# ---- holes, planted to see that the checks find them


def _position_stays(model: type[LedgerModel]) -> None:
    withdraw = model.withdraw

    def hole(self: LedgerModel, run: Run, part: Part) -> None:
        withdraw(self, run, part)
        self.namespace_of(run).thread(part.thread).pos -= 1

    model.withdraw = hole  # type: ignore[method-assign,assignment]  # plants a hole


def _any_token_commits(model: type[LedgerModel]) -> None:
    commit = model.commit

    def hole(self: LedgerModel, run: str, chunk: str, token: str, *args: Any, **keywords: Any) -> Any:
        record = self.record(run, chunk)
        if record and record.token:
            record.token = token
        return commit(self, run, chunk, token, *args, **keywords)

    model.commit = hole  # type: ignore[method-assign]  # plants a hole


def _locks_stay(model: type[LedgerModel]) -> None:
    end_lease = model.end_lease

    def hole(self: LedgerModel, run: Run, chunk: str) -> int | None:
        threads = self.namespace_of(run).threads
        owners = {name: thread.owner for name, thread in threads.items()}
        claimed_ms = end_lease(self, run, chunk)
        for name, owner in owners.items():
            threads[name].owner = owner
        return claimed_ms

    model.end_lease = hole  # type: ignore[method-assign,assignment]  # plants a hole


def _cancelled_retries_stay(model: type[LedgerModel]) -> None:
    model.forget_redo = lambda *_: None  # type: ignore[method-assign]  # plants a hole


def _always_finished(model: type[LedgerModel]) -> None:
    settle = model.settle

    def hole(self: LedgerModel, run: Run) -> None:
        settle(self, run)
        if not run.plan:
            run.state = "finished"

    model.settle = hole  # type: ignore[method-assign,assignment]  # plants a hole


def _requests_are_not_compared(model: type[LedgerModel]) -> None:
    accept = model.accept_thread

    def hole(self: LedgerModel, run: Run, lease: Any, row: Any, written: list[Ref]) -> bool:
        known = self.namespace_of(run).requests
        kept = {name: known.pop(name) for name, _ in row.requests if name in known}
        accepted = accept(self, run, lease, row, written)
        known.update(kept)
        return accepted

    model.accept_thread = hole  # type: ignore[method-assign]  # plants a hole


def _dropped_turns_count(model: type[LedgerModel]) -> None:
    withdraw = model.withdraw

    def hole(self: LedgerModel, run: Run, part: Part) -> None:
        goal = run.goal
        withdraw(self, run, part)
        run.goal = goal

    model.withdraw = hole  # type: ignore[method-assign,assignment]  # plants a hole


def _wakes_are_not_repeated(model: type[LedgerModel]) -> None:
    model.overdue_ms = lambda *_: 10**12  # type: ignore[method-assign]  # plants a hole
    model.wake_unclaimed = lambda *_: None  # type: ignore[method-assign]  # of idle workers neither


def _folds_count_twice(model: type[LedgerModel]) -> None:
    fold = model.fold_one

    def hole(self: LedgerModel, run: str, *args: Any, **keywords: Any) -> bool:
        found = self.state.runs.get(run)
        done = fold(self, run, *args, **keywords)
        if found and done:
            self.state.runs[run] = found
        return done

    model.fold_one = hole  # type: ignore[method-assign,assignment]  # plants a hole


def _later_turns_come_first(model: type[LedgerModel]) -> None:
    publish = model.publish

    def hole(self: LedgerModel, run: Run, chunk: str) -> Any:
        is_new = chunk not in run.chunks
        wake = publish(self, run, chunk)
        for part in run.plan[chunk].parts if is_new and run.tells else ():
            box = self.namespace_of(run).thread(part.thread).inbox
            box.insert(min(1, len(box) - 1), box.pop())
        return wake

    model.publish = hole  # type: ignore[method-assign,assignment]  # plants a hole


HOLES: Final[dict[str, Callable[[type[LedgerModel]], None]]] = {
    hole.__name__.strip("_"): hole
    for hole in (
        _position_stays,
        _any_token_commits,
        _locks_stay,
        _cancelled_retries_stay,
        _always_finished,
        _requests_are_not_compared,
        _dropped_turns_count,
        _wakes_are_not_repeated,
        _folds_count_twice,
        _later_turns_come_first,
    )
}


@pytest.mark.slow
@pytest.mark.parametrize("hole", HOLES)
def test_a_planted_hole_is_found(monkeypatch: pytest.MonkeyPatch, hole: str) -> None:
    """The checks see each of these mistakes within a few hundred lives."""
    broken = type("Broken", (LedgerModel,), {})
    HOLES[hole](broken)
    monkeypatch.setattr("tests.support.ledger_simulation_world.LedgerModel", broken)
    with pytest.raises((AssertionError, IndexError)):
        explore(1, HOLE_SEEDS)
