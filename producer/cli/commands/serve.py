"""`proctor serve`: decides turns over HTTP while people talk."""

from pathlib import Path

import click

from producer.cli.options.global_options import command as declare
from producer.cli.options.option_groups import option_group
from producer.cli.options.run_options import ModelOptions
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
@click.option(
    "--tokens",
    "tokens_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Tokens of callers, each with its namespace [default: one token, which is printed].",
)
@option_group(
    "models",
    ModelOptions,
    models="Model that answers turns; without one they are decided only.",
    temperature="Sampling temperature [default: the provider's].",
    max_cost=None,
    no_cache=None,
)
@click.option(
    "--keep-turns",
    type=click.IntRange(1),
    default=100_000,
    show_default=True,
    metavar="N",
    help="Latest turns to keep in full, with the requests that they answered, for a day at most.",
)  # fmt: skip - one option, one paragraph
@click.option("--processes", type=click.IntRange(0, 256), metavar="N", help="Worker processes [default: 1].")
@pass_session
def command(
    session: Session,
    *,
    host: str,
    port: int,
    tokens_file: Path | None,
    models: ModelOptions,
    keep_turns: int,
    processes: int | None,
) -> int:
    """Decide turns of conversations over HTTP, while people talk.

    Turns go through the queue, the ledger and the workers of runs. Without a server's URL it starts the
    embedded Redis, and workers if none is alive.

    With --model the answer to a turn is written by it, and sent while it is written to who asks for events.
    """
    from producer.cli import live_service  # noqa: PLC0415 - start-up: aiohttp costs 150 ms

    return live_service.serve(
        session, (host, port), tokens_file, models, keep_turns=keep_turns, processes=processes
    )
