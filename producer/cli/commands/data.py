"""`proctor data diff A B`: which cases were added, removed and edited."""

import click

from producer.cli.completions import complete_runs_or_files
from producer.cli.options.global_options import group
from producer.cli.session import Session, pass_session

SHOWN = 20
"""Cases of a list by default."""


@group()
def command() -> None:
    """Compare the cases of benches, data files and runs."""


@command.command()
@click.argument("a", shell_complete=complete_runs_or_files)
@click.argument("b", shell_complete=complete_runs_or_files)
@click.option(
    "--first", type=click.IntRange(1), default=SHOWN, show_default=True, help="Cases to show per list."
)
@pass_session
def diff(session: Session, *, a: str, b: str, first: int) -> int:
    """List the cases that B has more or fewer than A, and those with another input or expectation.

    A and B are benches, data files as test_cases_file names them, or runs. Cases are paired by their ids,
    and those without one by their input. Exits with 0 if all cases are the same and with 1 if not, as
    `diff` does.
    """
    from producer.cli.data_sides import compare_data  # noqa: PLC0415 - start-up: `--help` must not load pydantic

    return compare_data(session, a, b, first)
