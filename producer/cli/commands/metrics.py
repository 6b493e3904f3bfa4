"""`proctor metrics`: serves the fleet's metrics to Prometheus, by default on loopback."""

import threading
from typing import TYPE_CHECKING

import click

from producer.cli.error_exit import InterruptedByUserError, TerminatedError
from producer.cli.local.child_processes import check_port
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from shared.errors import RedisUnreachableError

if TYPE_CHECKING:
    import redis


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

    Each scrape reads Redis, so one exporter is enough for all workers. While
    Redis does not answer, also at the start, proctor_redis_up is 0.
    """
    from producer.metrics.exporter import PATH, serving  # noqa: PLC0415 - start-up: only this command needs it

    check_port(host, port)
    client = _client(session)
    try:
        with serving(client, host, port) as taken:
            session.output.note(f"metrics: http://{host}:{taken}{PATH}")
            threading.Event().wait()
    except TerminatedError:
        return 0
    except KeyboardInterrupt:
        raise InterruptedByUserError("stopped") from None
    return 0


def _client(session: Session) -> "redis.Redis":
    """Returns a client of the ledger's server, also of one that is away: that is what a metric is for."""
    from shared.server.client import RedisTarget  # noqa: PLC0415 - start-up: `--help` must not load redis

    try:
        return session.access.client
    except RedisUnreachableError as error:
        if session.settings.redis_url is None:
            raise  # an embedded server that cannot be started
        session.output.warn(f"{error.message}; proctor_redis_up is 0 until it does")
        return RedisTarget.parse(session.settings.redis_url).client()
