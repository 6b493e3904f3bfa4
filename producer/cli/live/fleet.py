"""Prints queues, workers, runs and dead items once, for people or for programs."""

from collections.abc import Sequence
from typing import Final

from producer.cli.output import Output, printable
from producer.cli.run_lookup import counted_runs, listed, wait_reasons
from producer.cli.runs_table import print_runs
from producer.cli.session import Session
from producer.fleet_state import Overview, read_overview
from producer.service_documents import QueueState, StatusDocument, WorkerState
from producer.text import count, duration, plural
from shared.kinds import kind_named
from shared.names import FINAL_STATES
from shared.runs import RunInfo, RunStore

OPEN_AMONG: Final = 100
"""How many of the newest runs are looked at for open items."""
HEADINGS: Final = ("OPEN ITEMS", "CHUNKS QUEUED", "AT WORK", "DELAYED", "RUNS WAITING", "WORKERS")
WORKER_HEADINGS: Final = ("WORKER", "WORKS ON", "MAX CHUNKS", "LAST SEEN")
SPARE: Final = ("RUNS WAITING", "DELAYED")
"""Columns that a narrow terminal does without."""
UNITS: Final = "Open items have no result yet; queued, at work and delayed are chunks of items."


def queue_cells(queue: QueueState) -> tuple[str, ...]:
    """Writes a queue below `HEADINGS`, after its name."""
    numbers = (
        queue.open_items,
        queue.queued,
        queue.handed_out,
        queue.delayed,
        queue.runs,
        queue.workers,
    )
    return (queue.kind, *map(count, numbers))


def worker_cells(process: WorkerState) -> tuple[str, ...]:
    """Writes a worker below `WORKER_HEADINGS`."""
    heard = f"{duration(process.heard_s)} ago"
    return printable(process.name), ", ".join(process.kinds), count(process.capacity), heard


def status_document(session: Session, limit: int, store: RunStore) -> StatusDocument:
    """Looks once, for programs.

    Args:
        session: access to Redis.
        limit: most runs.
        store: reads them.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    (overview, runs), connection = _look(session, limit, store), session.access.connection
    why = wait_reasons(store, runs)
    return StatusDocument(
        redis=connection.target.display,
        embedded=connection.embedded,
        queues=overview.queues,
        workers=overview.workers,
        runs=tuple(listed(info, why.get(info.run, "")) for info in runs),
        dead=overview.dead,
    )


def print_status(session: Session, limit: int) -> None:
    """Looks once and prints it for people; see `status_document`."""
    (overview, runs), connection = _look(session, limit, session.access.store), session.access.connection
    output = session.output
    _print_queues(output, overview)
    if runs:
        output.data("")
        working = {kind_named(queue.kind) for queue in overview.queues if queue.workers}
        why = wait_reasons(session.access.store, runs) if overview.workers else {}
        print_runs(output, runs, why, worked_on=working)
    output.data("")
    session.warn_if_unwritable()
    if not overview.workers and any(info.state not in FINAL_STATES for info in runs):
        output.warn("no worker is alive; start one with `proctor worker`")
    if overview.dead:
        output.data(f"{plural(overview.dead, 'dead item')}, see `proctor dead list`")
    if any(queue.queued is None for queue in overview.queues):
        output.warn(f"the broker at {connection.broker.display} does not answer")
    kind = "embedded Redis" if connection.embedded else "Redis"
    output.data(output.paint(f"{kind} at {connection.target.display}", "dim"))
    if connection.broker != connection.target:
        output.data(output.paint(f"broker at {connection.broker.display}", "dim"))


def _look(session: Session, limit: int, store: RunStore) -> tuple[Overview, Sequence[RunInfo]]:
    newest = store.list(limit=max(limit, OPEN_AMONG))
    overview = read_overview(session.access.client, session.access.queue_lengths(), newest)
    return overview, counted_runs(store, newest[:limit])


def _print_queues(output: Output, overview: Overview) -> None:
    """Writes queues, and workers if there are any, as tables."""
    output.table(("QUEUE", *HEADINGS), map(queue_cells, overview.queues), right=HEADINGS, spare=SPARE)
    output.data(output.paint(UNITS, "dim"))
    if overview.workers:
        output.data("")
        output.table(WORKER_HEADINGS, map(worker_cells, overview.workers), right=WORKER_HEADINGS[2:])
