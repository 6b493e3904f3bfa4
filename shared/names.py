"""Names used by producer and worker: states and outcomes."""

from enum import StrEnum
from typing import Final

DISTRIBUTION: Final = "proctor"
ENVIRONMENT_PREFIX: Final = "PROCTOR_"
SERVED_PREFIX: Final = "served-"
"""What the ids of runs begin with that `proctor serve` makes of turns; they last for milliseconds."""


class RunState(StrEnum):
    """The states of a run; diagram in docs/architecture.md."""

    LOADING = "loading"
    """Its items are being written; nothing is published yet."""
    RUNNING = "running"
    """Sealed; chunks are handed out."""
    PAUSED = "paused"
    """Sealed; nothing new is handed out until `resume`."""
    CANCELLING = "cancelling"
    """Open chunks are being dropped; ends in one of the three states below `FINISHED`."""
    FINISHED = "finished"
    """Every item has a result."""
    CANCELLED = "cancelled"
    """Ended by a user."""
    ABORTED = "aborted"
    """The upstream was unreachable or refused our credentials."""
    INCOMPLETE = "incomplete"
    """The cost cap or the time limit ended it."""


FINAL_STATES: Final = frozenset(
    {RunState.FINISHED, RunState.CANCELLED, RunState.ABORTED, RunState.INCOMPLETE}
)
"""States in which no commit is accepted and the run's retention has begun."""


class Outcome(StrEnum):
    """How one item ended. A verdict is not a failure: `failed` is a completed item."""

    PASSED = "passed"
    """Judged, and good."""
    FAILED = "failed"
    """Judged, and not good."""
    ERROR = "error"
    """Could not be judged: no answer, conflict, poison; see the item's error code."""
    SKIPPED = "skipped"
    """Not judged: the run ended before (budget, cancel)."""
    DECIDED = "decided"
    """A turn that was classified."""
