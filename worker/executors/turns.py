"""Decides the turns of one chunk: claim its threads, decide each, commit them together; a few calls in all.

A worker decides whatever stands in a thread's inbox, also turns that another run of the namespace put there,
each by the settings of its own run. Threads that are held elsewhere put the chunk aside for a second. A chunk
that has cost workers their lives is claimed and committed one turn at a time, so that the bad one is found.
Threads with turns of a run with a model are worked on by `worker.executors.live`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from shared.clock import now_ms
from shared.contracts.live_turns import LiveRun
from shared.ledger import Claim, ClaimedThread
from shared.runs import RunStore
from worker.breakpoint.codec import Batch, RunPolicy, ThreadOutcome, decide_thread, request_ids
from worker.executors.chunk import Summary, claim_chunk
from worker.executors.commit_batch import Group, commit
from worker.executors.fallback import decide_one_by_one
from worker.executors.live import LiveVisit
from worker.executors.live_thread import talk_of
from worker.lease_table import Lease
from worker.process import WorkerProcess

BUSY_MS: Final = 1_000
"""How long a chunk is put aside that found a thread held by another worker."""
POLICIES: Final = 256
"""Runs whose settings a process remembers."""


def policy_of(run: str, snapshot: dict[str, Any]) -> RunPolicy:
    """Reads what a run's snapshot says about deciding its turns.

    >>> policy_of("r1", {"v": 1, "submitted_ms": 5, "summary_policy": "breakpoints"}).summary_policy
    'breakpoints'
    """
    live = LiveRun.from_snapshot(snapshot)
    return RunPolicy(
        run, snapshot["submitted_ms"], snapshot["summary_policy"], live.live.value if live else ""
    )


class TurnsExecutor:
    """Works on chunks of turns.

    Args:
        process: whose ledger, leases and publisher are used.
        store: where the settings of runs are read.
    """

    def __init__(self, process: WorkerProcess, store: RunStore) -> None:
        self._process = process
        self._policy = lru_cache(POLICIES)(lambda run: policy_of(run, store.info(run).snapshot))
        self._told = lru_cache(POLICIES)(lambda run: LiveRun.from_snapshot(store.info(run).snapshot))

    def execute(self, lease: Lease) -> Summary:
        """Decides the chunk's turns; the last commit gives the chunk back, which closes it if all is done."""
        summary: Summary = {"chunk": lease.chunk, "decided": 0, "threads": 0, "retried": 0}
        is_over = False
        while not is_over:
            claim = claim_chunk(self._process, lease)
            if claim.status != "ok":
                if claim.status != "done" or not summary["decided"]:
                    summary["status"] = claim.status
                return summary
            is_over = self._visit(lease, claim, summary)
        return summary

    def _visit(self, lease: Lease, claim: Claim, summary: Summary) -> bool:
        """Decides and commits what one claim handed out; returns whether the work on the chunk is over."""
        known = self._known_requests(claim)
        group, live = Group(), list[tuple[ClaimedThread, list[Batch]]]()
        for claimed in claim.threads:
            if self._process.leases.should_stop(lease):
                break
            batches = self._batches(claimed, is_suspect=claim.suspect)
            if _is_live(batches):
                live.append((claimed, batches))
                continue
            started_ms = now_ms()
            outcome = self._decide(claimed, batches, known)
            group.add(claimed.thread, claimed.pos, claimed.batches, outcome, started_ms)
            if group.is_full:
                commit(self._process, lease, group, summary)
                group = Group()
        has_decided, due_ms = bool(group.threads), 0
        if live and not self._process.leases.should_stop(lease):
            commit(self._process, lease, group, summary)
            group = Group()
            due_ms, has_asked = self._work_live(lease, claim, live, known, summary)
            has_decided = has_decided or has_asked
        # A suspect is claimed again for its next turn, under the same lease, until nothing is left of it.
        is_over = not (claim.suspect and has_decided) or self._process.leases.should_stop(lease)
        delays_ms = [BUSY_MS] * bool(claim.busy) + [max(1, due_ms - now_ms())] * bool(due_ms)
        commit(self._process, lease, group, summary, back=is_over, delay_ms=min(delays_ms, default=0))
        return is_over or lease.is_lost

    def _work_live(
        self,
        lease: Lease,
        claim: Claim,
        live: Sequence[tuple[ClaimedThread, list[Batch]]],
        known: Mapping[str, bytes],
        summary: Summary,
    ) -> tuple[int, bool]:
        """Has turns answered by models; returns when the first wait is over, and whether any was decided."""
        visit = LiveVisit(self._process, self._told, lease, summary)
        talks = [
            talk_of(lease, claimed, batches, known, is_suspect=claim.suspect) for claimed, batches in live
        ]
        return visit.work(talks), visit.has_decided

    def _batches(self, claimed: ClaimedThread, *, is_suspect: bool) -> list[Batch]:
        return [
            Batch(
                self._policy(batch.run),
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


def _is_live(batches: Sequence[Batch]) -> bool:
    """Tells whether turns of a run with a model are among them."""
    for batch in batches:  # noqa: SIM110 - `any` costs 0.3 µs more, for each thread of runs without a model
        if batch.policy.live:
            return True
    return False


def make_executor(process: WorkerProcess, store: RunStore) -> TurnsExecutor:
    """Makes the handler of a process."""
    return TurnsExecutor(process, store)
