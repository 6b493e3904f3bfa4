"""The Celery tasks, one for each kind: each executes one chunk.

They are registered when the app is made, for `celery inspect` and Flower, and work once the process has set
the runner.
"""

from collections.abc import Callable

from celery import Celery

from shared.kinds import Kind
from shared.ledger import Wake
from worker.executors.chunk import ChunkRunner, ChunkSummary
from worker.kinds import executed_kinds

_runners: list[ChunkRunner] = []


def register_tasks(app: Celery) -> None:
    """Adds a task for each kind that this version executes."""
    for kind in executed_kinds():
        app.task(name=kind.task)(_task_of(kind))


def set_runner(runner: ChunkRunner) -> None:
    """Sets what executes the chunks of this process."""
    _runners[:] = [runner]


def _task_of(kind: Kind) -> Callable[..., ChunkSummary]:
    def execute_chunk(*, run: str, chunk: str, items: int = 0, first: str = "") -> ChunkSummary:
        return _runners[0].run(Wake(kind.name, run, chunk, items, first))

    return execute_chunk
