"""Executes chunks of turns: claims their threads, decides each, commits them together, in a few calls.

    claim ──► decide each thread ──► commit many threads in one call ──► return the chunk
                │ the engine raised: one turn at a time (`decide_one_by_one`)
                └ a run with a model: `worker.executors.live`

A worker decides whatever stands in a thread's inbox, also turns that another run of the namespace put there,
each by the settings of its own run. Threads that are held elsewhere postpone the chunk until one of them is
released. A chunk that has cost workers their lives is claimed and committed one turn at a time, so that the
bad one is found.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, compress
from typing import Any, Final

from msgspec.json import Decoder

from shared.clock import now_ms
from shared.codecs.turn_batches import Block, pack_block, unpack_batch
from shared.contracts.live_turns import LiveRun
from shared.contracts.turn_vocabulary import SIGNALS_ONCE
from shared.kinds import TURNS
from shared.ledger import Claim, ClaimedThread, PartCommit, ThreadCommit
from shared.observability import tracing
from shared.runs import RunStore
from worker.breakpoint.live_decisions import INTERNAL
from worker.breakpoint.thread_decider import (
    ERROR_CODE,
    Batch,
    DecidedBlock,
    Refusal,
    RunPolicy,
    ThreadOutcome,
    decide_thread,
    refused_line,
    request_ids,
    tally_of,
)
from worker.breakpoint.turn_wire import decode_turns
from worker.executors.chunk import PREFIX, ChunkSummary, claim_chunk
from worker.executors.live import DecidedThread, LiveClaim, open_live_thread
from worker.in_flight_limit import AnswerSlots
from worker.lease_table import LOST, Lease
from worker.process import WorkerProcess

BUSY_MS: Final = 1_000
"""How long a chunk is postponed at most that found a thread held by another worker: its release wakes it."""
POLICIES: Final = 256
"""Runs whose settings a process keeps."""
BATCH_TURNS: Final = 1_000
"""Turns after which a batch is committed: a usual chunk is one commit, a huge one several."""
BATCH_BYTES: Final = 4_000_000
"""Bytes of results after which a batch is committed, so that no call blocks Redis for long."""
_decode: Final = Decoder(dict[str, Any]).decode

logger = logging.getLogger(__name__)


def policy_of(run: str, snapshot: dict[str, Any]) -> RunPolicy:
    """Reads the settings for deciding turns from a run's snapshot.

    >>> policy_of("r1", {"v": 1, "submitted_ms": 5, "summary_policy": "breakpoints"}).summary_policy
    'breakpoints'
    """
    live = LiveRun.from_snapshot(snapshot)
    return RunPolicy(
        run,
        snapshot["submitted_ms"],
        snapshot["summary_policy"],
        live.live.value if live else "",
        bool(snapshot.get(SIGNALS_ONCE)),
    )


class TurnsExecutor:
    """Executes chunks of turns.

    Args:
        process: whose ledger, leases and publisher are used.
        store: where the settings of runs are read.
    """

    def __init__(self, process: WorkerProcess, store: RunStore) -> None:
        self._process = process
        self._policy = lru_cache(POLICIES)(lambda run: policy_of(run, store.info(run).snapshot))
        self._answers = AnswerSlots(process.slots[TURNS], process.settings.turn_slots)
        self._live_settings = lru_cache(POLICIES)(lambda run: LiveRun.from_snapshot(store.info(run).snapshot))

    def execute(self, lease: Lease) -> ChunkSummary:
        """Decides the chunk's turns; the last commit gives the chunk back, which closes it if all is done."""
        summary = ChunkSummary(
            errors=0, must=0, should=0, skip=0, decided=0, threads=0, retried=0, chunk=lease.chunk
        )
        is_over = False
        while not is_over:
            claim = claim_chunk(self._process, lease)
            if claim.status != "ok":
                if claim.status != "done" or not summary["decided"]:
                    summary["status"] = claim.status
                return summary
            is_over = self._execute_claim(lease, claim, summary)
        return summary

    def _execute_claim(self, lease: Lease, claim: Claim, summary: ChunkSummary) -> bool:
        """Decides and commits what one claim handed out; returns whether the work on the chunk is over."""
        known = self._known_requests(claim)
        own = policy_of(lease.run, _decode(claim.snapshot)) if claim.snapshot else None
        batch, live = CommitBatch(), list[tuple[ClaimedThread, list[Batch]]]()
        for claimed in claim.threads:
            if self._process.leases.should_stop(lease):
                break
            batches = self._batches(claimed, own, is_suspect=claim.suspect)
            if _is_live(batches):
                live.append((claimed, batches))
                continue
            started_ms = now_ms()
            outcome = self._decide(claimed, batches, known)
            batch.add(DecidedThread(claimed.thread, claimed.pos, claimed.batches, outcome, started_ms))
            if batch.is_full:
                commit_batch(self._process, lease, batch, summary)
                batch = CommitBatch()
        has_decided, due_ms = bool(batch.threads), 0
        if live and not self._process.leases.should_stop(lease):
            commit_batch(self._process, lease, batch, summary)
            batch = CommitBatch()
            due_ms, has_committed = self._execute_live(lease, claim, live, known, summary)
            has_decided = has_decided or has_committed
        # A suspect is claimed again for its next turn, under the same lease, until nothing is left of it.
        is_over = not (claim.suspect and has_decided) or self._process.leases.should_stop(lease)
        delays_ms = [BUSY_MS] if claim.busy_threads else []
        if due_ms:
            delays_ms.append(max(1, due_ms - now_ms()))
        awaits = is_over and bool(claim.busy_threads) and not due_ms
        delay_ms = min(delays_ms, default=0)
        commit_batch(self._process, lease, batch, summary, back=is_over, awaits=awaits, delay_ms=delay_ms)
        return is_over or lease.is_lost

    def _execute_live(
        self,
        lease: Lease,
        claim: Claim,
        live: Sequence[tuple[ClaimedThread, list[Batch]]],
        known: Mapping[str, bytes],
        summary: ChunkSummary,
    ) -> tuple[int, bool]:
        """Executes live threads; returns the earliest due time, and whether any turn was committed."""
        write = partial(commit_in_batches, self._process, lease, summary)
        live_claim = LiveClaim(self._process, self._answers, self._live_settings, lease, write)
        threads = [
            open_live_thread(lease, claimed, batches, known, is_suspect=claim.suspect)
            for claimed, batches in live
        ]
        return live_claim.execute(threads), live_claim.has_committed

    def _batches(self, claimed: ClaimedThread, own: RunPolicy | None, *, is_suspect: bool) -> list[Batch]:
        return [
            Batch(
                own if own and own.run == batch.run else self._policy(batch.run),
                claimed.offset if place == 0 else 0,
                batch.payload,
                1 if is_suspect else None,
            )
            for place, batch in enumerate(claimed.batches)
        ]

    def _decide(
        self, claimed: ClaimedThread, batches: Sequence[Batch], known: dict[str, bytes]
    ) -> ThreadOutcome:
        seen = dict(known)
        try:
            outcome = decide_thread(
                thread=claimed.thread, state=claimed.memento, batches=batches, known=known
            )
        except MemoryError:
            raise  # not this turn's fault: another attempt or another process may succeed
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the thread's other turns
            known.clear()
            known.update(seen)
            outcome = decide_one_by_one(claimed, batches, known, error)
        return outcome

    def _known_requests(self, claim: Claim) -> dict[str, bytes]:
        payloads = (batch.payload for claimed in claim.threads for batch in claimed.batches)
        ids = request_ids(payloads)
        return dict(self._process.ledger.requests(claim.namespace, sorted(ids))) if ids else {}


def _is_live(batches: Sequence[Batch]) -> bool:
    """Whether turns of a run with a model are among them."""
    for batch in batches:  # noqa: SIM110 - `any` costs 0.3 µs more, for each thread of runs without a model
        if batch.policy.live:
            return True
    return False


def decide_one_by_one(
    claimed: ClaimedThread, batches: Sequence[Batch], known: MutableMapping[str, bytes], error: Exception
) -> ThreadOutcome:
    """Decides the turns of a thread one at a time, and refuses those on which the engine fails.

    The engine is deterministic and would raise again on the same turn, so another attempt is pointless: the
    turn ends with the error code `internal` and enters the dead set, from which `retry` takes it after the
    bug is fixed. It leaves the thread's state unchanged, like every turn that ended in an error.

    Args:
        claimed: the thread.
        batches: what to decide, as it was given to `decide_thread`, which raised.
        known: requests answered before.
        error: what it raised, for the log.
    """
    logger.error("thread decided one by one", extra={"thread_id": claimed.thread}, exc_info=error)
    state, blocks, requests = claimed.memento, [], []
    for batch in batches:
        count = len(unpack_batch(batch.payload)[0])
        end = count if batch.limit is None else min(count, batch.offset + batch.limit)
        turns = []
        for offset in range(batch.offset, end):
            outcome = _decide_one(claimed.thread, state, Batch(batch.policy, offset, batch.payload, 1), known)
            state = outcome.state
            requests += outcome.requests
            turns += outcome.blocks
        blocks.append(_joined(batch.offset, turns))
    return ThreadOutcome(state, blocks, requests)


def _decide_one(thread: str, state: bytes, batch: Batch, known: MutableMapping[str, bytes]) -> ThreadOutcome:
    try:
        return decide_thread(thread=thread, state=state, batches=[batch], known=known)
    except MemoryError:
        raise  # not the turn's fault
    except Exception as error:
        indexes, body = unpack_batch(batch.payload)
        index = indexes[batch.offset]
        logger.exception("engine failed", extra={"run": batch.policy.run, "item": index})
        [turn] = decode_turns(body.split(b"\n")[batch.offset])
        message_id = (turn.message_id if turn else None) or f"{thread}#{index}"
        refusal = Refusal(INTERNAL, f"the engine failed: {type(error).__name__}")
        line = refused_line(thread, message_id, refusal, state=state, now_ms=batch.policy.submitted_ms)
        block = DecidedBlock(batch.offset, [index], [ERROR_CODE], [line], [batch.offset])
        return ThreadOutcome(state, [block], [])


def _joined(offset: int, turns: Sequence[DecidedBlock]) -> DecidedBlock:
    """Makes one block of single turns that follow each other."""
    return DecidedBlock(
        offset,
        [index for turn in turns for index in turn.indexes],
        [code for turn in turns for code in turn.codes],
        [line for turn in turns for line in turn.lines],
        [position for turn in turns for position in turn.dead],
    )


@dataclass(slots=True)
class CommitBatch:
    """Decided threads that are committed in one call, each as a whole."""

    threads: list[ThreadCommit] = field(default_factory=list)
    codes: list[list[str]] = field(default_factory=list)
    """Codes of each thread."""
    codes_of_runs: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    figures: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Of each run what its codes do not show."""
    turns: int = 0
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return self.turns >= BATCH_TURNS or self.size_bytes >= BATCH_BYTES

    @property
    def tally(self) -> dict[str, dict[str, int]]:
        """Counters of each run."""
        return {run: tally_of(codes) | self.figures[run] for run, codes in self.codes_of_runs.items()}

    def add(self, decided: DecidedThread) -> None:
        """Adds one thread."""
        thread, pos, batches, outcome, started_ms = decided
        parts = [_part(block, started_ms) for block in outcome.blocks]
        self.threads.append(ThreadCommit(thread, pos, outcome.state, parts, outcome.requests))
        self.turns += sum(part.count for part in parts)
        self.size_bytes += sum(len(part.value) for part in parts)
        self.codes.append([code for block in outcome.blocks for code in block.codes])
        for batch, block in zip(batches, outcome.blocks, strict=False):
            self.codes_of_runs[batch.run] += block.codes
            if block.figures:
                self.figures[batch.run].update(block.figures)


def commit_batch(
    process: WorkerProcess,
    lease: Lease,
    batch: CommitBatch,
    summary: ChunkSummary,
    *,
    back: bool = False,
    hold: bool = False,
    awaits: bool = False,
    delay_ms: int = 0,
) -> Sequence[bool]:
    """Commits a batch.

    Args:
        process: whose ledger and publisher are used.
        lease: of the chunk; its state is updated.
        batch: what was decided.
        summary: is added to.
        back: return the chunk.
        hold: keep the threads locked, see `shared.ledger`.
        awaits: with `delay_ms`, earlier if a thread of the chunk is released, see `shared.ledger`.
        delay_ms: with `back`, not before so long from now.

    Returns:
        For each thread whether it was written; nothing when the chunk is lost.
    """
    if lease.is_lost:
        return ()
    with tracing.span("commit") as span:
        committed = process.ledger.commit_threads(
            lease.run,
            lease.chunk,
            lease.token,
            batch.threads,
            back=back,
            hold=hold,
            awaits=awaits,
            due_ms=now_ms() + delay_ms if delay_ms else 0,
            tally=batch.tally,
        )
        span.set({f"{PREFIX}threads": len(batch.threads), f"{PREFIX}status": committed.status})
    process.publish(committed.wakes)
    if committed.status == LOST:
        lease.state = LOST
        summary["status"] = LOST
        return ()
    lease.state = committed.state
    if back:
        lease.is_held = False
    _count(summary, lease, batch, committed.accepted)
    if hold:  # a thread is counted when it is let go
        summary["threads"] -= sum(committed.accepted)
    return committed.accepted


def commit_in_batches(
    process: WorkerProcess,
    lease: Lease,
    summary: ChunkSummary,
    decided: Iterable[DecidedThread],
    *,
    hold: bool,
) -> Sequence[bool]:
    """Commits decided threads in as many batches as they need; see `CommitInBatches`."""
    accepted, batch = list[bool](), CommitBatch()
    for each in decided:
        batch.add(each)
        if batch.is_full:
            accepted += commit_batch(process, lease, batch, summary, hold=hold)
            batch = CommitBatch()
    if batch.threads:
        accepted += commit_batch(process, lease, batch, summary, hold=hold)
    return accepted


def _count(summary: ChunkSummary, lease: Lease, batch: CommitBatch, accepted: Iterable[bool]) -> None:
    written = list(compress(batch.codes, accepted))
    codes = list(chain.from_iterable(written))
    tally = tally_of(codes)
    summary["must"] += tally.get("must", 0)
    summary["should"] += tally.get("should", 0)
    summary["skip"] += tally.get("skip", 0)
    summary["errors"] += tally.get("error", 0)
    summary["threads"] += len(written)
    summary["decided"] += len(codes)
    # Chunks of a retry are named `generation.number`.
    summary["retried"] += len(codes) if "." in lease.chunk else 0


def _part(block: DecidedBlock, started_ms: int) -> PartCommit:
    value = pack_block(Block(block.offset, started_ms, now_ms(), block.indexes, block.codes, block.lines))
    return PartCommit(block.offset, len(block.indexes), value, block.dead)


def make_executor(process: WorkerProcess, store: RunStore) -> TurnsExecutor:
    """Makes the executor of a process."""
    return TurnsExecutor(process, store)
