"""`proctor serve`: decides turns over HTTP while people talk."""

import click

from producer.cli.options.global_options import command as declare
from producer.cli.options.run_options import ModelOptions
from producer.cli.options.shared_options import ServedOptions, served_options
from producer.cli.session import Session, pass_session

DEFAULT_PORT = 7358


@declare()
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0: a free one.",
)
@served_options
@click.option("--processes", type=click.IntRange(0, 256), metavar="N", help="Worker processes [default: 1].")
@pass_session
def command(
    session: Session,
    *,
    host: str,
    port: int,
    served: ServedOptions,
    models: ModelOptions,
    processes: int | None,
) -> int:
    """Decide turns of conversations over HTTP, while people talk.

    Turns go through the queue, the ledger and the workers of runs. Without a server's URL it starts the
    embedded Redis, and workers if none is alive.

    With --model the answer to a turn is written by it, and sent while it is written to who asks for events.
    """
    from producer.cli import live_service  # noqa: PLC0415 - start-up: aiohttp costs 150 ms

    return live_service.serve(session, (host, port), served, models, processes=processes)
