"""Holds what the threads of one worker process share, and knows how the process ends.

Ends, from gentle to hard; what a harder one leaves behind, the ledger's lease rule brings back:

    drain      SIGTERM, first SIGINT, remote shutdown, burst without work: nothing new begins, what runs
               may finish within the grace period, the rest is given back at once
    hurry      second Ctrl-C, SIGQUIT, grace over, supervisor gone: every lease is given back now, exit
    give up    Redis was away for longer than the patience: exit 3, the supervisor starts another process
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
from shared.heartbeat import Heartbeat, sweep_dead
from shared.ledger import Ledger, Wake
from shared.names import Kind
from shared.observability import tracing
from shared.settings import Settings
from worker.in_flight_limit import Room
from worker.lease_table import Chunks
from worker.loop import Loop
from worker.upstream.stack import Upstream, end_calls_of

LAST_WORDS_S: Final = 3.0
"""How long a process in a hurry tries to give its leases back; they run out by themselves otherwise."""
SLOT_LOOK_S: Final = 0.2
"""How often a thread that waits for a slot of its kind looks whether the process ends."""

logger = logging.getLogger(__name__)


class _Ask(Enum):
    """How the process is asked to end."""

    GENTLY = auto()
    AT_ONCE = auto()


class WorkerProcess:
    """One worker process, as its threads see it.

    Args:
        name: the Celery node name, unique in the fleet.
        slots: chunks of each kind that may be worked on at a time; its keys are the kinds of this process.
        ledger: with the patience of a running worker.
        publisher: keeps what it cannot send; the steward flushes it.
        settings: the environment's.
        in_flight: cases and queries that may be under way at a time; None as the settings say.
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
        self.chunks = Chunks(name, doubt_s=ledger.times.lease_ms / 1000 / 2)
        self.loop = Loop()
        self.room = Room(in_flight or settings.in_flight)
        self.heartbeat = Heartbeat(settings.data_dir, name)
        self.on_drain: Callable[[], object] = bool
        """Called once when the drain begins, from a thread of its own; the lifecycle wakes Celery's loop."""
        self._has_left = False
        self._free = {kind: threading.Semaphore(number) for kind, number in slots.items()}
        self._woken_s = dict.fromkeys(slots, monotonic())
        """When a wake-up of the kind came last, or was looked for, on the monotonic clock."""
        # The one kind of queue that a signal handler may put into, also while it interrupts another `put`.
        self._asked: SimpleQueue[_Ask] = SimpleQueue()

    def watch(self) -> None:
        """Makes ready for the end: `drain` and `insist` have an effect from now on.

        Its thread is started now, because a signal handler must not: the main thread, which it interrupts,
        may be starting one at that moment.
        """
        threading.Thread(target=self._watch_the_end, name="drain", daemon=True).start()

    @cached_property
    def upstream(self) -> Upstream:
        """What calls to upstreams go through; made when it is first asked for."""
        return Upstream(
            self.ledger,
            on_away=self.give_up,
            session=self.loop.session,
            confirm=self.chunks.confirm,
            cache_ttl_s=self.settings.cache_ttl_s,
        )

    @contextmanager
    def slot(self, kind: Kind) -> Iterator[bool]:
        """Takes one of the process's slots for a kind, waiting for it; gives False when the process ends."""
        free = self._free[kind]
        self._woken_s[kind] = monotonic()
        taken = free.acquire(blocking=False)
        while not taken and not self.chunks.is_draining:
            taken = free.acquire(timeout=SLOT_LOOK_S)
        try:
            yield taken and not self.chunks.is_draining
        finally:
            if taken:
                free.release()

    def idle_kinds(self) -> list[Kind]:
        """Returns kinds that had a free slot and no wake-up for a while, each once in that time."""
        now_s, idle = monotonic(), []
        for kind, free in self._free.items():
            if now_s - self._woken_s[kind] < self.ledger.times.unclaimed_ms / 1000:
                continue
            if free.acquire(blocking=False):
                free.release()
                self._woken_s[kind] = now_s
                idle.append(kind)
        return idle

    def publish(self, wakes: Sequence[Wake]) -> None:
        """Publishes wake-up calls, or keeps them for the steward."""
        if wakes:
            self.publisher.publish(wakes)

    def drain(self) -> None:
        """Begins the end, gently; safe in a signal handler, and at any later call without effect."""
        self.chunks.drain()
        self._asked.put(_Ask.GENTLY)

    def insist(self) -> None:
        """Ends the process now; safe in a signal handler."""
        self.chunks.drain()
        self._asked.put(_Ask.AT_ONCE)

    def hurry(self) -> None:
        """Gives back every lease and ends the process within `LAST_WORDS_S`, whatever its threads do."""
        self.chunks.drain()
        threading.Thread(target=self._leave_now, name="last words", daemon=True).start()
        threading.Event().wait(LAST_WORDS_S)
        os._exit(0)

    def give_up(self, error: ProctorError) -> None:
        """Ends the process because what it stands on does not answer: nothing can be given back."""
        logger.error("worker gives up", extra={"reason": error.message, "exit_code": error.exit_code})
        self.heartbeat.stop()
        tracing.close()
        os._exit(error.exit_code)

    def give_back(self) -> None:
        """Returns every chunk that is still held; later commits of its threads are refused by the token."""
        for held in self.chunks.held():
            self.publish(self.ledger.commit(held.run, held.chunk, held.token, [], back=True).wakes)

    def arrive(self) -> None:
        """Takes the place of dead processes: one of the same name, and those that were killed on this host.

        Without it their leases would have to run out, also an hour later: the ledger clock stood still.
        """
        dead = sweep_dead(self.settings.data_dir, self.name.rpartition("@")[2])
        for name in {self.name, *dead}:
            self.ledger.leave(name, abrupt=True)
        if dead:
            end_calls_of(self.ledger, dead)
            logger.info("dead workers replaced", extra={"ended": ",".join(dead)})

    def leave(self, *, abrupt: bool = False) -> None:
        """Takes the process off the ledger's list of workers.

        Args:
            abrupt: Celery will not give back to the broker what it has fetched.
        """
        with suppress(RedisRefusingError):  # its registration ends by itself
            self.ledger.leave(self.name, abrupt=abrupt)
        self.heartbeat.stop()
        if "upstream" in self.__dict__:
            self.upstream.close()
        self.loop.close()
        tracing.close()
        if not self._has_left:  # a process in a hurry may come here from two threads
            self._has_left = True
            logger.info("worker stopped")

    def _watch_the_end(self) -> None:
        asked = self._asked.get()
        logger.info(
            "worker draining", extra={"grace_s": self.settings.grace_s, "chunks": len(self.chunks.held())}
        )
        self.on_drain()
        deadline = monotonic() + self.settings.grace_s
        with suppress(Empty):
            while asked is not _Ask.AT_ONCE:
                asked = self._asked.get(timeout=max(0.0, deadline - monotonic()))
        why = "asked to end at once" if asked is _Ask.AT_ONCE else "the grace period is over"
        logger.warning("worker stops now", extra={"reason": why, "chunks": len(self.chunks.held())})
        self.hurry()

    def _leave_now(self) -> None:
        self.give_back()
        self.leave(abrupt=True)
        os._exit(0)
