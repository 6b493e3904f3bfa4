"""`proctor status`: queues, workers, runs and dead items."""

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from producer.cli.error_exit import SCHEMA_VERSION
from producer.cli.options.global_options import command as declare
from producer.cli.output import Output
from producer.cli.session import Session, pass_session
from producer.text import count, duration, plural
from shared.kinds import kind_named
from shared.names import FINAL_STATES

if TYPE_CHECKING:
    from producer.cli.live.fleet import Overview
    from shared.runs import RunStore


@declare()
@click.option(
    "--runs", "limit", type=click.IntRange(0, 1000), default=5, show_default=True, help="Runs to list."
)
@click.option("--watch", "is_watched", is_flag=True, help="Refresh every second, until Ctrl-C.")
@pass_session
def command(session: Session, *, limit: int, is_watched: bool) -> None:
    """Show queues, workers, the last runs and the number of failed items.

    With --watch the fleet and the open runs are updated continuously: in place on a terminal, as lines
    elsewhere, and with --json as JSON Lines.
    """
    if is_watched:
        from producer.cli.live.fleet_view import watch_fleet  # noqa: PLC0415 - start-up: `--help` must not load redis

        store = session.impatient_store  # a Redis that goes away is waited for, one that never was there not
        with suppress(KeyboardInterrupt):  # that is how looking ends
            watch_fleet(session.output, lambda: _document(session, limit, store))
        return
    output = session.output
    if session.options.json:
        output.data(json.dumps(_document(session, limit, session.store)))
    else:
        _tell(session, limit)


def _document(session: Session, limit: int, store: "RunStore") -> dict[str, Any]:
    """Returns a snapshot as JSON."""
    from producer.cli.live.fleet import OPEN_AMONG, read_overview  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.run_lookup import run_as_dict, wait_reasons  # noqa: PLC0415 - same

    newest = store.list(limit=max(limit, OPEN_AMONG))
    overview, runs = read_overview(session.client, session.queue_lengths(), newest), newest[:limit]
    reasons_by_run, connection = wait_reasons(store, runs), session.connection
    return {
        "schema_version": SCHEMA_VERSION,
        "redis": connection.target.display,
        "embedded": connection.embedded,
        "queues": [queue._asdict() for queue in overview.queues],
        "workers": [worker._asdict() for worker in overview.workers],
        "runs": [run_as_dict(info, reasons_by_run.get(info.run, "")) for info in runs],
        "dead": overview.dead,
        "exit": 0,
    }


def _tell(session: Session, limit: int) -> None:
    """Prints a snapshot."""
    from producer.cli.live.fleet import OPEN_AMONG, read_overview  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.run_lookup import wait_reasons  # noqa: PLC0415 - same
    from producer.cli.runs_table import print_runs  # noqa: PLC0415 - same

    newest = session.store.list(limit=max(limit, OPEN_AMONG))
    overview, runs = read_overview(session.client, session.queue_lengths(), newest), newest[:limit]
    connection, output = session.connection, session.output
    _print_queues(output, overview)
    if runs:
        output.data("")
        working = {kind_named(queue.kind) for queue in overview.queues if queue.workers}
        why = wait_reasons(session.store, runs) if overview.workers else {}
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


def _print_queues(output: Output, overview: "Overview") -> None:
    """Writes queues, and workers if there are any, as tables."""
    from producer.cli.live.fleet import FIELDS, HEADINGS, SPARE, UNITS  # noqa: PLC0415 - start-up: `--help` must not load redis

    rows = [(queue.kind, *(count(getattr(queue, name)) for name in FIELDS)) for queue in overview.queues]
    output.table(("QUEUE", *HEADINGS), rows, right=HEADINGS, spare=SPARE)
    output.data(output.paint(UNITS, "dim"))
    if overview.workers:
        output.data("")
        found = [
            (w.name, ", ".join(w.kinds), count(w.capacity), f"{duration(w.heard_s)} ago")
            for w in overview.workers
        ]
        columns = ("WORKER", "WORKS ON", "MAX CHUNKS", "LAST SEEN")
        output.table(columns, found, right=columns[2:])
