"""Work on chunks of cases or queries: claims items, evaluates them concurrently, commits each once.

    the chunk's thread          the loop
    claim                  ──►  one task an item: work, wait, work
    make results, commit   ◄──  what ended within a few milliseconds, together

Each kind supplies an **engine**: how an item is processed (on the loop), which result follows from that (in
the chunk's thread), and what a result without an answer looks like. Everything else is implemented here,
once:

    pause, drain    nothing new begins, calls in flight end and are committed, the rest is given back
    cancel, lost    everything is released at once
    parked          stored with its attempts, its due time and why it waits, so that no crash loses them; the
                    chunk is given back until the earliest is due
    ends the run    an item may end its run (`aborted`, `incomplete`) after its own result is committed
"""

import asyncio
import logging
from asyncio import Semaphore
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from shared.clock import now_ms
from shared.codecs.item_rows import CODE_OF_OUTCOME, ItemRow, pack_item
from shared.codecs.packing import Packing
from shared.codecs.parked_items import ParkedState, encode_parked
from shared.ledger import ClaimedItem, Row, Try
from shared.names import Outcome, RunState
from shared.observability import tracing
from shared.upstream.costs import MOST_USD
from worker.executors.chunk import PREFIX, Summary, claim_chunk, count_outcomes, log_end
from worker.in_flight_limit import Admission, InFlightLimit
from worker.lease_table import LOST, Lease
from worker.logs import structlog
from worker.loop import Loop
from worker.process import WorkerProcess

COLLECT_S: Final = 0.004
"""Items that end within this time of each other are committed together."""
POLL_S: Final = 0.25
"""How often a chunk's thread checks whether the chunk is to stop."""
GRACEFUL_STATES: Final = frozenset({RunState.RUNNING, RunState.PAUSED})
"""States of a run in which what is under way may end; in all others it is left at once."""
INTERNAL: Final = "internal"
"""Error code of an item on which the engine failed."""
TALLY: Final = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.ERROR: "error"}

logger = logging.getLogger(__name__)


class ParkedItem(NamedTuple):
    """An item is to be tried again later, because its wait is too long to hold a slot."""

    attempts: int
    """Attempts made so far."""
    wait_s: float
    """Seconds to wait, from now."""
    state: ParkedState
    """Why it waits."""


class EngineFailure(NamedTuple):
    """The engine raised while it worked on an item."""

    error: Exception
    """The exception that the engine raised."""


class Released:
    """The item goes back without a result: its chunk stops, or it had not begun."""


class PoolItem:
    """One task of a pool on the loop."""

    __slots__ = ("_steps", "started_ms", "task")

    def __init__(self) -> None:
        self.started_ms = 0
        """Time when its task began, epoch milliseconds."""
        self._steps = 0
        self.task: asyncio.Task[None] | None = None

    @property
    def is_working(self) -> bool:
        """Whether a call or the verdict on its answer is under way, which a pause lets end."""
        return self._steps > 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Marks a call, or the verdict on its answer; a graceful stop waits until all have ended."""
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1


class Item(PoolItem):
    """One claimed case or query.

    Args:
        lease: of its chunk.
        claimed: as the ledger handed it out.
        is_anew: whether models are asked again, whatever answers are stored.
    """

    __slots__ = ("attempts", "claimed", "is_anew", "lease", "paid_usd", "payload", "span")

    def __init__(self, lease: Lease, claimed: ClaimedItem, *, is_anew: bool = False) -> None:
        super().__init__()
        self.lease = lease
        self.claimed = claimed
        self.is_anew = is_anew
        self.payload = claimed.payload
        self.attempts = claimed.attempts  # whoever makes one counts it here
        self.paid_usd = 0.0
        """Cost of the calls made for it under this claim, whatever becomes of it."""
        self.span = tracing.OFF
        """Its span, until it is evaluated."""


T = TypeVar("T", bound=PoolItem)
T_contra = TypeVar("T_contra", bound=PoolItem, contravariant=True)


class Finished(NamedTuple, Generic[T]):
    """An item whose task on the loop has ended."""

    item: T
    """Which one."""
    processed: Any
    """What its engine made of it, or one of `ParkedItem`, `EndRun`, `EngineFailure`, `Released`."""


class FinishedItems(NamedTuple, Generic[T]):
    """Items that ended together."""

    items: list[Finished[T]]
    """In the order in which they ended."""
    is_last: bool
    """Whether nothing of the chunk is on the loop any more."""


class WorkOn(Protocol[T_contra]):
    """Gets the answer of an item, on the loop."""

    def __call__(self, item: T_contra, /) -> Awaitable[Any]:
        """Returns an answer, or `ParkedItem`."""


class ItemPool(Generic[T]):
    """Runs the items of one claim concurrently, on the process's event loop.

    Args:
        loop: the process's.
        in_flight: limits the items in flight in the process.
        items: what to run, in order; `add` brings more.
        work: gets the answer of one item, on the loop.
        slots: bounds how many of them, and of whatever else shares it, may be in flight at a time.
    """

    def __init__(
        self, loop: Loop, in_flight: InFlightLimit, items: Sequence[T], work: WorkOn[T], *, slots: Semaphore
    ) -> None:
        self._loop = loop
        self._in_flight = in_flight
        self._items = dict.fromkeys(items)
        self._work = work
        self._slots = slots
        self._open = len(items)
        self._ended = list[Finished[T]]()
        self._is_collecting = False
        self._is_stopping = False
        self._out: SimpleQueue[FinishedItems[T]] = SimpleQueue()

    def start(self) -> None:
        """Begins, in order; returns at once."""
        self._loop.call(self._begin)

    def add(self, item: T) -> None:
        """Begins with one more item, or again with one that has ended."""
        self._loop.call(self._add, item)

    def collect(self, within_s: float) -> FinishedItems[T] | None:
        """Returns items that have ended; None when none has within this time."""
        try:
            return self._out.get(timeout=within_s)
        except Empty:
            return None

    def stop(self, *, is_forced: bool) -> None:
        """Releases what has not begun and what waits; with `is_forced` also what has calls in flight."""
        self._loop.call(self._stop, is_forced)

    def _begin(self) -> None:
        for item in self._items:
            item.task = asyncio.get_running_loop().create_task(self._run(item))

    def _add(self, item: T) -> None:
        self._items[item] = None
        self._open += 1
        item.task = asyncio.get_running_loop().create_task(self._run(item))

    async def _run(self, item: T) -> None:
        processed: Any = Released()
        try:
            async with self._slots, self._in_flight.semaphore:
                if not self._is_stopping:
                    item.started_ms = now_ms()
                    processed = await self._work(item)
        except asyncio.CancelledError:
            processed = Released()
        except Exception as error:  # noqa: BLE001 - an item that breaks the engine must not stop the others
            processed = EngineFailure(error)
        self._end(Finished(item, processed))

    def _end(self, finished: Finished[T]) -> None:
        self._ended.append(finished)
        self._open -= 1
        if not self._open:
            self._hand_over()
        elif not self._is_collecting:
            self._is_collecting = True
            asyncio.get_running_loop().call_later(COLLECT_S, self._hand_over)

    def _hand_over(self) -> None:
        self._is_collecting = False
        if self._ended:
            self._out.put(FinishedItems(self._ended, is_last=not self._open))
            self._ended = []

    def _stop(self, is_forced: bool) -> None:  # noqa: FBT001 - called through the loop, which takes positions
        self._is_stopping = True
        for item in self._items:
            if item.task is not None and (is_forced or not item.is_working):
                item.task.cancel()


class ItemResult(NamedTuple):
    """The result of an item."""

    outcome: Outcome
    """`passed`, `failed` or `error`."""
    line: bytes
    """Its JSON, see `shared.codecs.item_rows`."""
    latency_ms: int | None = None
    """How long the answer took."""
    cost_usd: float | None = None
    """Cost of the result, as far as known."""
    flags: str = ""
    """Flags of the result's code, see `shared.codecs.item_rows`."""
    ends_run: str = ""
    """How the run is to end after this result: `aborted` or `incomplete`; empty when it goes on."""
    code: str = ""
    """Error code, of a result without an answer."""


class EndRun(NamedTuple):
    """An item has no result, and its run is to end without it; a resumed run evaluates it again."""

    ends_run: str
    """How: `aborted` or `incomplete`."""


class Engine(Protocol):
    """Evaluates the items of one run."""

    slots: Semaphore
    """Bounds the items of the run that this process has in flight at a time."""
    packing: Packing
    """How the texts of the run are stored."""

    async def process(self, item: Item) -> Any:
        """Works on an item, on the loop: what `result_of` takes, `ParkedItem`, `EndRun`. Counts attempts."""

    def result_of(self, item: Item, processed: Any) -> ItemResult:
        """Makes the result of an item of what `process` returned; in the chunk's thread."""

    def error_result(self, item: Item, code: str, message: str) -> ItemResult:
        """Makes the result of an item that has no answer for a reason of our own."""


@dataclass(slots=True)
class _CommitBatch:
    """The rows, tries and counters of one commit."""

    rows: list[Row] = field(default_factory=list)
    tries: list[Try] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    outcomes: list[Outcome] = field(default_factory=list)
    ends_run: str = ""


class ItemsExecutor:
    """Executes chunks of one kind.

    Args:
        process: has the ledger, leases, loop and in-flight limit that are used.
        engine_of: finds the engine of a run.
    """

    def __init__(self, process: WorkerProcess, engine_of: Callable[[str], Engine]) -> None:
        self._process = process
        self._engine_of = engine_of

    def execute(self, lease: Lease) -> Summary:
        """Executes what is due of the chunk; the last commit gives the chunk back."""
        process = self._process
        if (admission := process.in_flight.admit(lease.items, lambda: process.leases.is_draining)) is None:
            # The process ends: the wake-up is returned at once, rather than republished when it is overdue.
            process.publish([lease.wake] if lease.wake else [])
            return {"chunk": lease.chunk, "decided": 0, "status": "left to another worker"}
        try:
            return self._claim(lease, admission)
        finally:
            admission.close()

    def _claim(self, lease: Lease, admission: Admission) -> Summary:
        summary = Summary(passed=0, failed=0, errors=0, decided=0, retried=0, chunk=lease.chunk)
        claim = claim_chunk(self._process, lease)
        if claim.status != "ok":
            summary["status"] = claim.status
            return summary
        admission.release(lease.items - len(claim.items))  # a chunk that comes back has few items left
        engine = self._engine_of(lease.run)
        found = [each._replace(payload=engine.packing.unpack(each.payload)) for each in claim.items]
        items = [Item(lease, claimed, is_anew=claim.is_anew) for claimed in found]
        _ClaimedChunk(self._process, engine, lease, admission, summary).work(items)
        return summary


class _ClaimedChunk:
    """One claim of one chunk, in its thread."""

    def __init__(
        self, process: WorkerProcess, engine: Engine, lease: Lease, admission: Admission, summary: Summary
    ) -> None:
        self._process, self._engine, self._lease, self._summary = process, engine, lease, summary
        self._admission = admission
        self._due_ms = 0
        self._stopped: bool | None = None

    def work(self, items: Sequence[Item]) -> None:
        """Runs the items and commits them as they end."""
        process = self._process
        pool = ItemPool(process.loop, process.in_flight, items, self._process_item, slots=self._engine.slots)
        pool.start()
        is_over = False
        try:
            while not is_over and not self._lease.is_lost:
                ended = pool.collect(POLL_S)
                if ended is not None:
                    self._commit(self._batch_of(ended), is_last=ended.is_last)
                    self._admission.release(len(ended.items))
                    is_over = ended.is_last
                if not is_over:
                    self._stop_if_requested(pool)
        finally:
            if not is_over:
                pool.stop(is_forced=True)

    async def _process_item(self, item: Item) -> Any:
        """Has the engine process an item; logs and spans of whatever it calls carry the item's index."""
        # Bound in the context of the item's own task.
        structlog.contextvars.bind_contextvars(item=item.claimed.index)
        item.span = tracing.span("item", {f"{PREFIX}item": item.claimed.index})
        with item.span.current():
            return await self._engine.process(item)

    def _stop_if_requested(self, pool: ItemPool[Item]) -> None:
        """Stops the items when the run or the process stops: once gracefully and once forced at most."""
        if not self._process.leases.should_stop(self._lease):
            return
        is_forced = self._lease.state not in GRACEFUL_STATES
        if self._stopped is None or is_forced > self._stopped:
            self._stopped = is_forced
            pool.stop(is_forced=is_forced)

    def _batch_of(self, ended: FinishedItems[Item]) -> _CommitBatch:
        """Makes results of what has ended."""
        batch = _CommitBatch()
        for item, processed in ended.items:
            if item.paid_usd:
                batch.tally["cost_micro_usd"] += _micros(item.paid_usd)
            if isinstance(processed, Released):
                item.span.end()
                continue
            if isinstance(processed, EndRun):
                item.span.end()
                batch.ends_run = batch.ends_run or processed.ends_run
                continue
            if isinstance(processed, ParkedItem):
                attempts, wait_s, state = processed
                item.span.set({f"{PREFIX}attempts": attempts, f"{PREFIX}postponed_s": wait_s})
                item.span.end()
                due_ms = now_ms() + round(1000 * wait_s)
                self._due_ms = min(self._due_ms or due_ms, due_ms)
                batch.tries.append(Try(item.claimed.index, attempts, due_ms, encode_parked(state)))
                continue
            result = self._result(item, processed)
            _end_span(item, result)
            batch.rows.append(_row(item, result, self._engine.packing))
            batch.tally[TALLY[result.outcome]] += 1
            batch.outcomes.append(result.outcome)
            if item.attempts > 1 or item.claimed.generation:
                batch.tally["retried"] += 1
            batch.ends_run = batch.ends_run or result.ends_run
        return batch

    def _result(self, item: Item, processed: Any) -> ItemResult:
        """Makes one result; where the engine raises, the item becomes an error and the others go on."""
        error = processed.error if isinstance(processed, EngineFailure) else None
        if error is None:
            try:
                return self._engine.result_of(item, processed)
            except MemoryError:
                raise  # not this item's fault: another time, or another process
            except Exception as failure:  # noqa: BLE001 - whatever it is, it must not stop the other items
                error = failure
        logger.error("engine failed", extra={"item": item.claimed.index}, exc_info=error)
        return self._engine.error_result(item, INTERNAL, f"the engine failed: {type(error).__name__}")

    def _commit(self, batch: _CommitBatch, *, is_last: bool) -> None:
        """Commits what has ended; the last call gives the chunk back, unless the run is to end first."""
        lease = self._lease
        if not (batch.rows or batch.tries or batch.tally or batch.ends_run or is_last):
            return
        # A run that is to end drops what is given back, and keeps what is committed before.
        is_back = is_last and not batch.ends_run
        self._write(batch, is_back=is_back)
        if batch.ends_run and not lease.is_lost:
            state, wakes = self._process.ledger.control(lease.run, batch.ends_run)
            log_end(lease.run, batch.ends_run)
            lease.state = state
            self._process.publish(wakes)
            if is_last:
                self._write(_CommitBatch(), is_back=True)

    def _write(self, batch: _CommitBatch, *, is_back: bool) -> None:
        lease, summary, rows = self._lease, self._summary, batch.rows
        with tracing.span("commit", {f"{PREFIX}items": len(rows)}) as span:
            committed = self._process.ledger.commit(
                lease.run,
                lease.chunk,
                lease.token,
                rows,
                back=is_back,
                due_ms=self._due_ms if is_back and self._stopped is None else 0,
                tries=batch.tries,
                tally=batch.tally,
            )
            span.set({f"{PREFIX}status": committed.status})
        self._process.publish(committed.wakes)
        if committed.status == LOST:
            lease.state = summary["status"] = LOST
            return
        lease.state = committed.state
        lease.is_held = not is_back
        summary["decided"] += sum(committed.accepted)
        summary["retried"] += batch.tally.get("retried", 0) + len(batch.tries)
        count_outcomes(summary, compress(batch.outcomes, committed.accepted))


def _end_span(item: Item, result: ItemResult) -> None:
    item.span.set({f"{PREFIX}outcome": str(result.outcome), f"{PREFIX}attempts": item.attempts})
    if result.outcome is Outcome.ERROR:
        item.span.fail(result.code or "error")
    item.span.end()


def _micros(usd: float) -> int:
    """Converts dollars to the unit of progress counters; an absurd price must not overflow the counter.

    >>> _micros(0.25), _micros(1e305)
    (250000, 1000000000000)
    """
    return round(1e6 * min(usd, MOST_USD))


def _row(item: Item, result: ItemResult, packing: Packing) -> Row:
    """Packs a result for the ledger."""
    claimed, is_error = item.claimed, result.outcome is Outcome.ERROR
    row = ItemRow(
        int(claimed.index),
        CODE_OF_OUTCOME[result.outcome] + result.flags,
        result.line,
        item.started_ms,
        now_ms(),
        item.attempts,
        result.latency_ms,
        result.cost_usd,
    )
    return Row(claimed.index, claimed.generation, pack_item(row, packing), is_error, max(1, item.attempts))
