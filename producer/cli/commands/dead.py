"""`proctor dead list|show|retry|discard|purge`: items that ended in error."""

from typing import TYPE_CHECKING

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import group
from producer.cli.options.option_groups import option_group
from producer.cli.options.shared_options import WorkerOptions
from producer.cli.session import Session, pass_session
from producer.text import plural

if TYPE_CHECKING:
    from producer.service_documents import DeadDiscarded


@group()
def command() -> None:
    """Inspect, retry or discard failed items: those that ended in error.

    An item leaves this list when a retry gives it a result, and with its run.
    """


@command.command("list")
@click.argument("run", shell_complete=complete_runs, required=False)
@click.option(
    "--first", "limit", type=click.IntRange(1), default=50, show_default=True, help="Items to list."
)
@pass_session
def list_dead(session: Session, *, run: str | None, limit: int) -> None:
    """List failed items: of RUN in input order, else of all runs, the newest first."""
    from producer import dead_set  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli import run_lookup  # noqa: PLC0415 - same

    if run is not None:
        run = run_lookup.find_run(session, run).run
    dead = list(dead_set.read_dead(session.access.client, run=run or "", first=limit))
    if session.options.json:
        session.output.document(dead_set.dead_document(dead))
    elif dead:
        session.output.table(
            ("RUN", "ITEM", "AT", "ATTEMPTS", "CODE", "MESSAGE"),
            [
                (
                    e.place.run,
                    e.name.label,
                    run_lookup.local_time(e.item.at_ms),
                    str(e.item.attempts),
                    e.error[0],
                    f"HTTP {e.status}: {e.error[1]}" if e.status else e.error[1],
                )
                for e in dead
            ],
            right=("ATTEMPTS",),
        )
    else:
        session.output.note("nothing is dead here")


@command.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("item")
@pass_session
def show(session: Session, *, run: str, item: str) -> None:
    """Show ITEM of RUN as JSON: its input, its result, and its error.

    ITEM is its id in the file (Q-06), or its position (query-5).
    """
    from producer import dead_set  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli import run_lookup  # noqa: PLC0415 - same

    run = run_lookup.find_run(session, run).run
    [found] = dead_set.find_dead([*dead_set.read_dead(session.access.client, run=run)], [item], run)
    session.output.document(dead_set.item_document(found), indent=None if session.options.json else 2)


@command.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("items", nargs=-1, metavar="[ITEM...]")
@option_group("workers", WorkerOptions)
@click.option("--detach", is_flag=True, help="Only put them back; start no workers and do not watch.")
@pass_session
def retry(
    session: Session,
    *,
    run: str,
    items: tuple[str, ...],
    workers: WorkerOptions,
    detach: bool,
) -> int:
    """Retry failed items of RUN: those named by id or position, else all of them."""
    from producer import dead_set  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli import presenters, run_lookup, work  # noqa: PLC0415 - same

    run = run_lookup.find_run(session, run).run
    dead = [*dead_set.read_dead(session.access.client, run=run)]
    chosen = dead_set.find_dead(dead, items, run) if items else dead
    positions = sorted({int(entry.place.index) for entry in chosen})
    options = work.WorkOptions(presenters.presenter_of(session), workers.processes, workers.in_flight)
    return work.retry(session, run, options, positions=positions, detach=detach)


@command.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("items", nargs=-1, required=True, metavar="ITEM...")
@pass_session
def discard(session: Session, *, run: str, items: tuple[str, ...]) -> None:
    """Discard failed items of RUN, named by id or position; their results are kept."""
    from producer import dead_set  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli import run_lookup  # noqa: PLC0415 - same

    run = run_lookup.find_run(session, run).run
    found = dead_set.find_dead([*dead_set.read_dead(session.access.client, run=run)], items, run)
    _tell_gone(session, dead_set.discard(session.access.client, [entry.place for entry in found]))


@command.command()
@click.argument("run", shell_complete=complete_runs, required=False)
@pass_session
def purge(session: Session, *, run: str | None) -> None:
    """Discard all failed items, or all of RUN; their results are kept."""
    from producer import dead_set  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli import run_lookup  # noqa: PLC0415 - same

    if run is not None:
        run = run_lookup.find_run(session, run).run
    places = [entry.place for entry in dead_set.read_dead(session.access.client, run=run or "")]
    if places:
        session.confirm(f"take {plural(len(places), 'dead item')} off the list?")
    _tell_gone(session, dead_set.discard(session.access.client, places))


def _tell_gone(session: Session, gone: "DeadDiscarded") -> None:
    """Prints how many entries were removed."""
    if session.options.json:
        session.output.document(gone)
    else:
        session.output.data(f"{plural(gone.discarded, 'item')} discarded")
