"""`proctor runs list|show|forget|rm`: the runs in Redis."""

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import group
from producer.cli.session import Session, pass_session
from shared.kinds import TURNS, all_kinds, kind_named
from shared.names import RunState


@group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, forget or remove runs [default: list]."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_runs)


@command.command("list")
@click.option("--first", "limit", type=click.IntRange(1), default=20, show_default=True, help="Runs to list.")
@click.option(
    "--kind", type=click.Choice([kind.name for kind in all_kinds()]), help="Only runs of this kind."
)
@click.option(
    "--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state."
)
@pass_session
def list_runs(
    session: Session, *, limit: int = 20, kind: str | None = None, state: str | None = None
) -> None:
    """List streams of served turns, and runs, the newest first."""
    from producer.cli import run_lookup, runs_table  # noqa: PLC0415 - start-up: `--help` must not load redis

    runs = session.access.store.list(limit=limit, kind=kind_named(kind) if kind else None, state=state)
    why = run_lookup.wait_reasons(session.access.store, runs)
    has_streams = kind in {None, TURNS.name} and state is None
    streams = session.access.store.streams() if has_streams else []
    if session.options.json:
        session.output.document(run_lookup.runs_document(runs, why, streams))
    elif runs or streams:
        runs = run_lookup.counted_runs(session.access.store, runs)
        open_kinds = {info.kind for info in runs if not info.is_final}
        worked_on = {each for each in open_kinds if session.access.count_workers(each)}
        runs_table.print_runs(session.output, runs, why, worked_on=worked_on, streams=streams)
    else:
        session.output.note("no runs here yet; `proctor run FILE` makes one")
    session.warn_if_unwritable()


@command.command()
@click.argument("run", shell_complete=complete_runs)
@pass_session
def show(session: Session, *, run: str) -> None:
    """Show one run: state, counts and summary, also while it goes on."""
    from producer.cli import presenters, run_lookup  # noqa: PLC0415 - start-up: `--help` must not load redis

    presenters.print_run(session, run_lookup.find_run(session, run))


@command.command("rm")
@click.argument("runs", shell_complete=complete_runs, nargs=-1, required=True, metavar="RUN...")
@pass_session
def remove(session: Session, *, runs: tuple[str, ...]) -> None:
    """Remove runs and their results, permanently."""
    from producer.cli.run_lookup import remove_runs  # noqa: PLC0415 - start-up: `--help` must not load redis

    document = remove_runs(session, runs)
    if session.options.json:
        session.output.document(document)
    else:
        for run in document.removed:
            session.output.data(f"{run} removed")


@command.command("forget")
@click.argument("runs", shell_complete=complete_runs, nargs=-1, required=True, metavar="RUN...")
@pass_session
def forget(session: Session, *, runs: tuple[str, ...]) -> None:
    """Delete the texts of runs, permanently, and keep their figures."""
    from producer.cli.run_lookup import forget_runs  # noqa: PLC0415 - start-up: `--help` must not load redis

    document = forget_runs(session, runs)
    if session.options.json:
        session.output.document(document)
        return
    for run in document.forgotten:
        session.output.data(f"{run} has figures only")
    session.output.note("answers of models may also be in the cache: `proctor cache clear`")
