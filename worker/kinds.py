"""How a worker process executes each kind: by which executor, and how many chunks at a time.

This is all that differs between kinds in the worker. Further kinds are registered as in `shared.kinds`, by a
module that `PROCTOR_KINDS` names; this file has no heavy imports. Kinds that wait for upstreams share one
event loop per process; their threads of the pool only wait, so they use all remaining threads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from shared.kinds import CASES, QUERIES, TURNS, Kind
from worker.in_flight_limit import DECIDING

if TYPE_CHECKING:
    from collections.abc import Iterable

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


class WorkerKind(Protocol):
    """How one kind is executed."""

    kind: ClassVar[Kind]
    slots: ClassVar[int | None]
    """Chunks that one process executes at a time, at most; None: as many as there are threads left."""

    def make_executor(self, process: WorkerProcess, store: RunStore, /) -> Executor:
        """Makes a process's executor."""

    def preload(self) -> None:
        """Imports what a process uses for its first chunk; a supervisor does so before it forks."""


class TurnWork:
    """Turns."""

    kind: ClassVar = TURNS
    slots: ClassVar[int | None] = DECIDING
    """Where a model answers served turns, each is a chunk that waits for it, see `PROCTOR_TURN_SLOTS`."""

    def make_executor(self, process: WorkerProcess, store: RunStore, /) -> Executor:
        from worker.executors.turns import make_executor

        return make_executor(process, store)

    def preload(self) -> None:
        import worker.executors.turns  # noqa: F401 - for the processes that are forked


class CaseWork:
    """Cases."""

    kind: ClassVar = CASES
    slots: ClassVar[int | None] = None

    def make_executor(self, process: WorkerProcess, store: RunStore, /) -> Executor:
        from worker.executors.cases import make_executor

        return make_executor(process, store)

    def preload(self) -> None:
        import worker.executors.cases
        import worker.upstream.model_clients  # noqa: F401 - for the processes that are forked


class QueryWork:
    """Queries."""

    kind: ClassVar = QUERIES
    slots: ClassVar[int | None] = None

    def make_executor(self, process: WorkerProcess, store: RunStore, /) -> Executor:
        from worker.executors.queries import make_executor

        return make_executor(process, store)

    def preload(self) -> None:
        import worker.executors.queries  # noqa: F401 - for the processes that are forked


_BUILT_IN: Final[tuple[WorkerKind, ...]] = (TurnWork(), CaseWork(), QueryWork())
_registry: Final[dict[Kind, WorkerKind]] = {each.kind: each for each in _BUILT_IN}


def register(kind: WorkerKind) -> None:
    """Adds how a kind is executed, before the app is made.

    Raises:
        ValueError: the kind is executed by another class.
    """
    if type(_registry.setdefault(kind.kind, kind)) is not type(kind):
        raise ValueError(f"{kind.kind} has another executor")


def executed_kinds() -> tuple[Kind, ...]:
    """Returns the kinds that this version executes.

    >>> [kind.name for kind in executed_kinds()][:3]
    ['turns', 'cases', 'queries']
    """
    return tuple(_registry)


def make_executor(kind: Kind, process: WorkerProcess, store: RunStore) -> Executor:
    """Makes a process's executor of a kind."""
    return _registry[kind].make_executor(process, store)


def preload(kinds: Iterable[Kind]) -> None:
    """Imports what a process needs for its first chunk; a supervisor does so before it forks."""
    for name in WORKER_MODULES:
        import_module(name)
    for kind in kinds:
        if kind in _registry:
            _registry[kind].preload()


def slots_for(kinds: Iterable[Kind], in_flight: int, turn_slots: int | None = None) -> dict[Kind, int]:
    """Computes how many chunks of each kind a process executes at a time.

    Args:
        kinds: of the process; those without an executor are left out.
        in_flight: items that may be in flight in a process; a chunk has at least one.
        turn_slots: chunks of turns that may wait for answers of models; as many may stand in line, and others
            are decided beside them. None: as declared.

    >>> slots_for([TURNS, QUERIES], in_flight=100)
    {Kind(name='turns'): 2, Kind(name='queries'): 62}
    >>> slots_for([TURNS], in_flight=1), slots_for([TURNS], in_flight=100, turn_slots=32)
    ({Kind(name='turns'): 1}, {Kind(name='turns'): 66})
    """
    known = [kind for kind in dict.fromkeys(kinds) if kind in _registry]
    fixed = {kind: slots for kind in known if (slots := _registry[kind].slots) is not None}
    share = max(1, (MOST_THREADS - sum(fixed.values())) // max(1, len(known) - len(fixed)))
    if turn_slots is not None and TURNS in fixed:
        fixed[TURNS] = DECIDING + 2 * turn_slots
    return {kind: min(in_flight, fixed.get(kind, share)) for kind in known}


def threads_for(slots: dict[Kind, int]) -> int:
    """Computes how many threads Celery's pool needs, so that no kind waits for another's slots.

    >>> threads_for({TURNS: 2})
    2
    """
    return sum(slots.values())
