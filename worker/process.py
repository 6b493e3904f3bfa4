"""State shared by the threads of one worker process: ledger, leases, limits, and the ways the process ends.

From gentle to hard; what a harder one leaves behind is recovered when its leases expire:

    drain        SIGTERM, first SIGINT, remote shutdown, burst without work: nothing new begins, what runs
                 may finish within the grace period, the rest is returned at once
    exit_now     second Ctrl-C, SIGQUIT, grace over, supervisor gone: every lease is returned, then exit
    exit_with    Redis was away for longer than the patience: exit 3, the supervisor starts another process
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import cached_property
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Final

from shared.broker import Publisher
from shared.errors import ProctorError, RedisRefusingError
from shared.kinds import Kind
from shared.ledger import HeldLease, Wake
from shared.ledger.ledger import Ledger
from shared.observability import tracing
from shared.processes.heartbeat import Heartbeat, sweep_dead
from shared.redaction import redactor_of
from shared.settings import Settings
from worker.in_flight_limit import InFlightLimit
from worker.lease_table import LeaseTable
from worker.loop import Loop
from worker.upstream.stack import UpstreamStack, release_permits_of

EXIT_S: Final = 3.0
"""How long `exit_now` tries to return the leases; what it does not reach expires."""
REPLACED_S: Final = 5.0
"""How long a replaced master may have been taken for the master."""
SLOT_POLL_S: Final = 0.2
"""How often a thread that waits for a slot of its kind checks whether the process drains."""

logger = logging.getLogger(__name__)


class _StopRequest(Enum):
    """How the process is to end."""

    DRAIN = auto()
    EXIT = auto()


class WorkerProcess:
    """One worker process, shared by its threads.

    Args:
        name: the Celery node name, unique in the fleet.
        slots: chunks of each kind that may be worked on at a time; its keys are the kinds of this process.
        ledger: with the time limits of a running worker.
        publisher: keeps what it cannot send; the steward flushes it.
        settings: the environment's.
        in_flight: maximum concurrent cases and queries; None: by the settings.
    """

    def __init__(
        self,
        name: str,
        slots: Mapping[Kind, int],
        *,
        ledger: Ledger,
        publisher: Publisher,
        settings: Settings,
        in_flight: int | None = None,
    ) -> None:
        self.name = name
        self.slots = dict(slots)
        self.ledger = ledger
        self.publisher = publisher
        self.settings = settings
        self.leases = LeaseTable(name, max_age_s=ledger.times.lease_ms / 1000 / 2)
        self.loop = Loop()
        self.in_flight = InFlightLimit(in_flight or settings.in_flight)
        self.heartbeat = Heartbeat(settings.data_dir, name)
        self.on_drain: Callable[[], object] = bool
        """Called once when the drain begins, from a thread of its own; the lifecycle wakes Celery's loop."""
        self._is_closed = False
        self._free = {kind: threading.Semaphore(number) for kind, number in slots.items()}
        self._last_wake_s = dict.fromkeys(slots, monotonic())
        """Time when a wake-up of the kind last came or was searched for, on the monotonic clock."""
        # The one kind of queue that a signal handler may put into, also while it interrupts another `put`.
        self._stop_requests: SimpleQueue[_StopRequest] = SimpleQueue()

    def start_drain_watch(self) -> None:
        """Starts the thread that `drain` and `request_exit` need.

        A signal handler must not start it: the main thread, which it interrupts, may be starting one.
        """
        threading.Thread(target=self._watch_drain, name="drain", daemon=True).start()

    @cached_property
    def upstream(self) -> UpstreamStack:
        """The stack for calls to upstreams; made on first use."""
        return UpstreamStack(
            self.ledger,
            on_unreachable=self.exit_with,
            session=self.loop.session,
            confirm=self.leases.confirm,
            cache_ttl_s=self.settings.answers_ttl_s,
            redactor=redactor_of(self.settings),
            allow_code=self.settings.allow_code,
        )

    @contextmanager
    def slot(self, kind: Kind) -> Iterator[bool]:
        """Takes one of the process's slots for a kind, waiting for it; yields False in a drain."""
        free = self._free[kind]
        self._last_wake_s[kind] = monotonic()
        taken = free.acquire(blocking=False)
        while not taken and not self.leases.is_draining:
            taken = free.acquire(timeout=SLOT_POLL_S)
        try:
            yield taken and not self.leases.is_draining
        finally:
            if taken:
                free.release()

    def idle_kinds(self) -> list[Kind]:
        """Returns kinds that had a free slot and no wake-up for a while, each once in that time."""
        now_s, idle = monotonic(), []
        for kind, free in self._free.items():
            if now_s - self._last_wake_s[kind] < self.ledger.times.unclaimed_ms / 1000:
                continue
            if free.acquire(blocking=False):
                free.release()
                self._last_wake_s[kind] = now_s
                idle.append(kind)
        return idle

    def publish(self, wakes: Sequence[Wake]) -> None:
        """Publishes wake-up calls, or keeps them for the steward."""
        if wakes:
            self.publisher.publish(wakes)

    def drain(self) -> None:
        """Starts the drain; safe in a signal handler, without effect when it has started."""
        self.leases.drain()
        self._stop_requests.put(_StopRequest.DRAIN)

    def request_exit(self) -> None:
        """Ends the process as `exit_now` does, from its own thread; safe in a signal handler."""
        self.leases.drain()
        self._stop_requests.put(_StopRequest.EXIT)

    def exit_now(self) -> None:
        """Returns every lease and exits within `EXIT_S`, whatever the other threads do."""
        self.leases.drain()
        threading.Thread(target=self._exit_now, name="exit", daemon=True).start()
        threading.Event().wait(EXIT_S)
        os._exit(0)

    def exit_with(self, error: ProctorError) -> None:
        """Exits with an error's code when Redis or the broker is lost: nothing can be returned."""
        logger.error("worker gives up", extra={"reason": error.message, "exit_code": error.exit_code})
        self.heartbeat.stop()
        tracing.close()
        os._exit(error.exit_code)

    def release_leases(self) -> None:
        """Returns every chunk that is still held; the ledger refuses later commits of its threads."""
        self._return(self.leases.held())

    def repeat_returns(self) -> None:
        """Returns chunks once more that a replaced master was told of; their leases would have to expire."""
        self._return(self.leases.closed_within(REPLACED_S))

    def _return(self, leases: Sequence[HeldLease]) -> None:
        for held in leases:
            self.publish(self.ledger.commit(held.run, held.chunk, held.token, [], back=True).wakes)

    def replace_dead_workers(self) -> None:
        """Ends the leases of dead processes: an earlier one of this name, those killed on this host.

        Otherwise they would have to expire, even an hour later: without workers the ledger clock stands.
        """
        dead = sweep_dead(self.settings.data_dir, self.name.rpartition("@")[2])
        for name in {self.name, *dead}:
            self.ledger.leave(name, abrupt=True)
        if dead:
            release_permits_of(self.ledger, dead)
            logger.info("dead workers replaced", extra={"ended": ",".join(dead)})

    def close(self, *, abrupt: bool = False) -> None:
        """Deregisters the process and closes what it shares.

        Args:
            abrupt: Celery will not return to the broker what it has fetched.
        """
        with suppress(RedisRefusingError):  # the registration expires
            self.ledger.leave(self.name, abrupt=abrupt)
        self.heartbeat.stop()
        if "upstream" in self.__dict__:
            self.upstream.close()
        self.loop.close()
        tracing.close()
        if not self._is_closed:  # `exit_now` may run beside the lifecycle's own call
            self._is_closed = True
            logger.info("worker stopped")

    def _watch_drain(self) -> None:
        request = self._stop_requests.get()
        logger.info(
            "worker draining", extra={"grace_s": self.settings.grace_s, "chunks": len(self.leases.held())}
        )
        self.on_drain()
        deadline = monotonic() + self.settings.grace_s
        with suppress(Empty):
            while request is not _StopRequest.EXIT:
                request = self._stop_requests.get(timeout=max(0.0, deadline - monotonic()))
        why = "ended at once on request" if request is _StopRequest.EXIT else "the grace period is over"
        logger.warning("worker stops now", extra={"reason": why, "chunks": len(self.leases.held())})
        self.exit_now()

    def _exit_now(self) -> None:
        self.release_leases()
        self.close(abrupt=True)
        os._exit(0)
