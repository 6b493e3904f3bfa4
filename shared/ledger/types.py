"""The values that go into the ledger and come out of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class Wake(NamedTuple):
    """A wake-up for a chunk, to be published as a Celery message by whoever got it from the ledger."""

    kind: str
    """`turns`, `cases` or `queries`: the queue."""
    run: str
    """Id of the run."""
    chunk: str
    """Id of the chunk in the run."""
    items: int
    """How many items the chunk holds."""
    first: str
    """What the chunk begins with, for people who look at the queue."""


class ChunkPlan(NamedTuple):
    """What one chunk is made of."""

    first: str
    """What the chunk begins with, for people who look at the queue: a thread, `Q-15`, `case 3 · gpt-4o`."""
    parts: Sequence[Any]
    """Indexes as text; for turns (batch, thread, number of turns), one entry per thread.

    In a retry of turns a fourth value may mark with `1`, one character per turn, those that already have a
    result (`0` the others).
    """


class Opened(NamedTuple):
    """The answer to `open`."""

    status: str
    """`ok`: load it · `sealed`: the key's run is there · `busy`: another loads it · `exists`: id taken."""
    run: str
    """The run to load, or the one that stands for the idempotency key."""
    digest: str
    """Digest of the input of a sealed run, else empty."""


class ClaimedItem(NamedTuple):
    """One case or query to work on."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which nobody calls
    """Its place in the input."""
    generation: int
    """Which asking this is: 0 the load, then one more with each retry; to be given back with the result."""
    payload: bytes
    """What was loaded for it."""
    attempts: int
    """Attempts that were already made."""
    error: str
    """What the last attempt ended with."""


class ClaimedBatch(NamedTuple):
    """Turns of one thread of one run, in order."""

    run: str
    """The run they belong to; in a shared namespace not always the run of the chunk."""
    batch: str
    """Its id in that run."""
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    """How many turns it holds, those included that are decided already (see `ClaimedThread.offset`)."""
    payload: bytes
    """`shared.codecs.turn_batches.pack_batch`."""


class ClaimedThread(NamedTuple):
    """A thread that is locked for the claim."""

    thread: str
    """Its name."""
    pos: int
    """The position to commit with."""
    offset: int
    """How many turns of the first batch are decided already."""
    memento: bytes
    """Its stored state; empty for a new thread."""
    batches: list[ClaimedBatch]
    """What stands in its inbox, oldest first, at most ten batches (one, when the chunk is a suspect)."""


class Claim(NamedTuple):
    """The answer to `claim`."""

    status: str
    """`ok` · `busy` `gone` `done` `paused` `later` `alien`: nothing to do here but to publish the wakes."""
    wakes: list[Wake]
    """To be published."""
    items: list[ClaimedItem] = []  # noqa: RUF012 - never changed; a NamedTuple has no factories
    """Cases or queries that are due."""
    threads: list[ClaimedThread] = []  # noqa: RUF012 - as above
    """Threads that were free."""
    suspect: bool = False
    """The chunk has cost workers their lives: decide one turn at a time."""
    busy: int = 0
    """How many threads of the chunk are held elsewhere: give the chunk back with a delay."""
    namespace: str = ""
    """Where the threads' state lives."""


class Held(NamedTuple):
    """A lease to renew."""

    run: str
    """Id of the run."""
    chunk: str
    """Id of the chunk."""
    token: str
    """The claim token."""


class Row(NamedTuple):
    """A result of a case or a query."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which nobody calls
    """Its place in the input."""
    generation: int
    """As claimed."""
    value: bytes
    """The result."""
    dead: bool = False
    """Whether it ended in error and belongs into the dead set."""
    attempts: int = 1
    """Attempts made in all; kept in the dead set."""


class Try(NamedTuple):
    """An item that is to be tried again later."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which nobody calls
    """Its place in the input."""
    attempts: int
    """Attempts made so far."""
    not_before_ms: int
    """When it is due, epoch milliseconds of the caller's own clock."""
    error: str
    """What the last attempt ended with."""


class PartCommit(NamedTuple):
    """Decided turns of one batch; the parts of a thread follow its inbox from the front."""

    offset: int
    """Place in the batch of the first turn."""
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    """How many turns."""
    value: bytes
    """`shared.codecs.turn_batches.pack_block`."""
    dead: Sequence[int] = ()
    """Places in the batch of turns that ended in error and belong into the dead set."""


class ThreadCommit(NamedTuple):
    """All that was decided for one thread."""

    thread: str
    """Its name."""
    pos: int
    """The position as claimed."""
    memento: bytes
    """The thread's new state."""
    parts: Sequence[PartCommit]
    """What was decided, in order."""
    requests: Sequence[tuple[str, bytes]] = ()
    """`clientRequestId`s that are new to the namespace, with what they were answered."""


class Committed(NamedTuple):
    """The answer to a commit."""

    status: str
    """`ok`, or `lost`: the chunk is not this worker's any more."""
    accepted: list[bool]
    """For each row or thread whether it was written now; a thread that was not is to be claimed again."""
    state: str
    """State of the chunk's run; anything but `running` means: start nothing more and give the chunk back."""
    wakes: list[Wake]
    """To be published."""


class DeadItem(NamedTuple):
    """An entry of the dead set."""

    kind: str
    """Kind of its run."""
    generation: int
    """Which asking it was."""
    at_ms: int
    """When it ended, epoch milliseconds of Redis."""
    attempts: int
    """Attempts made, or leases that ran out."""
    code: str
    """`poison` when no worker survived it, else empty: the result says what happened."""
    payload: bytes
    """What was loaded for it; of a turn its line."""
    result: bytes
    """Its result; empty for poison."""
