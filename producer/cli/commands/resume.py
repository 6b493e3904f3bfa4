"""`proctor resume RUN`: continues a paused or interrupted run, with workers of its own if there are none."""

import os

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.options.option_groups import option_group
from producer.cli.options.shared_options import WorkerOptions, notify_option
from producer.cli.session import Session, pass_session
from shared.errors import UsageError


@declare()
@click.argument("run", shell_complete=complete_runs)
@option_group("workers", WorkerOptions)
@click.option(
    "--max-cost",
    type=click.FloatRange(0),
    metavar="USD",
    help="New cost cap of the whole run, in place of the one it was submitted with.",
)
@click.option("--detach", is_flag=True, help="Only resume it; start no workers and do not follow it.")
@notify_option
@pass_session
def command(
    session: Session,
    *,
    run: str,
    workers: WorkerOptions,
    max_cost: float | None,
    detach: bool,
    notify: str | None,
) -> int:
    """Continue RUN, whether it was paused, interrupted or cut short, and follow it to its end.

    Workers are started here only when none is alive for its kind, and stopped at the end.
    """
    from producer.cli import presenters, run_lookup, work  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.notify import read_webhook  # noqa: PLC0415 - same

    webhook = read_webhook(notify, session.settings, os.environ) if notify is not None else None
    if webhook is not None and detach:
        raise UsageError("--notify is for a run that is followed", hint="`proctor watch RUN --notify URL`")
    run = run_lookup.find_run(session, run).run
    if max_cost is not None:
        from shared.upstream.costs import CostBook  # noqa: PLC0415 - start-up: only a new cap needs it

        CostBook(session.access.ledger.caller).set_cap(run, max_cost)
    if detach:
        run_lookup.print_state_change(session, run, action="resume")
        return 0
    presenter = presenters.presenter_of(session)
    options = work.WorkOptions(presenter, workers.processes, workers.in_flight, webhook=webhook)
    return work.resume(session, run, options)
