"""Processes one chunk of any kind: slot, lease, work, and the handling of failures.

A Celery task never fails, because the ledger is the record of failures. A chunk whose work raises is given
back and retried with growing delays. After some failures in this process its lease is left to expire, so that
the poison rule of the ledger counts it, splits it into single items and ends the bad one as an error.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, Protocol, TypedDict

from shared.clock import now_ms
from shared.errors import ProctorError, RedisUnreachableError
from shared.kinds import Kind, kind_named
from shared.ledger import Claim, Wake
from shared.names import SERVED_PREFIX, Outcome, RunState
from shared.observability import tracing
from shared.observability.spans import SNAPSHOT_KEY, Span, Value
from shared.runs import RunStore
from worker.lease_table import Lease
from worker.logs import structlog
from worker.process import WorkerProcess
from worker.talk import Talks

FIRST_DELAY_MS: Final = 1_000
"""Pause before a chunk whose work raised is tried again; doubles with each failure."""
MOST_FAILURES: Final = 5
"""After so many failures in this process a chunk is left to the poison rule."""
REMEMBERED: Final = 1_000
"""Chunks whose failures are counted; the oldest are dropped."""
RUNS: Final = 256
"""Runs whose engines and trace contexts a process keeps in memory."""
PREFIX: Final = "proctor."
"""Prefix of our own attributes of spans."""

logger = logging.getLogger(__name__)


class ChunkSummary(TypedDict, total=False):
    """What a task returns; Flower shows it, and of a long one its beginning."""

    passed: int
    failed: int
    must: int
    """Decisions (turns only)."""
    should: int
    skip: int
    errors: int
    """Items that ended in error."""
    chunk: str
    decided: int
    """Items that have their result now."""
    threads: int
    """Threads visited (turns only)."""
    retried: int
    """Items that were tried before."""
    status: str
    """Why nothing, or not everything, was done."""


def count_outcomes(summary: ChunkSummary, outcomes: Iterable[Outcome]) -> None:
    """Counts the outcomes of items that were written."""
    found = Counter(outcomes)
    summary["passed"] += found[Outcome.PASSED]
    summary["failed"] += found[Outcome.FAILED]
    summary["errors"] += found[Outcome.ERROR]


class Executor(Protocol):
    """Works on chunks of one kind; one object per process, used by several threads."""

    def execute(self, lease: Lease) -> ChunkSummary:
        """Claims a chunk, works on its items and commits them; the last commit gives the chunk back."""


class ChunkRunner:
    """Runs the chunks that Celery delivers to one process.

    Args:
        process: the process.
        executors: for each of its kinds.
        parent_of: finds the context of a run's trace; called only where tracing is on.
        talks: wake-ups of served turns; None: all come from Celery.
    """

    def __init__(
        self,
        process: WorkerProcess,
        executors: dict[Kind, Executor],
        *,
        parent_of: Callable[[str], str] | None = None,
        talks: Talks | None = None,
    ) -> None:
        self._process = process
        self._talks = talks
        self._executors = executors
        self._parent_of = parent_of
        self._failures: OrderedDict[tuple[str, str], int] = OrderedDict()

    def run(self, wake: Wake) -> ChunkSummary:
        """Processes one chunk and returns a short summary for Flower; of a talk, also what follows."""
        summary = self._logged(wake)
        if self._talks is not None and wake.run.startswith(SERVED_PREFIX):
            for following in self._talks.following():
                self._logged(following)
        return summary

    def _logged(self, wake: Wake) -> ChunkSummary:
        with (
            structlog.contextvars.bound_contextvars(run=wake.run, chunk=wake.chunk),
            self._span(wake) as span,
        ):
            summary = self._run(wake)
            _describe(span, summary)
            return summary

    def _span(self, wake: Wake) -> Span:
        if not tracing.is_on():
            return tracing.OFF
        attributes: dict[str, Value | None] = {
            f"{PREFIX}run": wake.run,
            f"{PREFIX}kind": wake.kind,
            f"{PREFIX}chunk": wake.chunk,
            f"{PREFIX}items": wake.items,
            f"{PREFIX}worker": self._process.name,
        }
        parent = self._parent_of(wake.run) if self._parent_of else ""
        return tracing.span("chunk", attributes, kind="consumer", parent=parent)

    def _run(self, wake: Wake) -> ChunkSummary:
        kind = kind_named(wake.kind)
        with self._process.slot(kind) as is_free:
            if not is_free:
                # The process ends: the wake-up is returned at once, rather than republished when it is
                # overdue.
                self._process.publish([wake])
                return {"chunk": wake.chunk, "decided": 0, "status": "left to another worker"}
            lease = self._process.leases.open(wake.run, wake.chunk, wake)
            try:
                summary = self._executors[kind].execute(lease)
            except RedisUnreachableError as error:
                self._process.exit_with(error)
                raise
            except Exception as error:  # noqa: BLE001 - a failed task would record nothing; the ledger retries
                return self._failed(lease, error)
            else:
                self._failures.pop((lease.run, lease.chunk), None)
                logger.debug(
                    "chunk given back", extra={"decided": summary.get("decided"), "state": str(lease.state)}
                )
                return summary
            finally:
                if lease.is_lost:
                    logger.warning("lease lost")
                self._process.leases.close(lease)

    def _failed(self, lease: Lease, error: Exception) -> ChunkSummary:
        failures = self._count_failure(lease)
        logger.error("chunk failed", extra={"failures": failures}, exc_info=error)
        if failures >= MOST_FAILURES:
            logger.error("chunk left to the poison rule", extra={"failures": failures})
            return {"chunk": lease.chunk, "decided": 0, "status": "failed too often, left to the poison rule"}
        delay_ms = FIRST_DELAY_MS * 2 ** (failures - 1)
        try:
            committed = self._process.ledger.commit(
                lease.run, lease.chunk, lease.token, [], back=True, due_ms=now_ms() + delay_ms
            )
        except Exception:  # what broke the work may break the giving back; the lease ends by itself
            logger.exception("chunk not given back")
        else:
            self._process.publish(committed.wakes)
        return {"chunk": lease.chunk, "decided": 0, "status": f"failed, tried again after {delay_ms} ms"}

    def _count_failure(self, lease: Lease) -> int:
        key = (lease.run, lease.chunk)
        failures = self._failures.pop(key, 0) + 1
        self._failures[key] = failures
        while len(self._failures) > REMEMBERED:
            self._failures.popitem(last=False)
        return failures


def _describe(span: Span, summary: ChunkSummary) -> None:
    decided, retried, status = summary.get("decided"), summary.get("retried"), summary.get("status")
    span.set({f"{PREFIX}decided": decided, f"{PREFIX}retried": retried, f"{PREFIX}status": status})


def claim_chunk(process: WorkerProcess, lease: Lease) -> Claim:
    """Claims a chunk, publishes wake-ups that follow, and marks the lease as held if the claim succeeds."""
    with tracing.span("claim") as span:
        claim = process.ledger.claim(lease.run, lease.chunk, lease.token, process.name)
        span.set({f"{PREFIX}status": claim.status})
    process.publish(claim.wakes)
    if claim.status == "ok":
        lease.is_held = True
        logger.debug("chunk claimed", extra={"items": lease.items})
        if claim.suspect:
            logger.warning("poison suspected", extra={"reason": "leases on this chunk ran out before"})
    return claim


def log_end(run: str, end: str) -> None:
    """Logs that a run ends before all its items have results."""
    level = logging.ERROR if end == RunState.ABORTED else logging.WARNING
    logger.log(level, "run ends early", extra={"run": run, "state": str(end)})


def trace_parents(store: RunStore) -> Callable[[str], str]:
    """Finds the contexts of runs' traces, where their snapshots have one."""

    @lru_cache(RUNS)
    def known(run: str) -> str:
        return str(store.info(run).snapshot.get(SNAPSHOT_KEY, ""))

    def parent_of(run: str) -> str:
        try:
            return known(run)
        except ProctorError:  # removed, or Redis is away: the claim will fail with the reason
            return ""

    return parent_of
