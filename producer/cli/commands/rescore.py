"""`proctor rescore RUN`: judges the answers of a run again, without asking any model for them."""

from pathlib import Path

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.options.option_groups import option_group
from producer.cli.options.shared_options import ReportOptions, WorkerOptions
from producer.cli.session import Session, pass_session
from producer.report_files import plan_files


@declare()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Use the criteria of this configuration instead of the run's own.",
)
@option_group("reports", ReportOptions)
@option_group("workers", WorkerOptions)
@pass_session
def command(
    session: Session,
    *,
    run: str,
    config: Path | None,
    reports: ReportOptions,
    workers: WorkerOptions,
) -> int:
    """Judge the stored answers of RUN again, as a new run that `proctor compare` can compare with it.

    No model under test is called. A judge is, where the criteria name one and an answer differs.
    """
    from producer.cli import presenters, work  # noqa: PLC0415 - start-up: `--help` must not load redis

    files = plan_files(reports.paths, reports.formats)
    presenter = presenters.presenter_of(session)
    options = work.WorkOptions(presenter, workers.processes, workers.in_flight, files=files)
    return work.rescore(session, run, config, options)
