"""Runs the sample API: inside an event loop, in a thread, or as a program of its own until a signal comes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Final

from aiohttp import web

from producer.http_server import in_thread, listening, stop_signal
from producer.sample_api import DEFAULT_PORT
from producer.sample_api.behaviour import Behaviour, RequestLog
from producer.sample_api.handlers import (
    BEHAVIOUR,
    INDEX,
    LOG,
    PACE,
    answer_prompt,
    answer_query,
    answer_texts,
    get_health,
    get_index,
    get_models,
    get_requests,
)
from producer.sample_api.index_page import MODELS
from producer.sample_api.knowledge import load_knowledge
from producer.sample_api.models import COMPLETIONS, EMBEDDINGS
from producer.sample_api.pace import Pace
from producer.sample_api.retrieval import Index
from shared.contracts.query_vocabulary import QUERY_ENDPOINT

LOOPBACK: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 10 * 1024

_SHUTDOWN_S: Final = 0.5


def create_app(
    behaviour: Behaviour | None = None, *, log: RequestLog | None = None, pace: Pace | None = None
) -> web.Application:
    """Builds the application.

    Args:
        behaviour: what requests meet; by default they are answered.
        log: counts the requests; pass one to look at it.
        pace: how long answers take; by default as fast as tests want it.
    """
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app[INDEX] = Index(load_knowledge())
    app[BEHAVIOUR] = behaviour or Behaviour()
    app[LOG] = log or RequestLog()
    app[PACE] = pace or Pace()
    app.router.add_get("/", get_index)
    app.router.add_get(MODELS, get_models)
    app.router.add_post(QUERY_ENDPOINT, answer_query)
    app.router.add_post(COMPLETIONS, answer_prompt)
    app.router.add_post(EMBEDDINGS, answer_texts)
    app.router.add_get("/api/health", get_health)
    app.router.add_get("/api/requests", get_requests)
    return app


@asynccontextmanager
async def running(
    behaviour: Behaviour | None = None,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    log: RequestLog | None = None,
    pace: Pace | None = None,
) -> AsyncIterator[str]:
    """Serves while the block runs; yields the base URL. Port 0 takes a free one.

    Raises:
        InfrastructureError: the port cannot be had.
    """
    app = create_app(behaviour, log=log, pace=pace)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S)
    async with listening(runner, host, port, hint="choose another port: --port 3001") as url:
        yield url


def serve(
    port: int = DEFAULT_PORT,
    behaviour: Behaviour | None = None,
    *,
    host: str = LOOPBACK,
    pace: Pace | None = None,
    on_ready: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        port: where to listen; 0 takes a free port.
        behaviour: what requests meet.
        host: the address to listen on.
        pace: how long answers take.
        on_ready: called with the base URL once requests are accepted.

    Raises:
        InfrastructureError: the port cannot be had.
    """

    async def until_signalled() -> None:
        """Serves until one of the two signals comes."""
        stop = stop_signal()
        async with running(behaviour, host=host, port=port, pace=pace) as url:
            on_ready(url)
            await stop.wait()

    asyncio.run(until_signalled())


def in_background(
    behaviour: Behaviour | None = None, *, log: RequestLog | None = None, pace: Pace | None = None
) -> AbstractContextManager[str]:
    """Serves from a thread while the block runs, for callers without an event loop; yields the base URL."""
    return in_thread(lambda: running(behaviour, log=log, pace=pace), "sample-api")
