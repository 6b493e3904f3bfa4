"""`proctor pause RUN`: hands out nothing more of a run until it is resumed."""

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session


@declare()
@click.argument("run", shell_complete=complete_runs)
@pass_session
def command(session: Session, *, run: str) -> None:
    """Pause RUN until `proctor resume RUN`; chunks that workers hold are finished."""
    from producer.cli.run_lookup import print_state_change  # noqa: PLC0415 - start-up: `--help` must not load redis

    print_state_change(session, run, action="pause")
