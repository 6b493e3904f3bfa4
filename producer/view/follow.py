"""Follows what open pages show, for as long as they are open, also while Redis is away for a while."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from time import monotonic
from typing import Final

import msgspec

from producer.access import Access
from producer.following import Meter, Progress
from producer.following.follower import Follower
from producer.run_standing import counted
from producer.streams import is_stream, namespace_of
from producer.view import desk, html_pages
from producer.view.cards import Card, RunPace, card_of
from producer.view.links import Links
from producer.view.stream_lines import stream_line
from shared.clock import now_ms
from shared.errors import RedisUnreachableError, UnknownRunError
from shared.runs import RunInfo

ALL_RUNS: Final = ""
"""The topic of the page of all runs; others are ids of runs, and names of streams."""
EVERY_S: Final = 0.5
"""Between two looks at the fleet and at runs that have ended."""
AWAY: Final = "Redis does not answer; this page goes on when it is back."


class PageParts(msgspec.Struct, frozen=True):
    """What replaces parts of a page, and what the table of it consists of now."""

    parts: Mapping[str, str] = {}
    """HTML by the name of its place."""
    state: str = ""
    """Changes when rows or runs have changed."""
    away: str = ""
    """What to say while there is nothing new to show."""


def _message(shown: PageParts) -> str:
    return msgspec.json.encode(shown).decode()


class Following:
    """Makes the followers of topics.

    Args:
        access: access to Redis, connected.
        links: the addresses of pages.
    """

    def __init__(self, access: Access, links: Links) -> None:
        self._access, self._links = access, links

    async def __call__(self, topic: str) -> AsyncIterator[str]:
        """Yields what is to be shown of a topic."""
        while True:
            try:
                async for shown in self._shown(topic):
                    yield _message(shown)
            except UnknownRunError:
                yield _message(PageParts(away="This run is gone: it was removed, or it expired."))
                return
            except RedisUnreachableError:
                yield _message(PageParts(away=AWAY))
                await asyncio.to_thread(self._access.revive)
            await asyncio.sleep(EVERY_S)

    def _shown(self, topic: str) -> AsyncIterator[PageParts]:
        if topic == ALL_RUNS:
            return self._runs()
        return self._stream(namespace_of(topic)) if is_stream(topic) else self._run(topic)

    async def _stream(self, namespace: str) -> AsyncIterator[PageParts]:
        """Yields the totals of a stream."""
        while True:
            found = await asyncio.to_thread(desk.stream_look, self._access, namespace)
            yield PageParts({"card": html_pages.stream_card_html(found.card)}, str(found.state.last))
            await asyncio.sleep(EVERY_S)

    async def _runs(self) -> AsyncIterator[PageParts]:
        """Yields runs that go on, and the fleet."""
        meters = dict[str, Meter]()
        while True:
            found = await asyncio.to_thread(desk.look, self._access, desk.WATCHED)
            open_runs = [info for info in found.runs if not info.is_final]
            meters = {info.run: meters.get(info.run, Meter()) for info in open_runs}
            cards = list[Card]()
            for info in open_runs:
                per_s = meters[info.run].rate(monotonic(), info.done)
                workers = int(info.kind in found.worked_on)
                pace = await asyncio.to_thread(desk.pace_now, self._access, info, workers, per_s)
                cards.append(card_of(info, pace, now_ms()))
            parts = {
                "live": html_pages.live_html(list(map(stream_line, found.streams)), cards, self._links),
                "fleet": html_pages.fleet_html(desk.fleet_box(found)),
            }
            state = " ".join(f"{info.run}:{info.state}" for info in found.runs)
            yield PageParts(parts, state)
            await asyncio.sleep(EVERY_S)

    async def _run(self, run: str) -> AsyncIterator[PageParts]:
        """Yields one run, until and after its end: it may be retried."""
        await asyncio.to_thread(self._access.impatient_store.info, run)  # there is one, and Redis answers
        follower = Follower(self._access, run)
        async for progress in follower:
            info = await asyncio.to_thread(counted, self._access.impatient_store, follower.info)
            card = card_of(info, pace_of(progress), now_ms())
            yield PageParts({"card": html_pages.card_html(card, self._links)}, _state(info))
        while True:
            await asyncio.sleep(EVERY_S)
            info = await asyncio.to_thread(self._access.impatient_store.info, run)
            if not info.is_final:
                return


def pace_of(progress: Progress) -> RunPace:
    """Returns what following a run tells of it."""
    calls = progress.calls
    return RunPace(
        progress.rate_s,
        progress.why,
        calls.in_flight,
        calls.spent_usd,
        calls.cap_usd,
        [*calls.limits, *filter(None, [calls.parked])],
        progress.workers,
    )


def _state(info: RunInfo) -> str:
    return f"{info.state}:{info.generation}:{info.done}"
