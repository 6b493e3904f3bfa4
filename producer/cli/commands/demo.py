"""`proctor demo`: runs the packaged examples with a Redis, workers, an API and models of its own."""

from pathlib import Path

import click

from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session


@declare()
@click.option("--keep", is_flag=True, help="Keep the data folder.")
@click.option(
    "-o",
    "--output",
    "reports",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write an HTML report of each run to this folder.",
)  # fmt: skip - one option, one paragraph
@pass_session
def command(session: Session, *, keep: bool, reports: Path | None) -> int:
    """Run an example of each kind - turns, queries, test cases: no key, no server, no network needed.

    Everything happens in a temporary data folder: an embedded Redis, real workers, a real queue, an
    API and models that answer on loopback.
    """
    from producer.cli.local.demo_runs import demonstrate  # noqa: PLC0415 - start-up: `--help` must not load redis

    return demonstrate(session, keep=keep, reports=reports)
