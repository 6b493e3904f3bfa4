"""`proctor cancel RUN`: ends a run; what is done stays, what is at work is dropped."""

import click

from producer.cli.context import Session, pass_session
from producer.cli.control import tell_state
from producer.cli.global_options import command as declare


@declare()
@click.argument("run")
@pass_session
def command(session: Session, *, run: str) -> None:
    """End RUN. Results that are in stay; chunks that workers hold are dropped when they report."""
    tell_state(session, run, action="cancelled")
