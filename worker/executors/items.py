"""Work on chunks of cases or queries: claims items, evaluates them concurrently, commits each once.

Each kind supplies an **engine**: how an item is processed (on the loop), which result follows from that (in
the chunk's thread), and what a result without an answer looks like. Everything else is implemented here and
in `worker.executors.claim_loop`, once:

    parked          stored with its attempts, its due time and why it waits, so that no crash loses them; the
                    chunk is given back until the earliest is due
    ends the run    an item may end its run (`aborted`, `incomplete`) after its own result is committed
"""

import logging
from asyncio import Semaphore
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from shared.clock import now_ms
from shared.codecs.item_rows import CODE_OF_OUTCOME, ItemRow, pack_item
from shared.codecs.packing import Packing
from shared.codecs.parked_items import NEVER_PARKED, decode_parked
from shared.ledger import ClaimedItem, Row, Try
from shared.names import Outcome, RunState
from shared.observability import tracing
from shared.upstream.costs import MOST_USD
from worker.executors.chunk import PREFIX, RUNS, ChunkSummary, claim_chunk, count_outcomes
from worker.executors.claim_loop import ClaimLoop, Finished, PoolItem
from worker.in_flight_limit import Admission
from worker.lease_table import LOST, Lease
from worker.logs import structlog
from worker.outcomes import Broken, Deferred, Done, EndRun, Released
from worker.process import WorkerProcess
from worker.upstream.attempts import CallsMade

INTERNAL: Final = "internal"
"""Error code of an item on which the engine failed."""
TALLY: Final = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.ERROR: "error"}

R = TypeVar("R")

logger = logging.getLogger(__name__)


class Item(PoolItem):
    """One claimed case or query.

    Args:
        lease: of its chunk.
        claimed: as the ledger handed it out.
        is_anew: whether models are asked again, whatever answers are stored.
    """

    __slots__ = ("claimed", "is_anew", "lease", "paid_usd", "parked", "payload", "span")

    def __init__(self, lease: Lease, claimed: ClaimedItem, *, is_anew: bool = False) -> None:
        self.parked = decode_parked(claimed.parked_state) if claimed.parked_state else NEVER_PARKED
        """Why it waited before."""
        super().__init__(CallsMade(self.parked.history._replace(attempts=claimed.attempts)))
        self.lease = lease
        self.claimed = claimed
        self.is_anew = is_anew
        self.payload = claimed.payload
        self.paid_usd = 0.0
        """Cost of the calls made for it under this claim, whatever becomes of it."""
        self.span = tracing.OFF
        """Its span, until it is evaluated."""

    @property
    def attempts(self) -> int:
        """Attempts made so far; an engine that makes one without `calls` adds it here."""
        return self.calls.history.attempts

    @attempts.setter
    def attempts(self, attempts: int) -> None:
        self.calls.history = self.calls.history._replace(attempts=attempts)


class ItemResult(NamedTuple):
    """The result of an item."""

    outcome: Outcome
    """`passed`, `failed` or `error`; `skipped` of an item that was not needed."""
    line: bytes
    """Its JSON, see `shared.codecs.item_rows`."""
    latency_ms: int | None = None
    """How long the answer took."""
    cost_usd: float | None = None
    """Cost of the result, as far as known."""
    flags: str = ""
    """Flags of the result's code, see `shared.codecs.item_rows`."""
    ends_run: RunState | None = None
    """How the run is to end after this result: `aborted` or `incomplete`; None when it goes on."""
    code: str = ""
    """Error code, of a result without an answer."""


class Agenda(Protocol):
    """Which items of a claim are worked on, and when; in the chunk's thread."""

    def due(self) -> Sequence[Item]:
        """Returns the items to begin with now."""

    def ended(self, item: Item, outcome: Outcome | None, /) -> RunState | None:
        """Takes how the work on an item ended, None: without a result; returns how its run is to end."""

    def settled(self) -> Sequence[tuple[Item, ItemResult]]:
        """Returns the items that need not be worked on any more, once, with their results."""


class AllAtOnce:
    """Begins with all items of a claim at once.

    Args:
        items: of the claim.
    """

    def __init__(self, _engine: object, items: Sequence[Item]) -> None:
        self._items = items

    def due(self) -> Sequence[Item]:
        """Returns all of them, once."""
        items, self._items = self._items, ()
        return items

    def ended(self, _item: Item, _outcome: Outcome | None, /) -> RunState | None:
        """Nothing follows from an item for its run."""

    def settled(self) -> Sequence[tuple[Item, ItemResult]]:
        """Every item is worked on."""
        return ()


class Engine(Protocol[R]):
    """Evaluates the items of one run."""

    together: int
    """Items of the run that this process may have in flight at a time."""
    packing: Packing
    """How the texts of the run are stored."""

    async def process(self, item: Item, /) -> R:
        """Works on an item, on the loop, and counts its attempts.

        Raises:
            Deferred: the item is to be tried later.
            EndRun: its run is to end without a result of it.
        """

    def result_of(self, item: Item, processed: R, /) -> ItemResult:
        """Makes the result of an item of what `process` returned; in the chunk's thread."""

    def error_result(self, item: Item, code: str, message: str, /) -> ItemResult:
        """Makes the result of an item that has no answer for a reason of our own."""


@dataclass(slots=True)
class _CommitBatch:
    """The rows, tries and counters of one commit."""

    rows: list[Row] = field(default_factory=list)
    tries: list[Try] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    outcomes: list[Outcome] = field(default_factory=list)
    ends_run: RunState | None = None


class ItemsExecutor(Generic[R]):
    """Executes chunks of one kind.

    Args:
        process: has the ledger, leases, loop and in-flight limit that are used.
        open_engine: makes the engine of a run, by its id.
        agenda: makes the agenda of a claim from the engine and its items.
    """

    def __init__(
        self,
        process: WorkerProcess,
        open_engine: Callable[[str], Engine[R]],
        agenda: Callable[[Any, Sequence[Item]], Agenda] = AllAtOnce,
    ) -> None:
        self._process, self._agenda = process, agenda

        @lru_cache(RUNS)
        def open_run(run: str) -> tuple[Engine[R], Semaphore]:
            engine = open_engine(run)
            return engine, Semaphore(engine.together)

        self._open_run = open_run

    def execute(self, lease: Lease) -> ChunkSummary:
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

    def _claim(self, lease: Lease, admission: Admission) -> ChunkSummary:
        summary = ChunkSummary(passed=0, failed=0, errors=0, decided=0, retried=0, chunk=lease.chunk)
        claim = claim_chunk(self._process, lease)
        if claim.status != "ok":
            summary["status"] = claim.status
            return summary
        admission.release(lease.items - len(claim.items))  # a chunk that comes back has few items left
        engine, slots = self._open_run(lease.run)
        found = [each._replace(payload=engine.packing.unpack(each.payload)) for each in claim.items]
        items = [Item(lease, claimed, is_anew=claim.is_anew) for claimed in found]
        loop = ClaimLoop(self._process, lease)
        agenda = self._agenda(engine, items)
        loop.run(_ClaimedItems(loop, engine, agenda, len(items), admission, summary), slots)
        return summary


class _ClaimedItems(Generic[R]):
    """The items of one claim, in the chunk's thread."""

    def __init__(  # noqa: PLR0917 - one call, above
        self,
        loop: ClaimLoop,
        engine: Engine[R],
        agenda: Agenda,
        items: int,
        admission: Admission,
        summary: ChunkSummary,
    ) -> None:
        self._loop, self._engine, self._agenda, self._summary = loop, engine, agenda, summary
        self._process, self._lease = loop.process, loop.lease
        self._admission, self._left, self._under_way = admission, items, 0
        self._due_ms = 0

    def due(self) -> Sequence[Item]:
        """Returns the items that the agenda has begun with now; commits those that are not needed."""
        if settled := self._agenda.settled():
            batch = _CommitBatch()
            for item, result in settled:
                self._add_result(batch, item, result)
            self._commit(batch, len(settled))
        items = self._agenda.due()
        self._under_way += len(items)
        self._admission.keep(self._under_way)
        return items

    async def work(self, item: Item) -> R:
        """Has the engine process an item; logs and spans of whatever it calls carry the item's index."""
        # Bound in the context of the item's own task.
        structlog.contextvars.bind_contextvars(item=item.claimed.index)
        item.span = tracing.span("item", {f"{PREFIX}item": item.claimed.index})
        with item.span.current():
            return await self._engine.process(item)

    def take(self, ended: Sequence[Finished[Item, R]]) -> None:
        """Commits what has ended."""
        self._under_way -= len(ended)
        self._commit(self._batch_of(ended), len(ended))

    def _commit(self, batch: _CommitBatch, ended: int) -> None:
        """Commits a batch; the last one gives the chunk back, unless the run is to end first."""
        lease = self._lease
        self._left -= ended
        is_last = not self._left
        if batch.rows or batch.tries or batch.tally or batch.ends_run or is_last:
            # A run that is to end drops what is given back, and keeps what is committed before.
            is_back = is_last and not batch.ends_run
            self._write(batch, is_back=is_back)
            if batch.ends_run and not lease.is_lost:
                self._loop.end_run(lease.run, batch.ends_run)
                if is_last:
                    self._write(_CommitBatch(), is_back=True)

    def _batch_of(self, ended: Sequence[Finished[Item, R]]) -> _CommitBatch:
        """Makes results of what has ended."""
        batch = _CommitBatch()
        for item, outcome in ended:
            if item.paid_usd:
                batch.tally["cost_micro_usd"] += _micros(item.paid_usd)
            match outcome:
                case Done(processed):
                    self._add_ended(batch, item, self._result(item, processed))
                case Broken(error):
                    self._add_ended(batch, item, self._failed(item, error))
                case Deferred():
                    attempt = item.parked_as(item.claimed.index, outcome)
                    postponed_s = max(0.0, (outcome.due_ms - now_ms()) / 1000)
                    item.span.set({f"{PREFIX}attempts": item.attempts, f"{PREFIX}postponed_s": postponed_s})
                    self._due_ms = min(self._due_ms or outcome.due_ms, outcome.due_ms)
                    batch.tries.append(attempt)
                    self._agenda.ended(item, None)
                case EndRun():
                    batch.ends_run = batch.ends_run or outcome.state
                    self._agenda.ended(item, None)
                case Released():
                    self._agenda.ended(item, None)
            item.span.end()
        return batch

    def _result(self, item: Item, processed: R) -> ItemResult:
        """Makes one result; where the engine raises, the item becomes an error and the others go on."""
        try:
            return self._engine.result_of(item, processed)
        except MemoryError:
            raise  # not this item's fault: another time, or another process
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the other items
            return self._failed(item, error)

    def _failed(self, item: Item, error: Exception) -> ItemResult:
        """Makes the result of an item that the engine failed on."""
        logger.error("engine failed", extra={"item": item.claimed.index}, exc_info=error)
        return self._engine.error_result(item, INTERNAL, f"the engine failed: {type(error).__name__}")

    def _add_ended(self, batch: _CommitBatch, item: Item, result: ItemResult) -> None:
        """Adds the result of an item that was worked on, and what follows from it."""
        self._add_result(batch, item, result)
        after = self._agenda.ended(item, result.outcome)
        batch.ends_run = batch.ends_run or result.ends_run or after

    def _add_result(self, batch: _CommitBatch, item: Item, result: ItemResult) -> None:
        """Adds a result to a batch; an item that was not needed is in no tally."""
        item.span.set({f"{PREFIX}outcome": str(result.outcome), f"{PREFIX}attempts": item.attempts})
        if result.outcome is Outcome.ERROR:
            item.span.fail(result.code or "error")
        batch.rows.append(_row(item, result, self._engine.packing))
        if result.outcome in TALLY:
            batch.tally[TALLY[result.outcome]] += 1
        batch.outcomes.append(result.outcome)
        if item.attempts > 1 or item.claimed.generation:
            batch.tally["retried"] += 1

    def _write(self, batch: _CommitBatch, *, is_back: bool) -> None:
        lease, summary, rows = self._lease, self._summary, batch.rows
        with tracing.span("commit", {f"{PREFIX}items": len(rows)}) as span:
            committed = self._process.ledger.commit(
                lease.run,
                lease.chunk,
                lease.token,
                rows,
                back=is_back,
                due_ms=self._due_ms if is_back and not self._loop.is_stopped else 0,
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
