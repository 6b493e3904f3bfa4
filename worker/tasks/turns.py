"""Decides the turns of one chunk: claim its threads, decide each, commit them together; a few calls in all.

A worker decides whatever stands in a thread's inbox, also turns that another run of the namespace put there,
each by the settings of its own run. Threads that are held elsewhere put the chunk aside for a second. A chunk
that has cost workers their lives is claimed and committed one turn at a time, so that the bad one is found.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from shared.clock import now_ms
from shared.ledger import Claim, ClaimedThread, PartCommit, ThreadCommit
from shared.rows import Block, pack_block
from shared.runs import RunStore
from worker.breakpoint.codec import Batch, DecidedBlock, RunPolicy, ThreadOutcome, decide_thread, request_ids
from worker.chunks import LOST, Lease
from worker.process import WorkerProcess
from worker.tasks.chunk import Summary
from worker.tasks.rescue import decide_one_by_one

GROUP_TURNS: Final = 1_000
"""Turns after which what is decided is committed: a usual chunk is one commit, a huge one several."""
GROUP_BYTES: Final = 4_000_000
"""Bytes of results after which what is decided is committed, so that no call holds Redis for long."""
BUSY_MS: Final = 1_000
"""How long a chunk is put aside that found a thread held by another worker."""
POLICIES: Final = 256
"""Runs whose settings a process remembers."""


def policy_of(run: str, snapshot: dict[str, Any]) -> RunPolicy:
    """Reads what a run's snapshot says about deciding its turns.

    >>> policy_of("r1", {"v": 1, "submitted_ms": 5, "summary_policy": "breakpoints"}).summary_policy
    'breakpoints'
    """
    return RunPolicy(run, snapshot["submitted_ms"], snapshot["summary_policy"])


@dataclass(slots=True)
class _Group:
    """Threads that are decided and not committed yet."""

    threads: list[ThreadCommit] = field(default_factory=list)
    tally: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    turns: int = 0
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return self.turns >= GROUP_TURNS or self.size_bytes >= GROUP_BYTES

    def add(self, claimed: ClaimedThread, outcome: ThreadOutcome, started_ms: int) -> None:
        """Takes in what was decided for one thread."""
        parts = [_part(block, started_ms) for block in outcome.blocks]
        self.threads.append(ThreadCommit(claimed.thread, claimed.pos, outcome.state, parts, outcome.requests))
        self.turns += sum(part.count for part in parts)
        self.size_bytes += sum(len(part.value) for part in parts)
        for batch, block in zip(claimed.batches, outcome.blocks, strict=False):
            self.tally[batch.run].update(block.tally)


class TurnsHandler:
    """Works on chunks of turns.

    Args:
        process: whose ledger, leases and publisher are used.
        store: where the settings of runs are read.
    """

    def __init__(self, process: WorkerProcess, store: RunStore) -> None:
        self._process = process
        self._policy = lru_cache(POLICIES)(lambda run: policy_of(run, store.info(run).snapshot))

    def work(self, lease: Lease) -> Summary:
        """Decides the chunk's turns; the last commit gives the chunk back, which closes it if all is done."""
        summary: Summary = {"chunk": lease.chunk, "decided": 0, "threads": 0, "retried": 0}
        is_over = False
        while not is_over:
            claim = self._process.ledger.claim(lease.run, lease.chunk, lease.token, self._process.name)
            self._process.publish(claim.wakes)
            if claim.status != "ok":
                if claim.status != "done" or not summary["decided"]:
                    summary["status"] = claim.status
                return summary
            lease.is_held = True
            is_over = self._visit(lease, claim, summary)
        return summary

    def _visit(self, lease: Lease, claim: Claim, summary: Summary) -> bool:
        """Decides and commits what one claim handed out; returns whether the work on the chunk is over."""
        known = self._known_requests(claim)
        group = _Group()
        for claimed in claim.threads:
            if self._process.chunks.should_stop(lease):
                break
            started_ms = now_ms()
            group.add(claimed, self._decide(claimed, known, is_suspect=claim.suspect), started_ms)
            if group.is_full:
                self._commit(lease, group, summary, is_last=False)
                group = _Group()
        # A suspect is claimed again for its next turn, under the same lease, until nothing is left of it.
        is_over = not (claim.suspect and group.threads) or self._process.chunks.should_stop(lease)
        delay_ms = BUSY_MS if claim.busy else 0
        self._commit(lease, group, summary, is_last=is_over, delay_ms=delay_ms)
        return is_over or lease.is_lost

    def _decide(self, claimed: ClaimedThread, known: dict[str, bytes], *, is_suspect: bool) -> ThreadOutcome:
        batches = [
            Batch(
                self._policy(batch.run),
                claimed.offset if place == 0 else 0,
                batch.payload,
                1 if is_suspect else None,
            )
            for place, batch in enumerate(claimed.batches)
        ]
        seen = dict(known)
        try:
            outcome = decide_thread(
                thread=claimed.thread, state=claimed.memento, batches=batches, known=known
            )
        except MemoryError:
            raise  # not this turn's fault: another time, or another process
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the thread's other turns
            known.clear()
            known.update(seen)
            outcome = decide_one_by_one(claimed, batches, known, error)
        return outcome

    def _known_requests(self, claim: Claim) -> dict[str, bytes]:
        payloads = (batch.payload for claimed in claim.threads for batch in claimed.batches)
        asked = request_ids(payloads)
        return dict(self._process.ledger.requests(claim.namespace, sorted(asked))) if asked else {}

    def _commit(
        self, lease: Lease, group: _Group, summary: Summary, *, is_last: bool, delay_ms: int = 0
    ) -> None:
        if lease.is_lost:
            return
        committed = self._process.ledger.commit_threads(
            lease.run,
            lease.chunk,
            lease.token,
            group.threads,
            back=is_last,
            due_ms=now_ms() + delay_ms if delay_ms else 0,
            tally=group.tally,
        )
        self._process.publish(committed.wakes)
        if committed.status == LOST:
            lease.state = LOST
            summary["status"] = LOST
            return
        lease.state = committed.state
        if is_last:
            lease.is_held = False
        _count(summary, lease, group.threads, committed.accepted)


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


def make_handler(process: WorkerProcess, store: RunStore) -> TurnsHandler:
    """Makes the handler of a process."""
    return TurnsHandler(process, store)
