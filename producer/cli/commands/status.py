"""`proctor status`: queues, workers, runs and dead items at one look."""

import json
from typing import Any

import click

from producer.cli.context import Session, pass_session
from producer.cli.errors import SCHEMA_VERSION
from producer.cli.options import command as declare
from producer.cli.wording import count, plural
from shared.names import FINAL_STATES


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
    output.table(
        ("QUEUE", "WORKERS", "QUEUED", "AT WORK", "DELAYED", "RUNS WAITING"),
        [
            (q.kind, count(q.workers), count(q.queued), count(q.handed_out), count(q.delayed), count(q.runs))
            for q in overview.queues
        ],
        right=("WORKERS", "QUEUED", "AT WORK", "DELAYED", "RUNS WAITING"),
    )
    if overview.workers:
        output.data("")
        rows = [(w.name, ", ".join(w.kinds), count(w.capacity)) for w in overview.workers]
        output.table(("WORKER", "WORKS ON", "CHUNKS AT A TIME"), rows, right=("CHUNKS AT A TIME",))
    if runs:
        output.data("")
        print_runs(output, runs)
    open_runs = sum(info.state not in FINAL_STATES for info in runs)
    output.data("")
    if open_runs and not overview.workers:
        output.warn("no worker is alive; start one with `proctor worker`")
    if overview.dead:
        output.data(f"{plural(overview.dead, 'dead item')}, see `proctor dead list`")
    kind = "embedded Redis" if connection.embedded else "Redis"
    output.data(output.paint(f"{kind} at {connection.target.display}", "dim"))
