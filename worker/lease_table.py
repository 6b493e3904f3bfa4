"""The leases of this process, one for each chunk it works on; whether it drains.

    opened ── claim ok ──> held ── commit with `back`, or lost ──> closed
       a claim token          renewed each second; returned at the latest when a drain ends

Every access is under one lock, which is held for a few instructions only.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from time import monotonic
from typing import Final
from uuid import uuid4

from shared.ledger import HeldLease, Wake
from shared.names import RunState

LOST = "lost"
"""Answer of the ledger for a lease that this process no longer holds."""
POLL_S: Final = 0.05
"""How often `confirm` checks for the next renewal."""
REMEMBERED: Final = 2_000
"""Closed leases that are known by name."""


@dataclass(slots=True)
class Lease:
    """One delivery of one chunk to this process."""

    run: str
    chunk: str
    token: str
    """The fence: whatever this process writes for the chunk is written under it, or not at all."""
    is_held: bool = False
    """Whether the chunk was claimed, so that the lease has to be renewed and the chunk given back."""
    state: str = RunState.RUNNING
    """The run's state at the last call; `lost` once the lease has ended in the ledger."""
    wake: Wake | None = None
    """The wake-up that it was opened for."""
    asked_s: float = field(default_factory=monotonic)
    """Time when the last call that confirmed the lease was sent, on the monotonic clock."""

    @property
    def items(self) -> int:
        """Number of items by the wake-up."""
        return self.wake.items if self.wake else 1

    @property
    def is_lost(self) -> bool:
        """Whether nothing of this chunk would be accepted any more."""
        return self.state == LOST


class LeaseTable:
    """The leases of one process.

    Args:
        worker: the process's node name, the first part of every claim token.
        max_age_s: how old the last renewal may be for a call to begin; less than the lease itself.
    """

    def __init__(self, worker: str, *, max_age_s: float = inf) -> None:
        self._max_age_s = max_age_s
        # The name may be used again by the process that replaces this one; a token must not.
        self._prefix = f"{worker}.{uuid4().hex[:8]}"
        self._serials = count(1)
        self._changed = threading.Condition()
        self._open: dict[str, Lease] = {}
        self._closed = deque[tuple[float, HeldLease]](maxlen=REMEMBERED)
        self._is_draining = False

    @property
    def is_draining(self) -> bool:
        """Whether the process is about to end: nothing new is begun."""
        return self._is_draining

    def open(self, run: str, chunk: str, wake: Wake | None = None) -> Lease:
        """Adds a lease for a chunk that a thread begins to work on; each delivery gets a new token."""
        with self._changed:
            lease = Lease(run, chunk, f"{self._prefix}.{next(self._serials)}", wake=wake)
            self._open[lease.token] = lease
        return lease

    def close(self, lease: Lease) -> None:
        """Removes a lease, once the thread is done with its chunk or has returned it."""
        with self._changed:
            del self._open[lease.token]
            self._closed.append((monotonic(), HeldLease(lease.run, lease.chunk, lease.token)))
            self._changed.notify_all()

    def closed_within(self, seconds: float) -> list[HeldLease]:
        """Lists the leases that were closed since so many seconds."""
        since_s = monotonic() - seconds
        with self._changed:
            return [held for closed_s, held in self._closed if closed_s >= since_s]

    def held(self) -> list[HeldLease]:
        """Lists the leases that have to be renewed."""
        with self._changed:
            return [
                HeldLease(lease.run, lease.chunk, lease.token)
                for lease in self._open.values()
                if lease.is_held and not lease.is_lost
            ]

    def update(self, held: Sequence[HeldLease], states: Sequence[str], *, asked_s: float) -> None:
        """Stores what `renew` returned, in the same order.

        Args:
            held: what was renewed.
            states: the state of each one's run, or `LOST`.
            asked_s: when it was sent, on the monotonic clock.
        """
        answers: Mapping[str, str] = {each.token: state for each, state in zip(held, states, strict=True)}
        with self._changed:
            for token, state in answers.items():
                if token in self._open:
                    self._open[token].state, self._open[token].asked_s = state, asked_s

    async def confirm(self, token: str) -> bool:
        """Returns whether a lease is still held, so that a call for it may begin.

        A process that was suspended (SIGSTOP, a paused virtual machine) would continue although others may
        have its items. It waits here for the next renewal.
        """
        while True:
            with self._changed:
                lease = self._open.get(token)
                if lease is None or lease.is_lost:
                    return False
                if monotonic() - lease.asked_s < self._max_age_s:
                    return True
            await asyncio.sleep(POLL_S)

    def should_stop(self, lease: Lease) -> bool:
        """Whether to begin no further item: a drain or pause returns the chunk, a lost one is abandoned."""
        return self._is_draining or lease.state != RunState.RUNNING

    def drain(self) -> None:
        """Marks the process as draining; takes no lock, so that signal handlers may call it."""
        self._is_draining = True

    def wait_until_idle(self, within_s: float | None) -> bool:
        """Waits until no thread works on a chunk; returns False on timeout, of which None has none."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._open, within_s)
