"""Works on chunks of cases or queries: claims items, has them worked on, commits each once.

What is particular to a kind is its **engine**: how an item is worked on (on the loop), how its answer is
judged (in the chunk's thread), what a result without an answer looks like. Everything else is here, once:

    pause, drain    nothing new begins, what an upstream is at work for ends and is committed, the rest goes
                    back
    cancel, lost    everything is left at once
    postponed       written down with its attempts and its time, so that no crash forgets them; the chunk
                    goes back until the earliest is due
    ends the run    an item may end its run (`aborted`, `incomplete`) after its own result is committed
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from shared.clock import now_ms
from shared.codecs.item_rows import CODE_OF_OUTCOME, ItemRow, pack_item
from shared.ledger import Row, Try
from shared.names import Outcome, RunState
from shared.observability import tracing
from shared.upstream.costs import MOST_USD
from worker.executors.chunk import PREFIX, Summary, claim_chunk
from worker.executors.item_pool import Broken, Ended, InHand, Item, Left, Postponed
from worker.lease_table import LOST, Lease
from worker.process import WorkerProcess
from worker.structured import structlog

LOOK_S: Final = 0.25
"""How often a chunk's thread looks whether the chunk is to stop."""
GENTLE_STATES: Final = frozenset({RunState.RUNNING, RunState.PAUSED})
"""States of a run in which what is under way may end; in all others it is left at once."""
INTERNAL: Final = "internal"
"""Error code of an item on which the engine failed."""
TALLY: Final = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.ERROR: "error"}

logger = logging.getLogger(__name__)


class Judged(NamedTuple):
    """The result of an item."""

    outcome: Outcome
    """`passed`, `failed` or `error`."""
    line: bytes
    """Its JSON, see `shared.codecs.item_rows`."""
    latency_ms: int | None = None
    """How long the answer took."""
    cost_usd: float | None = None
    """What it cost, as far as known."""
    paid_usd: float = 0.0
    """What of that was paid by now, and not for an earlier result; progress counts it."""
    flags: str = ""
    """Of its code."""
    ends_run: str = ""
    """How the run is to end after this result: `aborted` or `incomplete`; empty when it goes on."""
    code: str = ""
    """Error code, of a result without an answer."""


class Stopped(NamedTuple):
    """An item has no result, and its run is to end without it; a resumed run asks for it again."""

    ends_run: str
    """How: `aborted` or `incomplete`."""


class Engine(Protocol):
    """Works on the items of one run."""

    most: int
    """Items of one chunk that may be under way at a time."""

    async def work(self, item: Item) -> Any:
        """Gets an answer, `Postponed` or `Stopped`; on the loop. Counts each attempt in `item.attempts`."""

    def judge(self, item: Item, answer: Any) -> Judged:
        """Judges the answer; in the chunk's thread."""

    def refuse(self, item: Item, code: str, message: str) -> Judged:
        """Makes the result of an item that has no answer for a reason of our own."""


@dataclass(slots=True)
class _Group:
    """What is committed in one call."""

    rows: list[Row] = field(default_factory=list)
    tries: list[Try] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    ends_run: str = ""


class ItemsHandler:
    """Works on chunks of one kind.

    Args:
        process: whose ledger, leases, loop and room are used.
        engine_of: finds the engine of a run.
    """

    def __init__(self, process: WorkerProcess, engine_of: Callable[[str], Engine]) -> None:
        self._process = process
        self._engine_of = engine_of

    def work(self, lease: Lease) -> Summary:
        """Works on what is due of the chunk; the last commit gives the chunk back."""
        process = self._process
        if not process.room.enter(lease.items, lambda: process.chunks.is_draining):
            # The process ends: the wake-up call goes to another at once instead of when it is overdue.
            process.publish([lease.wake] if lease.wake else [])
            return {"chunk": lease.chunk, "decided": 0, "status": "left to another worker"}
        try:
            return self._claim(lease)
        finally:
            process.room.leave(lease.items)

    def _claim(self, lease: Lease) -> Summary:
        process, summary = self._process, Summary(chunk=lease.chunk, decided=0, retried=0)
        claim = claim_chunk(process, lease)
        if claim.status != "ok":
            summary["status"] = claim.status
            return summary
        _Visit(process, self._engine_of(lease.run), lease, summary).work(
            [Item(lease, claimed) for claimed in claim.items]
        )
        return summary


class _Visit:
    """One claim of one chunk, in its thread."""

    def __init__(self, process: WorkerProcess, engine: Engine, lease: Lease, summary: Summary) -> None:
        self._process, self._engine, self._lease, self._summary = process, engine, lease, summary
        self._due_ms = 0
        self._stopped: bool | None = None

    def work(self, items: Sequence[Item]) -> None:
        """Has the items worked on and commits them as they end."""
        in_hand = InHand(self._process.loop, self._process.room, items, self._work_on, most=self._engine.most)
        in_hand.start()
        is_over = False
        try:
            while not is_over and not self._lease.is_lost:
                ended = in_hand.collect(LOOK_S)
                if ended is not None:
                    self._commit(self._judged(ended), is_last=ended.is_last)
                    is_over = ended.is_last
                if not is_over:
                    self._stop_if_asked(in_hand)
        finally:
            if not is_over:
                in_hand.stop(is_hard=True)

    async def _work_on(self, item: Item) -> Any:
        """Has the engine work on an item; logs and spans of whatever it calls carry the item's index."""
        # In the item's own task, with which it goes.
        structlog.contextvars.bind_contextvars(item=item.claimed.index)
        item.span = tracing.span("item", {f"{PREFIX}item": item.claimed.index})
        with item.span.current():
            return await self._engine.work(item)

    def _stop_if_asked(self, in_hand: InHand[Item]) -> None:
        """Stops the items when the run or the process is to stop, once gently and once hard at most."""
        if not self._process.chunks.should_stop(self._lease):
            return
        is_hard = self._lease.state not in GENTLE_STATES
        if self._stopped is None or is_hard > self._stopped:
            self._stopped = is_hard
            in_hand.stop(is_hard=is_hard)

    def _judged(self, ended: Ended[Item]) -> _Group:
        """Judges what has ended."""
        group = _Group()
        for item, end in ended.worked:
            if isinstance(end, Left):
                item.span.end()
                continue
            if isinstance(end, Stopped):
                item.span.end()
                group.ends_run = group.ends_run or end.ends_run
                continue
            if isinstance(end, Postponed):
                item.span.set({f"{PREFIX}attempts": end.attempts, f"{PREFIX}postponed_s": end.wait_s})
                item.span.end()
                due_ms = now_ms() + round(1000 * end.wait_s)
                self._due_ms = min(self._due_ms or due_ms, due_ms)
                group.tries.append(Try(item.claimed.index, end.attempts, due_ms, end.error))
                continue
            judged = self._judge(item, end)
            _end_span(item, judged)
            group.rows.append(_row(item, judged))
            group.tally[TALLY[judged.outcome]] += 1
            if item.attempts > 1 or item.claimed.generation:
                group.tally["retried"] += 1
            if judged.paid_usd:
                group.tally["cost_micro_usd"] += _micros(judged.paid_usd)
            group.ends_run = group.ends_run or judged.ends_run
        return group

    def _judge(self, item: Item, end: Any) -> Judged:
        """Judges one answer; an engine that fails makes its item an error and no more."""
        error = end.error if isinstance(end, Broken) else None
        if error is None:
            try:
                return self._engine.judge(item, end)
            except MemoryError:
                raise  # not this item's fault: another time, or another process
            except Exception as failure:  # noqa: BLE001 - whatever it is, it must not stop the other items
                error = failure
        logger.error("engine failed", extra={"item": item.claimed.index}, exc_info=error)
        return self._engine.refuse(item, INTERNAL, f"the engine failed: {type(error).__name__}")

    def _commit(self, group: _Group, *, is_last: bool) -> None:
        """Writes what has ended; the last call gives the chunk back, unless the run is to end first."""
        lease = self._lease
        if not (group.rows or group.tries or group.ends_run or is_last):
            return
        # A run that is to end drops what is given back, and keeps what is committed before.
        is_back = is_last and not group.ends_run
        self._write(group.rows, group.tries, group.tally, is_back=is_back)
        if group.ends_run and not lease.is_lost:
            state, wakes = self._process.ledger.control(lease.run, group.ends_run)
            log_end(lease.run, group.ends_run)
            lease.state = state
            self._process.publish(wakes)
            if is_last:
                self._write([], [], {}, is_back=True)

    def _write(
        self, rows: Sequence[Row], tries: Sequence[Try], tally: Mapping[str, int], *, is_back: bool
    ) -> None:
        lease, summary = self._lease, self._summary
        with tracing.span("commit", {f"{PREFIX}items": len(rows)}) as span:
            committed = self._process.ledger.commit(
                lease.run,
                lease.chunk,
                lease.token,
                rows,
                back=is_back,
                due_ms=self._due_ms if is_back and self._stopped is None else 0,
                tries=tries,
                tally=tally,
            )
            span.set({f"{PREFIX}status": committed.status})
        self._process.publish(committed.wakes)
        if committed.status == LOST:
            lease.state = summary["status"] = LOST
            return
        lease.state = committed.state
        lease.is_held = not is_back
        summary["decided"] += sum(committed.accepted)
        summary["retried"] += tally.get("retried", 0) + len(tries)


def log_end(run: str, end: str) -> None:
    """Logs that a run ends before all its items have results."""
    level = logging.ERROR if end == RunState.ABORTED else logging.WARNING
    logger.log(level, "run ends early", extra={"run": run, "state": str(end)})


def _end_span(item: Item, judged: Judged) -> None:
    item.span.set({f"{PREFIX}outcome": str(judged.outcome), f"{PREFIX}attempts": item.attempts})
    if judged.outcome is Outcome.ERROR:
        item.span.fail(judged.code or "error")
    item.span.end()


def _micros(usd: float) -> int:
    """Writes dollars as progress counts them; an absurd price must not burst the ledger's counter.

    >>> _micros(0.25), _micros(1e305)
    (250000, 1000000000000)
    """
    return round(1e6 * min(usd, MOST_USD))


def _row(item: Item, judged: Judged) -> Row:
    """Packs a result for the ledger."""
    claimed, is_error = item.claimed, judged.outcome is Outcome.ERROR
    row = ItemRow(
        int(claimed.index),
        CODE_OF_OUTCOME[judged.outcome] + judged.flags,
        judged.line,
        item.started_ms,
        now_ms(),
        item.attempts,
        judged.latency_ms,
        judged.cost_usd,
    )
    return Row(claimed.index, claimed.generation, pack_item(row), is_error, max(1, item.attempts))
