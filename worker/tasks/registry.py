"""Lists what each kind of chunk needs of a process: who works on it, and how many at a time.

A kind that is to come adds one line here and one handler beside `turns.py`. Kinds that wait for upstreams
share one event loop per process, which their handlers start with it; the pool's threads then only wait.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from shared.names import Kind
from shared.runs import RunStore
from worker.process import WorkerProcess
from worker.tasks.chunk import Handler
from worker.tasks.turns import TurnsHandler

MOST_THREADS: Final = 64
"""Threads of Celery's pool: each holds one chunk, and a chunk holds many items."""


class Work(NamedTuple):
    """How one kind is worked on."""

    make: Callable[[WorkerProcess, RunStore], Handler]
    """Makes the handler of a process."""
    slots: int
    """Chunks that one process works on at a time, at most."""


WORK: Final[dict[Kind, Work]] = {
    # Deciding turns is CPU work: a second chunk covers Redis' answers, a third would wait and hold memory.
    Kind.TURNS: Work(TurnsHandler, slots=2),
}
"""The kinds that this version works on."""


def slots_for(kinds: Iterable[Kind], in_flight: int) -> dict[Kind, int]:
    """Tells how many chunks of each kind a process works on at a time.

    Args:
        kinds: what the process is to work on; kinds without a handler are left out.
        in_flight: items a process may have at work at once; a chunk has at least one.

    >>> slots_for([Kind.TURNS], in_flight=100)
    {<Kind.TURNS: 'turns'>: 2}
    >>> slots_for([Kind.TURNS], in_flight=1)
    {<Kind.TURNS: 'turns'>: 1}
    """
    most = min(in_flight, MOST_THREADS)
    return {kind: min(most, WORK[kind].slots) for kind in kinds if kind in WORK}


def threads_for(slots: dict[Kind, int]) -> int:
    """Tells how many threads Celery's pool needs, so that no kind waits for another's slots.

    >>> threads_for({Kind.TURNS: 2})
    2
    """
    return min(MOST_THREADS, sum(slots.values()))
