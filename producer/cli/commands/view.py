"""`proctor view`: shows runs in a browser, served on loopback until Ctrl-C."""

import click

from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session

DEFAULT_PORT = 7357


@declare()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0: a free one.",
)
@click.option("--no-open", is_flag=True, help="Only print the address; open no browser.")
@pass_session
def command(session: Session, *, port: int, no_open: bool) -> int:
    """Show runs in a browser: progress, results, comparisons, the fleet.

    The address that it prints has a token; without it nothing is answered. It listens on this machine only.
    """
    from producer.view.web_server import serve  # noqa: PLC0415 - start-up: aiohttp costs 150 ms

    def print_address(address: str) -> None:
        session.output.data(address)
        session.output.note("Ctrl-C ends it")

    serve(session.access.connect(), port, print_address, with_browser=not no_open)
    return 0
