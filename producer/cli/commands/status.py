"""`proctor status`: queues, workers, runs and dead items."""

from contextlib import suppress

import click

from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session


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
    from producer.cli.live.fleet import print_status, status_document  # noqa: PLC0415 - start-up: `--help` must not load redis

    if is_watched:
        from producer.cli.live.fleet_view import watch_fleet  # noqa: PLC0415 - start-up: only this needs it

        # A Redis that goes away is waited for, one that never was there is not.
        store = session.access.impatient_store
        with suppress(KeyboardInterrupt):  # that is how looking ends
            watch_fleet(session.output, lambda: status_document(session, limit, store))
    elif session.options.json:
        session.output.document(status_document(session, limit, session.access.store))
    else:
        print_status(session, limit)
