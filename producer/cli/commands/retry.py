"""`proctor retry RUN`: puts failed items back to work; old results stay until the new ones are in."""

import os

import click

from producer.cli.completions import complete_items, complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.options.option_groups import option_group
from producer.cli.options.shared_options import WorkerOptions, notify_option
from producer.cli.session import Session, pass_session
from shared.errors import UsageError


@declare()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "--item",
    "items",
    multiple=True,
    metavar="ITEM",
    shell_complete=complete_items,
    help="Only this item, whatever its outcome: its id, such as Q-06; may be repeated.",
)  # fmt: skip - one option, one paragraph
@click.option("--cached", is_flag=True, help="With --item: use stored answers of models where there are any.")
@option_group("workers", WorkerOptions)
@click.option("--detach", is_flag=True, help="Only queue them; start no workers and do not follow the run.")
@notify_option
@pass_session
def command(
    session: Session,
    *,
    run: str,
    items: tuple[str, ...],
    cached: bool,
    workers: WorkerOptions,
    detach: bool,
    notify: str | None,
) -> int:
    """Retry the items of RUN that ended in error or got no result, and follow it.

    With --item, an item is asked again and printed before and after.

    Workers are started here only when none is alive, and stopped at the end.
    """
    from producer.cli import presenters, run_lookup, work  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.item_names import find_items  # noqa: PLC0415 - same
    from producer.notify import read_webhook  # noqa: PLC0415 - same

    webhook = read_webhook(notify, session.settings, os.environ) if notify is not None else None
    if webhook is not None and detach:
        raise UsageError("--notify is for a run that is followed", hint="`proctor watch RUN --notify URL`")
    if cached and not items:
        raise UsageError("--cached is for --item", hint="without --item, stored answers are always used")
    info = run_lookup.find_run(session, run)
    positions = find_items(session.access.store, info, items) if items else None
    result = presenters.ItemChanges(session, info, positions) if positions is not None else None
    presenter = presenters.presenter_of(session, result)
    options = work.WorkOptions(presenter, workers.processes, workers.in_flight, webhook=webhook)
    is_anew = bool(items) and not cached
    return work.retry(session, info.run, options, positions=positions, detach=detach, is_anew=is_anew)
