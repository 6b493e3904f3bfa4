"""`proctor flower`: starts Flower with our columns, by default read-only and on loopback."""

import os
from ipaddress import ip_address

import click

from producer.cli.local.child_processes import (
    become,
    check_port,
    flower_command,
    flower_environment,
)
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from shared.processes.own_modules import PACKAGES_ROOT


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


@declare()
@click.option(
    "--port", type=click.IntRange(1, 65535), default=5555, show_default=True, help="Port to listen on."
)
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; set PROCTOR_FLOWER_AUTH=USER:PASSWORD before you open it.",
)  # fmt: skip - one option, one paragraph
@click.option("--url-prefix", default="", help="Path under which a proxy serves it.")
@click.option("--allow-control", is_flag=True, help="Let the page stop workers and revoke tasks.")
@pass_session
def command(session: Session, *, port: int, address: str, url_prefix: str, allow_control: bool) -> None:
    """Start Flower: workers and tasks in a browser, searchable by run.

    Flower shows Celery's tasks. For results, progress and history use `watch`, `status` and `results`.
    """
    check_port(address, port)
    session.access.client.ping()  # reports a wrong URL in one line
    if (
        not is_loopback(address)
        and not session.settings.flower_auth
        and "FLOWER_BASIC_AUTH" not in os.environ
    ):
        session.output.warn(
            f"Flower on {address} asks for no login: set PROCTOR_FLOWER_AUTH or PROCTOR_FLOWER_AUTH_FILE"
        )
    session.output.note(f"Flower: http://{address}:{port}/{url_prefix.strip('/')}")
    program = flower_command(address=address, port=port, url_prefix=url_prefix, allow_control=allow_control)
    become(program, flower_environment(session.settings), cwd=PACKAGES_ROOT)
