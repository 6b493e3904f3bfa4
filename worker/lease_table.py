"""Keeps the chunks this process works on: their leases, what the ledger says of their runs, and the drain.

    opened ── claim ok ──> held ── commit with `back`, or lost ──> closed
       a claim token          renewed each second; at the end of a drain given back by force

Every access is under one lock, which is held for a few instructions only.
"""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from time import monotonic
from typing import Final
from uuid import uuid4

from shared.ledger import Held, Wake
from shared.names import RunState

LOST = "lost"
"""What the ledger answers for a lease that is not ours any more."""
LOOK_S: Final = 0.05
"""How often a call that is doubtful looks whether the ledger has answered."""


@dataclass(slots=True)
class Lease:
    """One delivery of one chunk to this process."""

    run: str
    chunk: str
    token: str
    """The fence: whatever this process writes for the chunk is written under it, or not at all."""
    is_held: bool = False
    """Whether the ledger gave us the chunk, so that it has to be renewed and given back."""
    state: str = RunState.RUNNING
    """The run's state as last heard; `lost` once the ledger has taken the chunk from us."""
    wake: Wake | None = None
    """The call that brought it here."""
    asked_s: float = field(default_factory=monotonic)
    """When the ledger was asked what it said last of the lease, on the monotonic clock."""

    @property
    def items(self) -> int:
        """How many items it has, as far as the call knows."""
        return self.wake.items if self.wake else 1

    @property
    def is_lost(self) -> bool:
        """Whether nothing of this chunk would be accepted any more."""
        return self.state == LOST


class Chunks:
    """The chunks of one process.

    Args:
        worker: the process's node name, the first part of every claim token.
        doubt_s: how old the ledger's last word on a lease may be for a call to begin: less than a lease.
    """

    def __init__(self, worker: str, *, doubt_s: float = inf) -> None:
        self._doubt_s = doubt_s
        # The name may be used again by the process that replaces this one; a token must not.
        self._prefix = f"{worker}.{uuid4().hex[:8]}"
        self._serials = count(1)
        self._changed = threading.Condition()
        self._open: dict[str, Lease] = {}
        self._is_draining = False

    @property
    def is_draining(self) -> bool:
        """Whether the process is about to end: nothing new is begun."""
        return self._is_draining

    def open(self, run: str, chunk: str, wake: Wake | None = None) -> Lease:
        """Notes that a thread begins to work on a chunk; the token is new for each delivery."""
        with self._changed:
            lease = Lease(run, chunk, f"{self._prefix}.{next(self._serials)}", wake=wake)
            self._open[lease.token] = lease
        return lease

    def close(self, lease: Lease) -> None:
        """Notes that the thread has ended its work, and gave the chunk back if anything was left."""
        with self._changed:
            del self._open[lease.token]
            self._changed.notify_all()

    def held(self) -> list[Held]:
        """Lists what has to be renewed."""
        with self._changed:
            return [
                Held(lease.run, lease.chunk, lease.token)
                for lease in self._open.values()
                if lease.is_held and not lease.is_lost
            ]

    def heard(self, held: Sequence[Held], states: Sequence[str], *, asked_s: float) -> None:
        """Takes in what `renew` answered, in the same order.

        Args:
            held: what was renewed.
            states: of their runs, or `LOST`.
            asked_s: when it was sent, on the monotonic clock.
        """
        answers: Mapping[str, str] = {each.token: state for each, state in zip(held, states, strict=True)}
        with self._changed:
            for token, state in answers.items():
                if token in self._open:
                    self._open[token].state, self._open[token].asked_s = state, asked_s

    async def confirm(self, token: str) -> bool:
        """Says whether a lease is still ours, so that a call for it may begin.

        A process that stood still (SIGSTOP, a paused virtual machine) goes on as if no time had passed, while
        others have its items. It waits here for the next renewal.
        """
        while True:
            with self._changed:
                lease = self._open.get(token)
                if lease is None or lease.is_lost:
                    return False
                if monotonic() - lease.asked_s < self._doubt_s:
                    return True
            await asyncio.sleep(LOOK_S)

    def should_stop(self, lease: Lease) -> bool:
        """Whether the thread must begin no further item of its chunk: commit what is there and give back."""
        return self._is_draining or lease.state != RunState.RUNNING

    def drain(self) -> None:
        """Begins the end of the process; may be called from a signal handler, hence takes no lock."""
        self._is_draining = True

    def wait_until_idle(self, within_s: float | None) -> bool:
        """Waits until no thread works on a chunk, without limit for None; returns whether that came true."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._open, within_s)
