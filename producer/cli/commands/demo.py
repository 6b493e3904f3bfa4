"""`proctor demo`: runs the packaged examples with a Redis, workers and an API of its own, and shows them."""

import click

from producer.cli.context import Session, pass_session
from producer.cli.options import command as declare


@declare()
@click.option("--keep", is_flag=True, help="Keep the data folder, to look around afterwards.")
@pass_session
def command(session: Session, *, keep: bool) -> int:
    """Decide the example turns and evaluate a sample API: no key, no server, no network needed.

    Everything happens in a temporary data folder: an embedded Redis, real workers, a real queue.
    """
    from producer.cli.showcase import demonstrate  # noqa: PLC0415 - start-up: `--help` must not load redis

    return demonstrate(session, keep=keep)
