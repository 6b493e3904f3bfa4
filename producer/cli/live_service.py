"""Runs `proctor serve`: workers of its own where none is alive, the service, and its first line."""

import os
from pathlib import Path

from msgspec import Struct

from producer.cli.local.local_workers import LocalWorkers
from producer.cli.options.choices import read_live_run
from producer.cli.options.run_options import ModelOptions
from producer.cli.session import Session
from producer.serve import http_service
from producer.serve.tokens import DEFAULT_NAMESPACE, Tokens, new_token, read_tokens
from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.kinds import TURNS
from shared.server.client import follow_master
from shared.settings import variable_of


class ServeReady(Struct, frozen=True):
    """What serve prints with --json once it takes turns."""

    url: str
    token: str | None


TURN_SLOTS = 32
"""Answers that a worker process started here has under way at a time, unless the environment has a number."""


def serve(
    session: Session,
    address: tuple[str, int],
    tokens_file: Path | None,
    models: ModelOptions,
    processes: int | None,
) -> int:
    """Serves until a signal.

    Raises:
        UsageError: the options of the model cannot be used.
        ConfigError: the file of tokens cannot be used.
        InfrastructureError: the port cannot be had, or workers cannot be started.
    """
    live = read_live_run(models)
    token = None if tokens_file else new_token()
    tokens = Tokens({token: DEFAULT_NAMESPACE}) if token else read_tokens(Path(str(tokens_file)))
    for warning in tokens.warnings:
        session.output.warn(warning)
    access = session.access.connect()
    if live is not None:  # for the workers that are started here
        os.environ.setdefault(variable_of("turn_slots"), str(TURN_SLOTS))
    with LocalWorkers(
        session, [TURNS], processes=1 if processes is None else processes, in_flight=None
    ) as workers:
        if processes is not None or not access.count_workers(TURNS):
            workers.start()
        workers.wait_until_alive()

        def tell(url: str) -> None:
            if session.options.json:
                session.output.document(ServeReady(url, token))
            else:
                session.output.data(f"{url}  token {token}" if token else url)
                session.output.note("Ctrl-C ends it, once accepted turns are decided")

        def care() -> None:
            """Follows the sentinels' master, and keeps workers alive."""
            if access.connection.target.is_watched:
                follow_master(access.client)
            workers.ensure_running()

        options = http_service.ServeOptions(tokens, SummaryPolicy.GUARDRAIL.value, live)
        http_service.serve(access, options, address, tell, care)
    return 0
