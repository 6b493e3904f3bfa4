"""A worker process that a certain message kills: `python -m tests.support.poisoned_worker`, as `-m worker`.

No real turn does such a thing, so the step of the flow that looks at messages is replaced before the worker
starts. Everything else is the worker as it is.
"""

import os
import sys
from typing import Any, Final

from worker.breakpoint import thread_decider
from worker.breakpoint.orchestrator import run_turn
from worker.start import start

POISON: Final = "this message kills whoever reads it"
DEATH: Final = 86
"""Exit code of a process that has read it."""


def run_poisoned_turn(turn: Any, *arguments: Any, **options: Any) -> Any:
    """Decides a turn, or dies."""
    if turn.message == POISON:
        os._exit(DEATH)
    return run_turn(turn, *arguments, **options)


if __name__ == "__main__":
    vars(thread_decider)["run_turn"] = run_poisoned_turn
    sys.exit(start(sys.argv[1:]))
