"""Processes the items of one claim of a chunk, of any kind: begins, collects and stops them.

the chunk's thread          the loop
due                    ──►  one task an item: work, wait, work
take: results, commit  ◄──  what ended within a few milliseconds, in one batch

pause, drain    nothing new begins, calls in flight end and are committed, the rest is given back
cancel, lost    everything is released at once
"""

import asyncio
from asyncio import Semaphore
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from shared.clock import now_ms
from shared.codecs.parked_items import ParkedState, encode_parked
from shared.errors import RedisUnreachableError
from shared.ledger import Try
from shared.names import RunState
from worker.executors.chunk import log_end
from worker.in_flight_limit import InFlightLimit
from worker.lease_table import Lease
from worker.loop import Loop
from worker.outcomes import Broken, Deferred, Done, EndRun, Released, WorkOutcome
from worker.process import WorkerProcess
from worker.upstream.attempts import CallsMade

COLLECT_S: Final = 0.004
"""Items that end within this time of each other are committed together."""
POLL_S: Final = 0.25
"""How often a chunk's thread checks whether the chunk is to stop."""
GRACEFUL_STATES: Final = frozenset({RunState.RUNNING, RunState.PAUSED})
"""States of a run in which work in flight may end; in all others it is cancelled at once."""


class PoolItem:
    """One task of a pool on the loop."""

    __slots__ = ("_steps", "calls", "started_ms", "task")

    def __init__(self, calls: CallsMade) -> None:
        self.calls = calls
        """The calls that were made for it."""
        self.started_ms = 0
        """Time when its task began, epoch milliseconds."""
        self._steps = 0
        self.task: asyncio.Task[None] | None = None

    @property
    def is_working(self) -> bool:
        """Whether a call or the verdict on its answer is under way; a pause lets it end."""
        return self._steps > 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Marks a call, or the verdict on its answer; a graceful stop waits until all have ended."""
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1

    def parked_as(self, key: str, later: Deferred) -> Try:
        """Encodes why the item waits; attempts are left out, because the ledger counts them.

        Args:
            key: its name in the ledger.
            later: until when it waits, and why.
        """
        history, state = self.calls.history, later.state
        if not state.judges:
            state = ParkedState(state.reason, history._replace(attempts=0), text=state.text)
        return Try(key, history.attempts, later.due_ms, encode_parked(state))


T = TypeVar("T", bound=PoolItem)
R = TypeVar("R")


class Finished(NamedTuple, Generic[T, R]):
    """An item whose task on the loop has ended."""

    item: T
    """The item."""
    outcome: WorkOutcome[R]
    """How the work on it ended."""


class ItemPool(Generic[T, R]):
    """Runs items concurrently, on the process's event loop.

    Args:
        loop: event loop of the process.
        in_flight: limits the items in flight in the process.
        work: works on one item, on the loop.
        slots: limits how many items, and other users of the semaphore, are in flight at a time.
    """

    def __init__(
        self,
        loop: Loop,
        in_flight: InFlightLimit,
        work: Callable[[T], Coroutine[Any, Any, R]],
        *,
        slots: Semaphore,
    ) -> None:
        self.left = 0
        """Items that have begun and were not collected yet; used by the chunk's thread."""
        self._loop, self._in_flight, self._work, self._slots = loop, in_flight, work, slots
        self._open = dict[T, None]()
        self._ended = list[Finished[T, R]]()
        self._is_collecting = False
        self._is_stopping = False
        self._out: SimpleQueue[list[Finished[T, R]]] = SimpleQueue()

    def begin(self, items: Sequence[T]) -> None:
        """Begins items in order, also one that has ended before; returns at once."""
        if items:
            self.left += len(items)
            self._loop.call(self._begin, items)

    def collect(self, within_s: float) -> Sequence[Finished[T, R]]:
        """Returns items that have ended; empty if none ends within this time."""
        try:
            ended = self._out.get(timeout=within_s)
        except Empty:
            return ()
        self.left -= len(ended)
        return ended

    def stop(self, *, is_forced: bool) -> None:
        """Releases items that have not begun or wait; with `is_forced` also those with calls in flight."""
        self._loop.call(self._stop, is_forced)

    def _begin(self, items: Sequence[T]) -> None:
        loop = asyncio.get_running_loop()
        for item in items:
            self._open[item] = None
            item.task = loop.create_task(self._run(item))

    async def _run(self, item: T) -> None:
        outcome: WorkOutcome[R] = Released()
        try:
            async with self._slots, self._in_flight.semaphore:
                if not self._is_stopping:
                    item.started_ms = now_ms()
                    outcome = Done(await self._work(item))
        except asyncio.CancelledError:
            outcome = Released()
        except (Deferred, EndRun) as end:
            outcome = end.with_traceback(None)  # a traceback keeps all frames that it passed alive
        except Exception as error:  # noqa: BLE001 - an item that breaks the engine must not stop the others
            outcome = Broken(error)
        self._end(Finished(item, outcome))

    def _end(self, finished: Finished[T, R]) -> None:
        self._ended.append(finished)
        del self._open[finished.item]
        if not self._open:
            self._hand_over()
        elif not self._is_collecting:
            self._is_collecting = True
            asyncio.get_running_loop().call_later(COLLECT_S, self._hand_over)

    def _hand_over(self) -> None:
        self._is_collecting = False
        if self._ended:
            self._out.put(self._ended)
            self._ended = []

    def _stop(self, is_forced: bool) -> None:  # noqa: FBT001 - called through the loop, which takes positions
        self._is_stopping = True
        for item in self._open:
            if item.task is not None and (is_forced or not item.is_working):
                item.task.cancel()


class Claimed(Protocol[T, R]):
    """The items of one claim of a chunk, and how their kind processes them."""

    def due(self) -> Sequence[T]:
        """Returns the items to begin with now; called again whenever some have ended or time has passed."""

    async def work(self, item: T, /) -> R:
        """Works on one item, on the loop."""

    def take(self, ended: Sequence[Finished[T, R]], /) -> None:
        """Commits the items that have ended, in the order in which they ended."""


class ClaimLoop:
    """The loop of one claim, in the chunk's thread.

    Args:
        process: the process whose event loop and in-flight limit are used.
        lease: lease of the chunk.
    """

    def __init__(self, process: WorkerProcess, lease: Lease) -> None:
        self.process, self.lease = process, lease
        self._stopped: bool | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether the run or the process stops, so that nothing new may begin."""
        return self._stopped is not None

    def run(self, claimed: Claimed[T, R], slots: Semaphore) -> None:
        """Works on all items, until they have ended or the lease is lost.

        Args:
            claimed: the items.
            slots: limits how many items are in flight at a time.

        Raises:
            RedisUnreachableError: Redis was unavailable for longer than the ledger's patience.
        """
        pool = ItemPool(self.process.loop, self.process.in_flight, claimed.work, slots=slots)
        try:
            while not self.lease.is_lost:
                pool.begin(claimed.due())
                if not pool.left:
                    return
                if ended := pool.collect(POLL_S):
                    _raise_outage(ended)
                    claimed.take(ended)
                self._stop_if_requested(pool)
        finally:
            if pool.left:
                pool.stop(is_forced=True)

    def end_run(self, run: str, end: RunState) -> None:
        """Ends a run before all its items have results."""
        state, wakes = self.process.ledger.control(run, end)
        log_end(run, end)
        if run == self.lease.run and not self.lease.is_lost:
            self.lease.state = state
        self.process.publish(wakes)

    def _stop_if_requested(self, pool: ItemPool[T, R]) -> None:
        """Stops the items if the run or the process stops: at most once gracefully and once by force."""
        if not self.process.leases.should_stop(self.lease):
            return
        is_forced = self.lease.state not in GRACEFUL_STATES
        if self._stopped is None or is_forced > self._stopped:
            self._stopped = is_forced
            pool.stop(is_forced=is_forced)


def _raise_outage(ended: Sequence[Finished[T, R]]) -> None:
    """Raises the error of an unavailable Redis, which is not a failure of an item."""
    for _, outcome in ended:
        if isinstance(outcome, Broken) and isinstance(outcome.error, RedisUnreachableError):
            raise outcome.error
