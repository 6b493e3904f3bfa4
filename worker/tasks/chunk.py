"""Leads one chunk of any kind through its life in this process: slot, lease, work, and what if it fails.

A Celery task never fails here, since a failed task says nothing that the ledger does not know better. A chunk
whose work raises is given back and tried again later and later; after some tries in this process its lease is
left to run out, so that the ledger's poison rule counts it, takes it apart, and ends it as an error.
"""

import logging
from collections import OrderedDict
from typing import Final, Protocol, TypedDict

from shared.clock import now_ms
from shared.errors import RedisUnreachableError
from shared.ledger import Wake
from shared.names import Kind
from worker.chunks import Lease
from worker.process import WorkerProcess

FIRST_DELAY_MS: Final = 1_000
"""Pause before a chunk whose work raised is tried again; doubles with each failure."""
MOST_FAILURES: Final = 5
"""After so many failures in this process a chunk is left to the poison rule."""
REMEMBERED: Final = 1_000
"""Chunks whose failures are remembered; the oldest are forgotten."""

logger = logging.getLogger(__name__)


class Summary(TypedDict, total=False):
    """What a task returns; Flower shows it."""

    chunk: str
    decided: int
    """Items that have their result now."""
    threads: int
    """Threads visited (turns only)."""
    retried: int
    """Items that were tried before."""
    status: str
    """Why nothing, or not everything, was done."""


class Handler(Protocol):
    """Works on chunks of one kind; one object per process, used by several threads."""

    def work(self, lease: Lease) -> Summary:
        """Claims a chunk, works on its items and commits them; the last commit gives the chunk back."""


class ChunkRunner:
    """Runs the chunks that Celery delivers to one process.

    Args:
        process: the process.
        handlers: for each of its kinds.
    """

    def __init__(self, process: WorkerProcess, handlers: dict[Kind, Handler]) -> None:
        self._process = process
        self._handlers = handlers
        self._failures: OrderedDict[tuple[str, str], int] = OrderedDict()

    def run(self, wake: Wake) -> Summary:
        """Works on one chunk and says in a few words what came of it."""
        kind = Kind(wake.kind)
        with self._process.slot(kind) as is_free:
            if not is_free:
                # The process ends: the wake-up call goes to another at once instead of when it is overdue.
                self._process.publish([wake])
                return {"chunk": wake.chunk, "decided": 0, "status": "left to another worker"}
            lease = self._process.chunks.open(wake.run, wake.chunk, wake)
            try:
                summary = self._handlers[kind].work(lease)
            except RedisUnreachableError as error:
                self._process.give_up(error)
                raise
            except Exception as error:  # noqa: BLE001 - a task that fails tells nobody; the ledger tries again
                return self._failed(lease, error)
            else:
                self._failures.pop((lease.run, lease.chunk), None)
                return summary
            finally:
                self._process.chunks.close(lease)

    def _failed(self, lease: Lease, error: Exception) -> Summary:
        failures = self._count_failure(lease)
        logger.error(
            "run %s, chunk %s: failure %d in this process", lease.run, lease.chunk, failures, exc_info=error
        )
        if failures >= MOST_FAILURES:
            return {"chunk": lease.chunk, "decided": 0, "status": "failed too often, left to the poison rule"}
        delay_ms = FIRST_DELAY_MS * 2 ** (failures - 1)
        try:
            committed = self._process.ledger.commit(
                lease.run, lease.chunk, lease.token, [], back=True, due_ms=now_ms() + delay_ms
            )
        except Exception:  # what broke the work may break the giving back; the lease ends by itself
            logger.exception("run %s, chunk %s: could not be given back", lease.run, lease.chunk)
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
