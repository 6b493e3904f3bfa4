"""A worker inside the test: takes wake-ups from a list, decides their turns and commits, one step at a time.

No Celery, no threads, no leases to renew: what the producer side needs is results in the ledger, quickly and
in an order that the test chooses.
"""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from shared.clock import now_ms
from shared.codecs.turn_batches import Block, pack_block
from shared.ledger import Claim, ClaimedThread, Committed, PartCommit, ThreadCommit, Wake
from shared.ledger.ledger import Ledger
from shared.runs import RunStore
from worker.breakpoint.thread_decider import Batch, RunPolicy, ThreadOutcome, decide_thread, request_ids

if TYPE_CHECKING:
    import redis

NAME: Final = "inline@test"
KIND: Final = "turns"


class InlineWorker:
    """Publisher and worker in one: what is published is worked on when the test says so."""

    def __init__(self, client: "redis.Redis", *, capacity: int = 4) -> None:
        self.ledger = Ledger(client, patience_s=5.0)
        self.store = RunStore(client, patience_s=5.0)
        self.wakes: deque[Wake] = deque()
        self.published = 0
        self.capacity = capacity

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Takes wake-ups, as a publisher does."""
        before = len(self.wakes)
        self.wakes.extend(wakes)
        self.published += len(self.wakes) - before

    def follow_master(self) -> None:
        """Has one server."""

    def register(self) -> None:
        """Counts as a live worker from now on."""
        self.publish(self.ledger.tick(NAME, [KIND], self.capacity))

    def work(self, *, chunks: int | None = None, turns: int | None = None) -> int:
        """Works on what is published until nothing is left, and returns the number of chunks.

        Args:
            chunks: at most so many.
            turns: of each batch decide only so many per claim, as live turns do.
        """
        worked = 0
        while self.wakes and (chunks is None or worked < chunks):
            wake = self.wakes.popleft()
            token = uuid4().hex
            claim = self.ledger.claim(wake.run, wake.chunk, token, NAME)
            self.publish(claim.wakes)
            if claim.status == "ok":
                self.publish(self.commit(wake, token, claim, turns=turns).wakes)
                worked += 1
        return worked

    def commit(self, wake: Wake, token: str, claim: Claim, *, turns: int | None = None) -> Committed:
        """Decides the threads of a claim and gives the chunk back."""
        known = dict(
            self.ledger.requests(
                claim.namespace, sorted(request_ids(b.payload for t in claim.threads for b in t.batches))
            )
        )
        commits = list[ThreadCommit]()
        for thread in claim.threads:
            outcome = decide_thread(
                thread=thread.thread,
                state=thread.memento,
                batches=self._batches(thread, turns),
                known=known,
            )
            commits.append(_commit_of(thread, outcome))
        return self.ledger.commit_threads(wake.run, wake.chunk, token, commits, back=True)

    def _batches(self, thread: ClaimedThread, turns: int | None) -> list[Batch]:
        """Prepares the inbox; with a limit only its first batch."""
        batches = [
            Batch(self._policy(batch.run), thread.offset if at == 0 else 0, batch.payload, turns)
            for at, batch in enumerate(thread.batches)
        ]
        return batches if turns is None else batches[:1]

    def _policy(self, run: str) -> RunPolicy:
        snapshot = self.store.info(run).snapshot
        return RunPolicy(run, snapshot["submitted_ms"], snapshot["summary_policy"])


def _commit_of(thread: ClaimedThread, outcome: ThreadOutcome) -> ThreadCommit:
    """Packs what was decided of a thread."""
    at = now_ms()
    parts = [
        PartCommit(
            block.offset,
            len(block.lines),
            pack_block(Block(block.offset, at, at + 1, block.indexes, block.codes, block.lines)),
            block.dead,
        )
        for block in outcome.blocks
        if block.lines
    ]
    return ThreadCommit(thread.thread, thread.pos, outcome.state, parts, outcome.requests)
