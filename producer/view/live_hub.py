"""One follower for all tabs that look at the same thing, and none for what nobody looks at."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field

Follow = Callable[[str], AsyncIterator[str]]
"""Yields what is to be shown of a topic, each time the whole of it; ends when its last listener has gone."""


@dataclass(slots=True, eq=False)
class _Topic:
    """What is known of a topic, for its listeners."""

    listeners: int = 0
    shown: str = ""
    version: int = 0
    is_over: bool = False
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    task: "asyncio.Task[None] | None" = None


class Hub:
    """Follows each topic once, while somebody listens; a slow listener misses what is out of date.

    Args:
        follow: makes the follower of a topic.
    """

    def __init__(self, follow: Follow) -> None:
        self._follow = follow
        self._topics: dict[str, _Topic] = {}

    @property
    def topics(self) -> list[str]:
        """Those that are followed now."""
        return list(self._topics)

    async def listen(self, name: str) -> AsyncGenerator[str, None]:
        """Yields what is to be shown of a topic, from its present state."""
        topic = self._topics.setdefault(name, _Topic())
        topic.listeners += 1
        if topic.task is None:
            topic.task = asyncio.create_task(self._run(name, topic))
        seen = 0
        try:
            while True:
                async with topic.changed:
                    while topic.version == seen and not topic.is_over:
                        await topic.changed.wait()
                if topic.version == seen:
                    return
                seen = topic.version
                yield topic.shown
        finally:
            topic.listeners -= 1
            if not topic.listeners:
                self._forget(name, topic)
                topic.task.cancel()

    async def close(self) -> None:
        """Ends all followers."""
        for topic in list(self._topics.values()):
            if topic.task is not None:
                topic.task.cancel()
                with suppress(asyncio.CancelledError):
                    await topic.task

    async def _run(self, name: str, topic: _Topic) -> None:
        try:
            async for shown in self._follow(name):
                if shown != topic.shown:
                    await self._tell(topic, shown)
        finally:
            topic.is_over = True
            self._forget(name, topic)
            with suppress(asyncio.CancelledError):
                await self._tell(topic, topic.shown, is_news=False)

    def _forget(self, name: str, topic: _Topic) -> None:
        if self._topics.get(name) is topic:
            del self._topics[name]

    async def _tell(self, topic: _Topic, shown: str, *, is_news: bool = True) -> None:
        async with topic.changed:
            topic.shown, topic.version = shown, topic.version + is_news
            topic.changed.notify_all()
