"""One process's upstream discipline for tests, and as a program: a process that calls through a shared limit.

    python -m tests.support.upstream URL '{"rpm": 6000, "concurrency": 8, "calls": 200, "hold_s": 0.05}'

prints `calling` when its first call is under way and, as one JSON line at its end, the spans of its calls.
"""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import aiohttp

from shared.clock import now_ms
from shared.errors import RedisUnreachableError
from shared.ledger.ledger import Ledger
from shared.ledger.times import Times
from shared.server.client import RedisTarget
from shared.upstream.limits import Limits
from tests.support.eventually import eventually
from tests.support.processes import SHORT_LEASE_S
from worker.outcomes import Deferred
from worker.upstream.endpoints import Endpoint, api_endpoint
from worker.upstream.gate import Sent, always
from worker.upstream.stack import UpstreamStack

if TYPE_CHECKING:
    import redis

T = TypeVar("T")
TIMES: Final = Times.of(SHORT_LEASE_S)
"""Of the protocol, as programs under test have them."""
API = "http://api.example"


@asynccontextmanager
async def discipline(
    client: "redis.Redis",
    *,
    patience_s: float = 10.0,
    away: list[RedisUnreachableError] | None = None,
    confirm: Callable[[str], Awaitable[bool]] = always,
) -> AsyncIterator[UpstreamStack]:
    """The discipline of one process, on the running loop."""
    reports: list[RedisUnreachableError] = [] if away is None else away
    sessions: list[aiohttp.ClientSession] = []

    def session() -> aiohttp.ClientSession:
        """The loop's session, made when first asked for."""
        if not sessions:
            sessions.append(aiohttp.ClientSession())
        return sessions[0]

    ledger = Ledger(client, patience_s=patience_s, times=TIMES)
    upstream = UpstreamStack(ledger, on_unreachable=reports.append, session=session, confirm=confirm)
    try:
        yield upstream
    finally:
        await asyncio.get_running_loop().run_in_executor(None, upstream.close)
        for each in sessions:
            await each.close()


async def at_last(upstream: UpstreamStack, endpoint: Endpoint, send: Any, **options: Any) -> Any:
    """Calls, and comes back when it is due, as parked items do."""
    while True:
        outcome = await called(upstream, endpoint, send, **options)
        if not isinstance(outcome, Deferred):
            return outcome
        await asyncio.sleep(max(0, outcome.due_ms - now_ms()) / 1000)


async def called(upstream: UpstreamStack, endpoint: Endpoint, send: Any, **options: Any) -> Any:
    """Calls once; returns that the call was deferred, too."""
    try:
        return await upstream.gate.call(endpoint, send, **options)
    except Deferred as later:
        return later


async def soon(assertion: Callable[[], T], within_s: float = 10.0) -> T:
    """`eventually` for coroutines: what a call's end says reaches Redis a moment after the call."""
    return await asyncio.get_running_loop().run_in_executor(None, eventually, assertion, within_s)


class Calls:
    """Calls that take a while, and when each was under way."""

    def __init__(self, hold_s: float = 0.02) -> None:
        self.hold_s = hold_s
        self.spans: list[tuple[float, float]] = []
        self.under_way = self.most = 0
        self.begun = asyncio.Event()

    async def send(self) -> Sent[str]:
        """Makes one call."""
        began = time()
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.begun.set()
        try:
            await asyncio.sleep(self.hold_s)
        finally:
            self.under_way -= 1
        self.spans.append((began, time()))
        return Sent("answer")


def overlap(spans: list[tuple[float, float]]) -> int:
    """The most spans that hold at one moment."""
    most = now = 0
    for _, step in sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans]):
        now += step
        most = max(most, now)
    return most


def keep_time(client: "redis.Redis", until: threading.Event) -> threading.Thread:
    """Ticks now and then, as every worker does: without ticks the ledger clock stands still."""
    ledger = Ledger(client, times=TIMES)

    def tick() -> None:
        while not until.wait(TIMES.period_ms / 1000):
            ledger.tick("timekeeper", ["cases"], 1)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    return thread


async def _work(url: str, options: dict[str, Any]) -> None:
    calls = Calls(options["hold_s"])
    limits = Limits(rpm=options.get("rpm"), concurrency=options.get("concurrency"))
    endpoint = api_endpoint(API, limits=limits, timeout_s=600)
    async with discipline(RedisTarget.parse(url).client()) as upstream:
        work = asyncio.gather(*(at_last(upstream, endpoint, calls.send) for _ in range(options["calls"])))
        await calls.begun.wait()
        print("calling", flush=True)  # noqa: T201 - whoever started us waits for it
        await work
    print(json.dumps(calls.spans), flush=True)  # noqa: T201 - what the test reads


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], json.loads(sys.argv[2])))
