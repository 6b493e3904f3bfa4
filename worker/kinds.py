"""Lists what each kind of chunk needs of a process: who works on it, and how many at a time.

A kind that is to come adds one line here and one handler beside `turns.py`. Kinds that wait for upstreams
share one event loop per process; the pool's threads then only wait, so they take what threads there are.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Final, NamedTuple

from shared.kinds import CASES, QUERIES, TURNS, Kind
from shared.runs import RunStore
from worker.executors.chunk import Executor
from worker.process import WorkerProcess

MOST_THREADS: Final = 64
"""Threads of Celery's pool: each holds one chunk, and a chunk holds many items."""


class Work(NamedTuple):
    """How one kind is worked on."""

    module: str
    """Has `make_executor(process, store)`; imported by processes that work on the kind, and by no others."""
    slots: int | None
    """Chunks that one process works on at a time, at most; None: as many as there are threads left."""

    def make(self, process: WorkerProcess, store: RunStore) -> Executor:
        """Makes the handler of a process."""
        make: Callable[[WorkerProcess, RunStore], Executor] = import_module(self.module).make_executor
        return make(process, store)


WORK: Final[dict[Kind, Work]] = {
    # Deciding turns is CPU work: a second chunk covers Redis' answers, a third would wait and hold memory.
    TURNS: Work("worker.executors.turns", slots=2),
    CASES: Work("worker.executors.cases", slots=None),
    QUERIES: Work("worker.executors.queries", slots=None),
}
"""The kinds that this version works on."""


def slots_for(kinds: Iterable[Kind], in_flight: int) -> dict[Kind, int]:
    """Tells how many chunks of each kind a process works on at a time.

    Args:
        kinds: what the process is to work on; kinds without a handler are left out.
        in_flight: items a process may have at work at once; a chunk has at least one.

    >>> slots_for([TURNS, QUERIES], in_flight=100)
    {Kind(name='turns'): 2, Kind(name='queries'): 62}
    >>> slots_for([TURNS], in_flight=1)
    {Kind(name='turns'): 1}
    """
    known = [kind for kind in dict.fromkeys(kinds) if kind in WORK]
    fixed = {kind: slots for kind in known if (slots := WORK[kind].slots) is not None}
    share = (MOST_THREADS - sum(fixed.values())) // max(1, len(known) - len(fixed))
    return {kind: min(in_flight, fixed.get(kind, share)) for kind in known}


def threads_for(slots: dict[Kind, int]) -> int:
    """Tells how many threads Celery's pool needs, so that no kind waits for another's slots.

    >>> threads_for({TURNS: 2})
    2
    """
    return min(MOST_THREADS, sum(slots.values()))
