"""`proctor rescore RUN`: judges the answers of a run again, without asking any model for them."""

from pathlib import Path

import click

from producer.cli.context import Session, pass_session
from producer.cli.options.global_options import command as declare
from producer.cli.options.shared_options import worker_options
from producer.cli.report_files import FORMATS, plan_files


@declare()
@click.argument("run")
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Judge by the criteria of this bench instead of the run's own.",
)
@click.option(
    "-o",
    "--output",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report to write; the suffix tells the format; may be repeated.",
)
@click.option("-e", "--export", type=click.Choice(FORMATS), help="Format of the report.")
@worker_options
@pass_session
def command(
    session: Session,
    *,
    run: str,
    config: Path | None,
    paths: tuple[Path, ...],
    export: str | None,
    processes: int | None,
    in_flight: int | None,
) -> int:
    """Judge the stored answers of RUN again, as a new run; the first one stays, to be compared with.

    No model under test is called. A judge is, where the criteria name one and an answer differs.
    """
    from producer.cli import work  # noqa: PLC0415 - start-up: `--help` must not load redis

    options = work.WorkOptions(processes, in_flight, None, plan_files(paths, export))
    return work.rescore(session, run, config, options)
