"""`proctor health worker|redis|broker|http`: health checks by exit code, with output only on failure."""

import click

from producer.cli.options.global_options import group
from producer.cli.session import Session, pass_session
from shared.errors import RedisRefusingError, UsageError
from shared.processes.heartbeat import oldest_beat_s


@group()
def command() -> None:
    """Run a health check: exit code 0 if healthy."""


@command.command()
@click.option(
    "--max-age",
    "max_age_s",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Maximum age of the last heartbeat, in seconds.",
)
@pass_session
def worker(session: Session, *, max_age_s: float) -> int:
    """Check that every worker process of this machine is alive.

    Reads the data folder only, not Redis, and takes milliseconds.
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
    """Check that Redis answers, meets the requirements and accepts writes.

    Warns if its memory is nearly full.
    """
    from shared.ledger.calls import refused_write  # noqa: PLC0415 - same
    from shared.server.diagnostics import check_memory, check_writes  # noqa: PLC0415 - start-up: see above

    refused = check_writes(refused_write(session.access.client))
    memory = check_memory(session.access.client.info("memory"))
    for check in (refused, memory):
        if check.status == "fail":
            session.output.message(f"Redis: {check.name} {check.detail}", hint=check.fix)
            return RedisRefusingError.exit_code
    if memory.status == "warn":
        session.output.warn(f"Redis: {memory.detail}")
    return 0


@command.command()
@pass_session
def broker(session: Session) -> int:
    """Check that the broker answers and accepts messages."""
    session.access.require_broker()
    session.access.client.ping()
    refusal = session.access.broker_refusal()
    if refusal:
        session.output.message(
            f"the broker takes no writes: {refusal}", hint="`proctor doctor` says what helps"
        )
        return RedisRefusingError.exit_code
    return 0


@command.command()
@click.argument("url")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="S",
    help="Seconds to wait for the answer.",
)
@pass_session
def http(session: Session, *, url: str, timeout_s: float) -> int:
    """Check that URL answers with a success status.

    For images without curl: http://127.0.0.1:5555/healthcheck is Flower's page, and
    http://127.0.0.1:9464/metrics that of the exporter.
    """
    import urllib.request  # noqa: PLC0415 - start-up: the other probes need no HTTP
    from http.client import HTTPException  # noqa: PLC0415 - same

    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{url!r} is no address of a page", hint="begin it with http:// or https://")
    try:
        # No proxy: a probe calls its own machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=timeout_s):
            return 0
    except (OSError, HTTPException, ValueError) as error:  # URLError and HTTPError are OSErrors
        session.output.warn(f"{url} does not answer well: {error}")
        return 1
