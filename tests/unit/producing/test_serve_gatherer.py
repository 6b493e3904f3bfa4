"""The gatherer of `proctor serve` without Redis: ends that come early, and turns that wait to go together."""

import asyncio
from collections import deque
from collections.abc import Sequence
from queue import Empty, Queue
from typing import Any

import pytest
from msgspec import Raw
from redis.exceptions import ConnectionError  # noqa: A004 - as Redis calls it

from producer.serve import gatherer
from producer.serve.gatherer import Gatherer
from producer.serve.micro_runs import Heard, ServedTurn
from producer.serve.turn_bodies import AcceptedTurn

WITHIN_S = 10.0


class ToldRuns:
    """Micro-runs that end when the test says so, and are never found by looking."""

    def __init__(self) -> None:
        self.sizes = list[int]()
        self.told, self.heard_of = Queue[str](), Queue[str]()
        self.ends_early = False
        self.failures = deque[str]()
        """Names of calls that fail next, because Redis is away."""
        self.errors: dict[str, type[Exception]] = {}
        """What these calls raise; by default, as Redis does that is away."""
        self.unread = set[str]()

    def next_run(self) -> str:
        """Counts runs."""
        return f"run-{len(self.sizes) + 1}"

    def submit(self, run: str, turns: Sequence[AcceptedTurn], *_: Any, **_keep: Any) -> None:
        """Takes turns; an early end is heard before this returns."""
        self._fail("submit")
        self.sizes.append(len(turns))
        if self.ends_early:
            self.told.put(run)
            self.heard_of.get(timeout=WITHIN_S)
            self.heard_of.get(
                timeout=WITHIN_S
            )  # the second look comes after the loop has dealt with the first

    def heard(self) -> Heard:
        """Tells what has ended."""
        self.heard_of.put("a look")
        try:
            return Heard([self.told.get(timeout=0.05)], [])
        except Empty:
            return Heard([], [])

    def read(self, run: str, total: int) -> list[ServedTurn]:
        """Reads results."""
        self._fail("read")
        return [ServedTurn("m2", Raw(run.encode()), None)] * total

    def ended_among(self, runs: Sequence[str]) -> list[str]:
        """Finds what could not be read, and nothing else."""
        return [run for run in runs if run in self.unread]

    def _fail(self, call: str) -> None:
        if self.failures and self.failures[0] == call:
            self.failures.popleft()
            self.unread.add(f"run-{len(self.sizes)}")
            raise self.errors.get(call, ConnectionError)("away")

    def adopt(self, _known: Any) -> None:
        """Finds nothing."""

    def keep_results(self, _run: str, _found: Any) -> None:
        """Keeps nothing."""

    def fold(self, _runs: Sequence[str]) -> None:
        """Needs nothing."""


def gathering(runs: Any) -> Gatherer:
    """Makes a gatherer."""
    return Gatherer(runs, 1_000, 500, lambda _turns: None)


def test_a_run_that_ends_before_its_submit_returns_is_answered_at_once() -> None:
    """A worker can be faster than the reply to the server that submits; its turns have their ids by then."""

    async def talk() -> tuple[bytes, list[str]]:
        runs = ToldRuns()
        runs.ends_early = True
        each = gathering(runs)
        each.start()
        try:
            waiting = each.accept([AcceptedTurn("t", b"{}")])
            [found] = await asyncio.wait_for(waiting.results, WITHIN_S)
            return bytes(found.result), waiting.ids.result()
        finally:
            await each.close()

    assert asyncio.run(talk()) == (b"run-1", ["run-1.0"])


def test_a_redis_that_is_away_for_a_moment_costs_no_answer_and_no_room() -> None:
    """Results that could not be read are read later; turns that could not be submitted get their error."""

    async def talk() -> tuple[bytes, int]:
        runs = ToldRuns()
        runs.failures.extend(["submit", "read"])
        each = gathering(runs)
        each.start()
        try:
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(each.accept([AcceptedTurn("t", b"{}")]).results, WITHIN_S)
            waiting = each.accept([AcceptedTurn("t", b"{}")])
            await waiting.ids
            runs.told.put("run-1")
            [found] = await asyncio.wait_for(waiting.results, WITHIN_S)
            return bytes(found.result), each.waiting
        finally:
            await each.close()

    assert asyncio.run(talk()) == (b"run-1", 0)


@pytest.mark.parametrize("call", ["submit", "read"])
def test_an_error_that_nobody_foresaw_costs_its_own_turns_only(call: str) -> None:
    """Their caller gets it at once, and further turns are decided as always."""

    async def talk() -> tuple[bytes, int, bool]:
        runs = ToldRuns()
        runs.failures.append(call)
        runs.errors[call] = ValueError
        each = gathering(runs)
        each.start()
        try:
            waiting = each.accept([AcceptedTurn("t", b"{}")])
            if call == "read":
                await waiting.ids
                runs.told.put("run-1")
            with pytest.raises(ValueError, match="away"):
                await asyncio.wait_for(waiting.results, WITHIN_S)
            run = runs.next_run()
            waiting = each.accept([AcceptedTurn("t", b"{}")])
            await waiting.ids
            runs.told.put(run)
            [found] = await asyncio.wait_for(waiting.results, WITHIN_S)
            return bytes(found.result), each.waiting, each.is_running
        finally:
            await each.close()

    result, waiting, is_running = asyncio.run(talk())
    assert (result, waiting, is_running) == (b"run-2" if call == "read" else b"run-1", 0, True)


def test_a_task_that_ends_is_noticed() -> None:
    """A gatherer whose work has ended says so, for `/readyz`."""

    async def talk() -> tuple[bool, bool]:
        each = gathering(ToldRuns())
        each.start()
        before = each.is_running
        await each.close()
        return before, each.is_running

    assert asyncio.run(talk()) == (True, False)


def test_turns_go_together_while_several_runs_are_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes meanwhile waits for one to end, and is one run."""
    monkeypatch.setattr(gatherer, "BUSY_S", 60.0)

    async def talk() -> list[int]:
        runs = ToldRuns()
        each = gathering(runs)
        each.start()
        try:
            for _ in range(gatherer.MOST_UNDER_WAY):
                await each.accept([AcceptedTurn("t", b"{}")]).ids
            later = [each.accept([AcceptedTurn("t", b"{}")]) for _ in range(5)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(later[0].ids), 0.1)
            runs.told.put("run-1")
            await asyncio.wait_for(later[-1].ids, WITHIN_S)
            return runs.sizes
        finally:
            await each.close()

    assert asyncio.run(talk()) == [1, 1, 1, 5]
