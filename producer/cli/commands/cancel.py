"""`proctor cancel RUN`: ends a run; what is done stays, what is at work is dropped."""

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session


@declare()
@click.argument("run", shell_complete=complete_runs)
@pass_session
def command(session: Session, *, run: str) -> None:
    """Cancel RUN. Results so far are kept; unfinished work of running chunks is discarded."""
    from producer.cli.run_lookup import print_state_change  # noqa: PLC0415 - start-up: `--help` must not load redis

    print_state_change(session, run, action="cancelled")
