"""`proctor health worker|redis|broker`: answers a probe by its exit code, with words only on failure."""

import click

from producer.cli.context import Session, pass_session
from producer.cli.options import group
from shared.heartbeat import oldest_beat_s


@group()
def command() -> None:
    """Answer a probe: exit code 0 when well."""


@command.command()
@click.option(
    "--max-age",
    "max_age_s",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds that the last sign of life may lie back.",
)
@pass_session
def worker(session: Session, *, max_age_s: float) -> int:
    """Is every worker process of this machine at work?

    Asks the data folder only, not Redis, and answers in milliseconds.
    """
    age_s = oldest_beat_s(session.settings.data_dir)
    if age_s is None:
        session.output.warn(f"no worker is alive here (data folder {session.settings.data_dir})")
        return 1
    if age_s > max_age_s:
        session.output.warn(f"a worker has been silent for {age_s:.0f} s")
        return 1
    return 0


@command.command()
@pass_session
def redis(session: Session) -> int:
    """Does Redis answer, and can it carry the ledger?"""
    session.client.ping()
    return 0


@command.command()
@pass_session
def broker(session: Session) -> int:
    """Does the broker answer, be it Redis or RabbitMQ?"""
    session.require_broker()
    session.client.ping()
    return 0
