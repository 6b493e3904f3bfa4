"""How work on an item ends, the same for models, judges, checks, embeddings, queries and live turns.

    Done        with a result; a failure of the upstream is one, too
    Deferred    it is to be done later: the item is parked, and its slot is free for others
    EndRun      without a result, and its run ends before the others have theirs
    Released    without a result: the chunk stops, or the lease is lost
    Broken      the engine raised

`Deferred` and `EndRun` are raised where they arise, in the gate, the cache, the budget or a retry, so that
nothing on the way has to pass them on; the pool of items (`worker.executors.claim_loop`) catches them.
"""

from typing import Generic, NamedTuple, TypeAlias, TypeVar

from shared.codecs.parked_items import ParkedState, WaitReason
from shared.names import RunState

R = TypeVar("R")


class Done(NamedTuple, Generic[R]):
    """The work has been done."""

    result: R
    """What its engine made of it."""


class Deferred(Exception):  # noqa: N818 - an outcome, which ends the work without being an error
    """The work is to be done later; nothing was sent, or what was sent is to be sent again.

    Args:
        due_ms: time when to do it, epoch milliseconds of our clock.
        state: why it waits.
    """

    def __init__(self, due_ms: int, state: ParkedState) -> None:
        super().__init__(due_ms, state)
        self.due_ms = due_ms
        self.state = state

    @property
    def reason(self) -> WaitReason:
        """What is waited for."""
        return self.state.reason


class EndRun(Exception):  # noqa: N818 - as above
    """The work has no result, and its run is to end; a resumed run does it again.

    Args:
        state: how the run ends.
        why: for people.
    """

    def __init__(self, state: RunState, why: str) -> None:
        super().__init__(state, why)
        self.state = state
        self.why = why


class Released:
    """The work was left: its chunk stops, or it had not begun."""


class Broken(NamedTuple):
    """The engine failed on it."""

    error: Exception
    """The exception that the engine raised."""


WorkOutcome: TypeAlias = Done[R] | Deferred | EndRun | Released | Broken
