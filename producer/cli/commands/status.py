"""`proctor status`: queues, workers, runs and dead items at one look."""

import json
from typing import TYPE_CHECKING, Any

import click

from producer.cli.context import Session, pass_session
from producer.cli.errors import SCHEMA_VERSION
from producer.cli.options import command as declare
from producer.cli.output import Output
from producer.cli.wording import count, plural
from shared.names import FINAL_STATES

if TYPE_CHECKING:
    from producer.cli.fleet import Overview


@declare()
@click.option(
    "--runs", "limit", type=click.IntRange(0, 1000), default=5, show_default=True, help="Runs to list."
)
@pass_session
def command(session: Session, *, limit: int) -> None:
    """Show queues, workers, the last runs and how many items are dead."""
    from producer.cli.fleet import read_overview  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.listing import print_runs, run_as_dict  # noqa: PLC0415 - same

    overview = read_overview(session.client, session.broker_client)
    runs = session.store.list(limit=limit) if limit else []
    connection, output = session.connection, session.output
    if session.options.json:
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "redis": connection.target.display,
            "embedded": connection.embedded,
            "queues": [queue._asdict() for queue in overview.queues],
            "workers": [worker._asdict() for worker in overview.workers],
            "runs": [run_as_dict(info) for info in runs],
            "dead": overview.dead,
            "exit": 0,
        }
        output.data(json.dumps(document))
        return
    _print_queues(output, overview)
    if runs:
        output.data("")
        print_runs(output, runs)
    output.data("")
    if not overview.workers and any(info.state not in FINAL_STATES for info in runs):
        output.warn("no worker is alive; start one with `proctor worker`")
    if overview.dead:
        output.data(f"{plural(overview.dead, 'dead item')}, see `proctor dead list`")
    kind = "embedded Redis" if connection.embedded else "Redis"
    output.data(output.paint(f"{kind} at {connection.target.display}", "dim"))


def _print_queues(output: Output, overview: "Overview") -> None:
    """Writes queues, and workers if there are any, as tables."""
    numbers = ("WORKERS", "QUEUED", "AT WORK", "DELAYED", "RUNS WAITING")
    rows = [
        (q.kind, *map(count, (q.workers, q.queued, q.handed_out, q.delayed, q.runs))) for q in overview.queues
    ]
    output.table(("QUEUE", *numbers), rows, right=numbers)
    if overview.workers:
        output.data("")
        found = [(w.name, ", ".join(w.kinds), count(w.capacity)) for w in overview.workers]
        output.table(("WORKER", "WORKS ON", "CHUNKS AT A TIME"), found, right=("CHUNKS AT A TIME",))
