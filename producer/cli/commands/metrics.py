"""`proctor metrics`: serves the fleet's metrics to Prometheus, by default on loopback."""

import threading

import click

from producer.cli.error_exit import InterruptedByUserError, TerminatedError
from producer.cli.local.child_processes import check_port
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session


@declare()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; the page has no login.",
)  # fmt: skip - one option, one paragraph
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9464,
    show_default=True,
    help="Port to listen on; 0: a free one.",
)
@pass_session
def command(session: Session, *, host: str, port: int) -> int:
    """Serve metrics for Prometheus at /metrics: backlog, workers, outcomes, calls, latency, cost.

    Each scrape reads Redis, so one exporter is enough for all workers.
    """
    from producer.metrics.exporter import PATH, serving  # noqa: PLC0415 - start-up: only this command needs it

    check_port(host, port)
    session.client.ping()  # reports a wrong URL in one line
    try:
        with serving(session.client, host, port) as taken:
            session.output.note(f"metrics: http://{host}:{taken}{PATH}")
            threading.Event().wait()
    except TerminatedError:
        return 0
    except KeyboardInterrupt:
        raise InterruptedByUserError("stopped") from None
    return 0
