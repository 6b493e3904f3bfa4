"""`proctor rank RUN`: whose answers a judge prefers, pair by pair and in both orders."""

from typing import Literal

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.options.option_groups import option_group
from producer.cli.options.shared_options import WorkerOptions
from producer.cli.session import Session, pass_session


@declare()
@click.argument("run", shell_complete=complete_runs)
@click.option("-m", "--model", metavar="MODEL", help="Judge, instead of `pairwise.model` of the bench.")
@click.option(
    "--criterion", metavar="TEXT", help="What is better, instead of `pairwise.criterion` of the bench."
)
@click.option("--by", type=click.Choice(["model", "prompt"]), help="What is ranked.  [default: model]")
@option_group("workers", WorkerOptions)
@pass_session
def command(
    session: Session,
    *,
    run: str,
    model: str | None,
    criterion: str | None,
    by: Literal["model", "prompt"] | None,
    workers: WorkerOptions,
) -> int:
    """Rank the models or prompts of RUN by their answers: a judge compares each pair, in both orders.

    The comparisons are a run of their own; RUN and its results stay as they are. Give the run of a ranking
    to print its table again without a call.
    """
    from producer.cli import presenters, ranking_output, work  # noqa: PLC0415 - start-up: `--help` must not load redis

    options = work.WorkOptions(presenters.presenter_of(session), workers.processes, workers.in_flight)
    return ranking_output.rank(session, run, options, model=model, criterion=criterion, by=by)
