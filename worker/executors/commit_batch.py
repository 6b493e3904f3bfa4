"""Collects what was decided for threads and commits it: one call for many turns, each thread as a whole."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.clock import now_ms
from shared.codecs.turn_batches import Block, pack_block
from shared.ledger import ClaimedBatch, PartCommit, ThreadCommit
from shared.observability import tracing
from worker.breakpoint.codec import DecidedBlock, ThreadOutcome
from worker.executors.chunk import PREFIX, Summary
from worker.lease_table import LOST, Lease
from worker.process import WorkerProcess

GROUP_TURNS: Final = 1_000
"""Turns after which what is decided is committed: a usual chunk is one commit, a huge one several."""
GROUP_BYTES: Final = 4_000_000
"""Bytes of results after which what is decided is committed, so that no call holds Redis for long."""


@dataclass(slots=True)
class Group:
    """Threads that are decided and not committed yet."""

    threads: list[ThreadCommit] = field(default_factory=list)
    tally: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    turns: int = 0
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return self.turns >= GROUP_TURNS or self.size_bytes >= GROUP_BYTES

    def add(
        self,
        thread: str,
        pos: int,
        batches: Sequence[ClaimedBatch],
        outcome: ThreadOutcome,
        started_ms: int,
    ) -> None:
        """Takes in what was decided for one thread.

        Args:
            thread: which one.
            pos: the position that it was decided at.
            batches: its inbox, as it was decided.
            outcome: what came of it; its blocks are those of the first batches.
            started_ms: when the work on it began.
        """
        parts = [_part(block, started_ms) for block in outcome.blocks]
        self.threads.append(ThreadCommit(thread, pos, outcome.state, parts, outcome.requests))
        self.turns += sum(part.count for part in parts)
        self.size_bytes += sum(len(part.value) for part in parts)
        for batch, block in zip(batches, outcome.blocks, strict=False):
            self.tally[batch.run].update(block.tally)


def commit(
    process: WorkerProcess,
    lease: Lease,
    group: Group,
    summary: Summary,
    *,
    back: bool = False,
    hold: bool = False,
    delay_ms: int = 0,
) -> Sequence[bool]:
    """Commits a group.

    Args:
        process: whose ledger and publisher are used.
        lease: of the chunk; learns the state of its run, or that it is lost.
        group: what was decided.
        summary: is added to.
        back: give the chunk back.
        hold: keep the threads locked, see `shared.ledger`.
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
            group.threads,
            back=back,
            hold=hold,
            due_ms=now_ms() + delay_ms if delay_ms else 0,
            tally=group.tally,
        )
        span.set({f"{PREFIX}threads": len(group.threads), f"{PREFIX}status": committed.status})
    process.publish(committed.wakes)
    if committed.status == LOST:
        lease.state = LOST
        summary["status"] = LOST
        return ()
    lease.state = committed.state
    if back:
        lease.is_held = False
    _count(summary, lease, group.threads, committed.accepted)
    if hold:  # a thread is counted when it is let go
        summary["threads"] -= sum(committed.accepted)
    return committed.accepted


def _count(summary: Summary, lease: Lease, threads: Iterable[ThreadCommit], accepted: Iterable[bool]) -> None:
    for thread, is_written in zip(threads, accepted, strict=True):
        if is_written:
            turns = sum(part.count for part in thread.parts)
            summary["threads"] += 1
            summary["decided"] += turns
            # Chunks of a retry are named `generation.number`.
            summary["retried"] += turns if "." in lease.chunk else 0


def _part(block: DecidedBlock, started_ms: int) -> PartCommit:
    value = pack_block(Block(block.offset, started_ms, now_ms(), block.indexes, block.codes, block.lines))
    return PartCommit(block.offset, len(block.indexes), value, block.dead)
