"""`proctor retry RUN`: puts failed items back to work; old results stay until the new ones are in."""

import click

from producer.cli.context import Session, pass_session
from producer.cli.options.global_options import command as declare
from producer.cli.options.shared_options import worker_options


@declare()
@click.argument("run")
@click.option(
    "--item",
    "items",
    multiple=True,
    metavar="ITEM",
    help="Only this item, whatever its outcome: its id (Q-06) or position (query-5); may be repeated.",
)  # fmt: skip - one option, one paragraph
@worker_options
@click.option("--detach", is_flag=True, help="Only put them back; start no workers and do not watch.")
@pass_session
def command(
    session: Session,
    *,
    run: str,
    items: tuple[str, ...],
    processes: int | None,
    in_flight: int | None,
    detach: bool,
) -> int:
    """Put the items of RUN that ended in error, or got no result, back to work and follow it.

    Workers are started here only when none is alive, and stopped at the end.
    """
    from producer.cli import work  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.item_names import find_items  # noqa: PLC0415 - same
    from producer.cli.retrying import redo  # noqa: PLC0415 - same
    from producer.cli.run_lookup import find_run  # noqa: PLC0415 - same

    info = find_run(session, run)
    positions = find_items(session.store, info, items) if items else None
    return redo(session, run, work.WorkOptions(processes, in_flight), positions=positions, detach=detach)
