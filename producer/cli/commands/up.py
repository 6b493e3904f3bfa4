"""`proctor up`: Redis, workers, Flower and metrics in the foreground, ended in order by one Ctrl-C."""

from contextlib import AbstractContextManager, nullcontext

import click

from producer.cli.commands.serve import DEFAULT_PORT
from producer.cli.error_exit import InterruptedByUserError, TerminatedError
from producer.cli.local.child_processes import (
    Child,
    ProcessGroup,
    check_port,
    child_environment,
    flower_command,
    flower_environment,
    worker_command,
)
from producer.cli.options.global_options import command as declare
from producer.cli.options.option_groups import given_flags
from producer.cli.options.run_options import ModelOptions
from producer.cli.options.shared_options import ServedOptions, served_options
from producer.cli.session import Session, pass_session
from producer.text import plural
from shared.errors import UsageError
from shared.processes.own_modules import PACKAGES_ROOT
from shared.settings import Settings, variable_of

FLOWER_GRACE_S = 3.0
READY_S = 20.0
"""How long Flower waits for the workers."""
LOOPBACK = "127.0.0.1"


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
@click.option("--no-flower", is_flag=True, help="Do not start Flower.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=9464,
    show_default=True,
    help="Port of the metrics; 0: a free one.",
)
@click.option("--no-metrics", is_flag=True, help="Do not serve metrics.")
@click.option("--serve", "serves", is_flag=True, help="Decide turns over HTTP too, as `proctor serve`.")
@click.option(
    "--serve-port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port of --serve; 0: a free one.",
)
@served_options
@pass_session
def command(
    session: Session,
    *,
    processes: int | None,
    in_flight: int | None,
    flower_port: int,
    no_flower: bool,
    metrics_port: int,
    no_metrics: bool,
    serves: bool,
    serve_port: int,
    served: ServedOptions,
    models: ModelOptions,
) -> int:
    """Run Redis, workers, Flower and the metrics exporter together until Ctrl-C.

    Running items may finish within the grace period; a second Ctrl-C returns them to the queue at once.

    For one machine: `proctor submit FILE` in another terminal finds them, as every command does. Without a
    URL the Redis is the embedded one of the data folder.
    """
    given = [*given_flags(served), *given_flags(models)]
    if given and not serves:
        raise UsageError(f"{given[0]} is for turns over HTTP", hint="add --serve")
    for is_used, option, port in (
        (not no_flower, "--flower-port", flower_port),
        (not no_metrics, "--metrics-port", metrics_port),
        (serves, "--serve-port", serve_port),
    ):
        if is_used:
            check_port(LOOPBACK, port, option=option)
    settings, output, connection = session.settings, session.output, session.access.connection
    service = _service(session, (LOOPBACK, serve_port), served, models) if serves else nullcontext()
    with _metrics(session, None if no_metrics else metrics_port) as taken, ProcessGroup(output) as together:
        output.note(f"Redis    {connection.target.display}{' (embedded)' if connection.embedded else ''}")
        output.note(f"workers  {plural(processes or settings.processes, 'process')}")
        child = _workers(settings, processes, in_flight)
        together.add(child)
        if not no_flower:
            output.note(f"Flower   http://{LOOPBACK}:{flower_port}")
        if taken is not None:
            output.note(f"metrics  http://{LOOPBACK}:{taken}/metrics")
        output.note("Ctrl-C stops everything; runs are kept")
        try:
            if not no_flower:
                child.is_ready.wait(
                    READY_S
                )  # Flower asks workers at its start, and warns of those that are silent
                together.add(_flower(settings, flower_port))
            with service:
                together.watch(essential="workers")
        except TerminatedError:
            return 0
        except KeyboardInterrupt:
            raise InterruptedByUserError(
                "stopped; runs are kept", hint="`proctor up` goes on with them"
            ) from None
    return 0


def _workers(settings: Settings, processes: int | None, in_flight: int | None) -> Child:
    """Starts worker processes."""
    environment = child_environment(settings)
    if settings.log_format == "auto":  # with a name in front of each line, JSON would be none
        environment[variable_of("log_format")] = "console"
    return Child.start(
        "workers",
        worker_command(settings, processes=processes, in_flight=in_flight, with_parent=True),
        environment=environment,
        grace_s=settings.grace_s,
        with_parent=True,
        returns_items=True,
    )


def _metrics(session: Session, port: int | None) -> "AbstractContextManager[int | None]":
    """Serves metrics from a thread of this process, which ends with it; None: does not."""
    if port is None:
        return nullcontext()
    from producer.metrics.exporter import serving  # noqa: PLC0415 - start-up: `--help` must not load it

    return serving(session.access.client, LOOPBACK, port)


def _service(
    session: Session, address: tuple[str, int], served: ServedOptions, models: ModelOptions
) -> "AbstractContextManager[object]":
    """Decides turns over HTTP from a thread of this process; at the end it drains before the workers do."""
    from producer.cli import live_service  # noqa: PLC0415 - start-up: aiohttp costs 150 ms

    asked = live_service.requested(session, served, models)
    if asked.missing is not None:
        raise asked.missing.as_error()
    return live_service.serving(session, address, asked)


def _flower(settings: Settings, port: int) -> Child:
    """Starts Flower."""
    return Child.start(
        "flower",
        flower_command(address=LOOPBACK, port=port, with_parent=True),
        environment=flower_environment(settings),
        grace_s=FLOWER_GRACE_S,
        cwd=PACKAGES_ROOT,
        with_parent=True,
    )
