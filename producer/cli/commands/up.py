"""`proctor up`: Redis, workers and Flower in the foreground, one log, ended in order by one Ctrl-C."""

import sys

import click

from producer.cli.context import Session, pass_session
from producer.cli.errors import InterruptedByUserError, TerminatedError
from producer.cli.options import command as declare
from producer.cli.services import (
    PACKAGES_ROOT,
    Child,
    check_port,
    child_environment,
    flower_command,
    flower_environment,
    worker_command,
)
from producer.cli.together import Together
from producer.cli.wording import plural
from shared.settings import variable_of

FLOWER_GRACE_S = 3.0


@declare()
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Worker processes [default: cores, at most 4].",
)
@click.option(
    "-j",
    "--in-flight",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Items in flight per process [default: 100].",
)
@click.option(
    "--flower-port", type=click.IntRange(1, 65535), default=5555, show_default=True, help="Flower's port."
)
@click.option("--no-flower", is_flag=True, help="Without Flower.")
@pass_session
def command(
    session: Session, *, processes: int | None, in_flight: int | None, flower_port: int, no_flower: bool
) -> int:
    """Run Redis, workers and Flower together until Ctrl-C.

    For one machine: `proctor submit FILE` in another terminal finds them, as every command does. Without a
    URL the Redis is the embedded one of the data folder.
    """
    if not no_flower:
        check_port("127.0.0.1", flower_port)
    settings, output, connection = session.settings, session.output, session.connection
    environment = child_environment(settings)
    if settings.log_format == "auto" and sys.stderr.isatty():
        environment[variable_of("log_format")] = "console"  # workers write into a pipe, which people read
    workers = worker_command(settings, processes=processes, in_flight=in_flight, with_parent=True)
    with Together(output) as together:
        output.note(f"Redis    {connection.target.display}{' (embedded)' if connection.embedded else ''}")
        output.note(f"workers  {plural(processes or settings.processes, 'process')}")
        together.add(
            Child.start(
                "workers", workers, environment=environment, grace_s=settings.grace_s, with_parent=True
            )
        )
        if not no_flower:
            output.note(f"Flower   http://127.0.0.1:{flower_port}")
            program = flower_command(address="127.0.0.1", port=flower_port)
            together.add(
                Child.start(
                    "flower",
                    program,
                    environment=flower_environment(settings),
                    grace_s=FLOWER_GRACE_S,
                    cwd=PACKAGES_ROOT,
                )
            )
        output.note("Ctrl-C ends all of it; runs are kept")
        try:
            together.watch(essential="workers")
        except TerminatedError:
            return 0
        except KeyboardInterrupt:
            raise InterruptedByUserError(
                "stopped; runs are kept", hint="`proctor up` goes on with them"
            ) from None
    return 0
