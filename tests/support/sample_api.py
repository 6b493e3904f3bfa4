"""Asks the sample API over real sockets: a small client, and a server for each thing to be done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, Final, TypeVar

import aiohttp

from producer.load.baselines import load_baselines
from producer.sample_api.behaviour import RequestLog, parse_behaviour
from producer.sample_api.server import running
from shared.upstream.failure_reasons import FailureReason
from tests.support.tree import ROOT
from worker.queries.checks import query_result
from worker.queries.reply import MAX_REPLY_BYTES, Reply, failed_reply, read_reply

BASELINES: Final = ROOT / "examples" / "copilot" / "data" / "evaluation_baselines.json"
QUERY: Final = "How long is a binding tariff ruling valid?"
T = TypeVar("T")
Client = tuple[aiohttp.ClientSession, str]


@asynccontextmanager
async def client(behaviour: str = "normal", *, log: RequestLog | None = None) -> AsyncIterator[Client]:
    """A session, and the URL of a server of its own."""
    async with (
        running(parse_behaviour(behaviour), log=log) as url,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session,
    ):
        yield session, url


async def ask(at: Client, query: str = QUERY, **headers: str) -> Reply:
    """Asks one query, as far as this test needs a client."""
    session, url = at
    began = perf_counter()
    try:
        async with session.post(f"{url}/api/query", json={"query": query}, headers=headers) as response:
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > MAX_REPLY_BYTES:
                    break
            latency = round(1000 * (perf_counter() - began))
            return read_reply(status_code=response.status, body=bytes(body), latency_ms=latency)
    except aiohttp.ClientError:
        return failed_reply(FailureReason.CONNECTION_LOST, round(1000 * (perf_counter() - began)))


def meeting(behaviour: str, what: Callable[[Client], Awaitable[T]]) -> T:
    """Does something with a server that behaves so."""

    async def inside() -> T:
        """Has the server while it does so."""
        async with client(behaviour) as at:
            return await what(at)

    return asyncio.run(inside())


def evaluate(behaviour: str = "normal") -> list[dict[str, Any]]:
    """Puts all fifty packaged queries to a server, one after the other."""

    async def inside(at: Client) -> list[dict[str, Any]]:
        """Asks and judges."""
        return [
            query_result(baseline, await ask(at, baseline["query"]))
            for baseline in load_baselines(str(BASELINES))
        ]

    return meeting(behaviour, inside)
