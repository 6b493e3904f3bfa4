"""The argument and result types of ledger calls."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

DAY_MS: Final = 24 * 3600 * 1000


class Wake(NamedTuple):
    """A wake-up for a chunk, to be published as a Celery message by the caller of the ledger."""

    kind: str
    """`turns`, `cases` or `queries`: the queue."""
    run: str
    """Id of the run."""
    chunk: str
    """Id of the chunk in the run."""
    items: int
    """How many items the chunk holds."""
    first: str
    """Name of the first item, shown in Flower."""


class ChunkPlan(NamedTuple):
    """The contents of one chunk."""

    first: str
    """Name of the first item, shown in Flower: a thread, `Q-15`, `case 3 · gpt-4o`."""
    parts: Sequence[Any]
    """Indexes as text; for turns (batch, thread, number of turns), one entry per thread.

    In a retry of turns a fourth value may mark with `1`, one character per turn, those that already have a
    result (`0` the others).
    """


class Opened(NamedTuple):
    """The answer to `open`."""

    status: str
    """`ok`: load it · `sealed`: the key has a run · `busy`: another loader has it · `exists`: id taken."""
    run: str
    """The run to load, or the one of the idempotency key."""
    digest: str
    """Digest of the input of a sealed run, else empty."""


class ClaimedItem(NamedTuple):
    """One case or query to work on."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which is never called
    """Its place in the input."""
    generation: int
    """0 for the load, incremented by each retry; to be returned with the result."""
    payload: bytes
    """Its stored input."""
    attempts: int
    """Attempts made so far."""
    parked_state: str
    """Why it waits, see `shared.codecs.parked_items`."""


class ClaimedBatch(NamedTuple):
    """Turns of one thread of one run, in order."""

    run: str
    """The run they belong to; in a shared namespace not always the run of the chunk."""
    batch: str
    """Its id in that run."""
    count: int  # type: ignore[assignment]  # hides tuple.count, which is never called
    """How many turns it contains, including decided ones (see `ClaimedThread.offset`)."""
    payload: bytes
    """`shared.codecs.turn_batches.pack_batch`."""
    is_anew: bool = False
    """Whether models are asked again, whatever answers are stored."""


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
    """Its inbox, oldest first, at most ten batches (one if the chunk is a suspect)."""


class Claim(NamedTuple):
    """The answer to `claim`."""

    status: str
    """With every status but `ok` there is nothing to do but to publish the wakes.

    `ok`: the chunk is leased · `gone`: nothing is left of it here · `busy`: leased by another worker, or not
    published · `paused`: its run is · `alien`: its run has an unknown layout · `later`: postponed, because
    nothing is due yet or the worker holds another suspect · `done`: all was decided, and it is closed.
    """
    wakes: list[Wake]
    """To be published."""
    items: list[ClaimedItem] = []  # noqa: RUF012 - never changed; a NamedTuple has no factories
    """Cases or queries that are due."""
    threads: list[ClaimedThread] = []  # noqa: RUF012 - as above
    """Threads that were free."""
    suspect: bool = False
    """Workers died while they held the chunk: decide one turn at a time."""
    busy_threads: int = 0
    """How many threads of the chunk are held elsewhere: give the chunk back with a delay."""
    namespace: str = ""
    """The namespace of the threads' state."""
    is_anew: bool = False
    """Whether models are asked again about the items, whatever answers are stored; batches have their own."""
    snapshot: bytes = b""
    """The settings of a run that is a part of a stream; empty for others, whose chunks are many."""


class HeldLease(NamedTuple):
    """A lease to renew."""

    run: str
    """Id of the run."""
    chunk: str
    """Id of the chunk."""
    token: str
    """The claim token."""


class Row(NamedTuple):
    """A result of a case or a query."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which is never called
    """Its place in the input."""
    generation: int
    """As claimed."""
    value: bytes
    """The result."""
    dead: bool = False
    """Whether it ended in error and is added to the dead set."""
    attempts: int = 1
    """Attempts made in all; kept in the dead set."""


class Try(NamedTuple):
    """A parked item, to be tried again later."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which is never called
    """Its place in the input."""
    attempts: int
    """Attempts made so far."""
    not_before_ms: int
    """Time when it is due, epoch milliseconds of the caller's own clock."""
    parked_state: str
    """Why it waits, see `shared.codecs.parked_items`."""


class PartCommit(NamedTuple):
    """Decided turns of one batch; the parts of a thread follow its inbox from the front."""

    offset: int
    """Place in the batch of the first turn."""
    count: int  # type: ignore[assignment]  # hides tuple.count, which is never called
    """How many turns."""
    value: bytes
    """`shared.codecs.turn_batches.pack_block`."""
    dead: Sequence[int] = ()
    """Places in the batch of turns that ended in error and belong into the dead set."""


class ThreadCommit(NamedTuple):
    """The decided turns of one thread."""

    thread: str
    """Its name."""
    pos: int
    """The position as claimed."""
    memento: bytes
    """The thread's new state."""
    parts: Sequence[PartCommit]
    """Decided parts of batches, in order."""
    requests: Sequence[tuple[str, bytes]] = ()
    """`clientRequestId`s that are new to the namespace, with their answers."""


class Committed(NamedTuple):
    """The answer to a commit."""

    status: str
    """`ok`, or `lost`: this worker no longer holds the chunk."""
    accepted: list[bool]
    """For each row or thread whether it was written; a thread that was not has to be claimed again."""
    state: str
    """State of the chunk's run; anything but `running` means: start no more items and give the chunk back."""
    wakes: list[Wake]
    """To be published."""


class Keep(NamedTuple):
    """How much stays of turns that `proctor serve` took."""

    days: int = 90
    """Counters of an hour; 0: for ever."""
    turns: int = 100_000
    """The latest turns, in full, with the requests that they answered."""
    turns_ms: int = DAY_MS
    """The same by age."""


class DeadItem(NamedTuple):
    """An entry of the dead set."""

    kind: str
    """Kind of its run."""
    generation: int
    """Generation of the item."""
    at_ms: int
    """Time when the item ended, epoch milliseconds of Redis."""
    attempts: int
    """Attempts made, or expired leases."""
    code: str
    """`poison` if no worker survived it, else empty: the result contains the error."""
    payload: bytes
    """Its input; for a turn its line."""
    result: bytes
    """Its result; empty for poison."""
