"""Runs `proctor serve`: workers of its own where none is alive, the service, and its first line."""

import asyncio
import dataclasses
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from producer.access import Access
from producer.cli.local.local_workers import LocalWorkers
from producer.cli.options.choices import read_live_run
from producer.cli.options.run_options import ModelOptions
from producer.cli.options.shared_options import ServedOptions
from producer.cli.session import Session
from producer.forecasts import MissingKeys, missing_keys
from producer.http_server import (
    SilentConnections,
    in_thread,
    listening,
    raise_open_files,
    stop_signal,
)
from producer.serve import http_service
from producer.serve.log_lines import log_to_stderr
from producer.serve.tokens import DEFAULT_NAMESPACE, Tokens, new_token, read_tokens
from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.errors import ProctorError
from shared.kinds import TURNS, Kind
from shared.ledger import Keep
from shared.settings import variable_of

logger = logging.getLogger(__name__)


class ServeReady(Struct, frozen=True):
    """What `serve` and `up --serve` print with --json once turns are taken."""

    url: str
    token: str | None


CARE_S = 1.0
LAST_S = 2.0
"""How long requests that are under way have after the drain; those whose turns were decided need moments."""
SWITCH_S = 0.0005
"""How long a thread with an answer of Redis waits for the event loop: Python's own 5 ms would be spent
several times on the way of a turn."""
TURN_SLOTS = 32
"""Answers that a worker process started here has under way at a time, unless the environment has a number."""


def shown(ready: ServeReady) -> str:
    """Writes what callers need.

    >>> shown(ServeReady("http://127.0.0.1:7358", "secret"))
    'http://127.0.0.1:7358  token secret'
    """
    return f"{ready.url}  token {ready.token}" if ready.token else ready.url


class Requested(NamedTuple):
    """What the options ask for."""

    token: str | None
    """The one that was made; None where a file has them."""
    options: http_service.ServeOptions
    missing: MissingKeys | None
    """What workers that are started here would lack."""


def requested(session: Session, served: ServedOptions, models: ModelOptions) -> Requested:
    """Reads the options; workers that are started after it have slots for the model's answers.

    Raises:
        UsageError: the options of the model cannot be used.
        ConfigError: the file of tokens cannot be used.
    """
    log_to_stderr(with_requests=served.access_log)
    asked = read_live_run(models)
    # What one person was told is no answer for another, and would be kept for a month.
    live = asked and replace(asked, use_cache=False)
    token = None if served.tokens else new_token()
    tokens = read_tokens(Path(served.tokens)) if served.tokens else Tokens({str(token): DEFAULT_NAMESPACE})
    for warning in tokens.warnings:
        session.output.warn(warning)
    usual, texts_ttl_s = Keep(), session.settings.texts_ttl_s
    longest_ms = usual.turns_ms if texts_ttl_s is None else 1000 * texts_ttl_s
    keep = usual._replace(turns=served.keep_turns, turns_ms=min(usual.turns_ms, longest_ms))
    if live is not None:
        os.environ.setdefault(variable_of("turn_slots"), str(TURN_SLOTS))
    missing = missing_keys([live.target], os.environ) if live else None
    options = http_service.ServeOptions(tokens, SummaryPolicy.GUARDRAIL.value, live, keep=keep)
    return Requested(token, options, missing)


class WorkersOfKinds:
    """Workers of the kinds that callers need.

    Args:
        session: access to Redis and the data folder.
        processes: how many of each kind; 0: none; None: one where none is alive.
        ending: stops them.
    """

    def __init__(self, session: Session, processes: int | None, ending: ExitStack) -> None:
        self._session, self._processes, self._ending = session, processes, ending
        self._of_kind = dict[Kind, LocalWorkers]()
        self._changing = Lock()

    def work(self, kind: Kind) -> LocalWorkers:
        """Makes sure that there are workers of a kind."""
        with self._changing:
            if kind not in self._of_kind:
                count = 1 if self._processes is None else self._processes
                own = LocalWorkers(self._session, [kind], processes=count, in_flight=None)
                self._of_kind[kind] = self._ending.enter_context(own)
                if self._processes is not None or not self._session.access.count_workers(kind):
                    own.start()
            return self._of_kind[kind]

    def care(self) -> None:
        """Starts workers where those that were alive have gone; to be called each second."""
        with self._changing:
            for each in self._of_kind.values():
                each.ensure_running()


def serve(
    session: Session,
    address: tuple[str, int],
    served: ServedOptions,
    models: ModelOptions,
    *,
    processes: int | None,
) -> int:
    """Serves until a signal.

    Raises:
        UsageError: the options of the model cannot be used, or workers started here would lack its key.
        ConfigError: the file of tokens cannot be used.
        InfrastructureError: the port cannot be had, or workers cannot be started.
    """
    asked = requested(session, served, models)
    access = session.access.connect()
    with ExitStack() as ending:
        workers = WorkersOfKinds(session, processes, ending)
        needs_key = processes or (processes is None and not access.count_workers(TURNS))
        if asked.missing is not None and needs_key:
            raise asked.missing.as_error()
        own = workers.work(TURNS)
        if processes != 0:  # others start when they start
            own.wait_until_alive()
        options = dataclasses.replace(asked.options, on_run=workers.work)

        async def until_signalled() -> None:
            """Serves until SIGINT or SIGTERM."""
            stop = stop_signal()
            async with _running(access, options, *address, workers.care) as url:
                ready = ServeReady(url, asked.token)
                if session.options.json:
                    session.output.document(ready)
                else:
                    session.output.data(shown(ready))
                    session.output.note("Ctrl-C ends it, once accepted turns are decided")
                await stop.wait()

        sys.setswitchinterval(SWITCH_S)
        asyncio.run(until_signalled())
    return 0


@contextmanager
def serving(session: Session, address: tuple[str, int], asked: Requested) -> Iterator[None]:
    """Serves from a thread of this process while the block runs, and drains at its end; starts no worker.

    Raises:
        InfrastructureError: the port cannot be had.
    """
    access = session.access.connect()
    with in_thread(lambda: _running(access, asked.options, *address), "serve") as url:
        ready = ServeReady(url, asked.token)
        if session.options.json:
            session.output.document(ready)
        session.output.note(f"serve    {shown(ready)}")
        yield


@asynccontextmanager
async def _running(
    access: Access,
    options: http_service.ServeOptions,
    host: str,
    port: int,
    care: Callable[[], object] = bool,
) -> AsyncIterator[str]:
    """Serves while the block runs; yields the base URL.

    Args:
        access: access to Redis, connected.
        options: how turns are taken.
        host: address to listen on.
        port: where to listen; 0 takes a free one.
        care: called each second in a thread; what it raises is logged.

    Raises:
        InfrastructureError: the port cannot be had.
    """
    silent = SilentConnections(raise_open_files() * 3 // 4)
    service = http_service.Service(access, options, silent.spoke)
    app = web.Application(middlewares=[service.guard], client_max_size=options.max_body_bytes)
    app.add_routes(service.routes())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=LAST_S)

    async def take_care() -> None:
        """Ends silent connections, follows the masters that sentinels name, and does what is to be done."""
        while True:
            await asyncio.sleep(CARE_S)
            silent.end(runner.server.connections if runner.server else [])
            try:
                await asyncio.to_thread(access.follow_masters)
                await asyncio.to_thread(care)
            except ProctorError as error:
                logger.warning("workers", extra={"reason": error.message})
            except Exception:  # a service without this care would not be noticed
                logger.exception("workers")

    try:
        async with listening(runner, host, port) as url:
            service.start()
            caring = asyncio.create_task(take_care())
            yield url
            caring.cancel()
            await service.drain()
    finally:
        await service.close()
