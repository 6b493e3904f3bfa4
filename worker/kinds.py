"""Declares how a worker process executes each kind: by which executor, and how many chunks at a time.

This is all that differs between kinds in the worker. Further kinds are registered as in `shared.kinds`, by a
module that `PROCTOR_KINDS` names; this file has no heavy imports. Kinds that wait for upstreams share one
event loop per process; their threads of the pool only wait, so they use all remaining threads.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from shared.kinds import CASES, QUERIES, TURNS, Kind

if TYPE_CHECKING:
    from shared.runs import RunStore
    from worker.executors.chunk import Executor
    from worker.process import WorkerProcess

MOST_THREADS: Final = 64
"""Threads of Celery's pool: each holds one chunk, and a chunk holds many items."""

WORKER_MODULES: Final = (
    "billiard.pool",
    "celery.app.amqp",
    "celery.app.control",
    "celery.app.events",
    "celery.app.log",
    "celery.apps.worker",
    "celery.backends.base",
    "celery.concurrency.thread",
    "celery.events",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer",
    "celery.worker.consumer.delayed_delivery",
    "celery.worker.strategy",
    "kombu.pidbox",
    "kombu.transport.redis",
    "worker.app",
    "worker.consumer",
)
"""What every worker process imports; Celery does it by name when it starts."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How one kind is executed."""

    module: str
    """Has `make_executor(process, store)`; imported by processes that execute the kind, and by no others."""
    uses: tuple[str, ...] = ()
    """Modules that it imports when it executes its first chunk."""
    slots: int | None = None
    """Chunks that one process executes at a time, at most; None: as many as there are threads left."""


_registry: Final[dict[Kind, Execution]] = {
    # Deciding turns is CPU work: a second chunk covers Redis' answers, a third would wait and hold memory.
    TURNS: Execution("worker.executors.turns", slots=2),
    CASES: Execution(
        "worker.executors.cases", uses=("shared.upstream.http_session", "worker.upstream.model_clients")
    ),
    QUERIES: Execution("worker.executors.queries", uses=("shared.upstream.http_session",)),
}


def register(kind: Kind, execution: Execution) -> None:
    """Adds how a kind is executed, before the app is made; an equal declaration changes nothing.

    Raises:
        ValueError: the kind has another declaration.
    """
    if _registry.setdefault(kind, execution) != execution:
        raise ValueError(f"{kind} has another executor")


def executed_kinds() -> tuple[Kind, ...]:
    """Returns the kinds that this version executes.

    >>> [kind.name for kind in executed_kinds()][:3]
    ['turns', 'cases', 'queries']
    """
    return tuple(_registry)


def make_executor(kind: Kind, process: "WorkerProcess", store: "RunStore") -> "Executor":
    """Makes a process's executor of a kind."""
    make: Callable[[WorkerProcess, RunStore], Executor]
    make = import_module(_registry[kind].module).make_executor
    return make(process, store)


def modules_of(kinds: Iterable[Kind]) -> list[str]:
    """Lists what a process needs for its first chunk; a supervisor imports it before it forks."""
    own = [execution for kind in kinds if (execution := _registry.get(kind))]
    return [*WORKER_MODULES, *(name for each in own for name in (each.module, *each.uses))]


def slots_for(kinds: Iterable[Kind], in_flight: int) -> dict[Kind, int]:
    """Computes how many chunks of each kind a process executes at a time.

    Args:
        kinds: of the process; those without an executor are left out.
        in_flight: items that may be in flight in a process; a chunk has at least one.

    >>> slots_for([TURNS, QUERIES], in_flight=100)
    {Kind(name='turns'): 2, Kind(name='queries'): 62}
    >>> slots_for([TURNS], in_flight=1)
    {Kind(name='turns'): 1}
    """
    known = [kind for kind in dict.fromkeys(kinds) if kind in _registry]
    fixed = {kind: slots for kind in known if (slots := _registry[kind].slots) is not None}
    share = (MOST_THREADS - sum(fixed.values())) // max(1, len(known) - len(fixed))
    return {kind: min(in_flight, fixed.get(kind, share)) for kind in known}


def threads_for(slots: dict[Kind, int]) -> int:
    """Computes how many threads Celery's pool needs, so that no kind waits for another's slots.

    >>> threads_for({TURNS: 2})
    2
    """
    return min(MOST_THREADS, sum(slots.values()))
