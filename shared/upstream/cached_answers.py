"""Counts and clears the answers of models that are kept for identical requests.

The scripts of `worker/upstream` read and write them; this file is what `proctor cache` uses.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shared import keys

if TYPE_CHECKING:
    from shared.ledger.calls import ScriptCaller

PAGE: Final = 1_000
"""Keys that are looked at in one round trip."""


class CacheInfo(NamedTuple):
    """Contents and hit rate of the cache."""

    answers: int
    """Answers that are kept."""
    bytes: int
    """Their size."""
    hits: int
    """Requests that were answered from it since it was cleared last."""
    misses: int
    """Requests that were sent to a model."""

    @property
    def hit_rate(self) -> float | None:
        """Share of requests that it answered; None before the first.

        >>> CacheInfo(1, 10, 3, 1).hit_rate, CacheInfo(0, 0, 0, 0).hit_rate
        (0.75, None)
        """
        requests = self.hits + self.misses
        return self.hits / requests if requests else None


class AnswerBook:
    """The kept answers, in Redis.

    Args:
        caller: a connection; `Ledger.caller` is one.
    """

    def __init__(self, caller: "ScriptCaller") -> None:
        self._caller = caller
        self._client: Any = caller.client

    def info(self) -> CacheInfo:
        """Counts what is there."""
        answers = size = 0
        for names in self._pages():
            sizes = self._sizes(names)
            answers += sum(each > 0 for each in sizes)
            size += sum(sizes)
        found = self._patiently("hmget", keys.CACHE_HITS_KEY, "hits", "misses")
        hits, misses = (int(value or 0) for value in found)
        return CacheInfo(answers, size, hits, misses)

    def clear(self) -> int:
        """Clears all answers and the counts; returns how many answers there were.

        Answers of calls in flight are cached when they arrive.
        """
        gone = 0
        for names in self._pages():
            gone += int(self._patiently("unlink", *names))
        self._patiently("unlink", keys.CACHE_HITS_KEY)
        return gone

    def _pages(self) -> Iterator[list[bytes]]:
        """Finds the answers; one that comes or goes meanwhile may be missing, or come twice."""
        cursor, pattern = 0, keys.answer_key("*")
        while True:
            cursor, names = self._patiently("scan", cursor, pattern, PAGE)
            if names:
                yield names
            if cursor == 0:
                return

    def _sizes(self, names: list[bytes]) -> list[int]:
        def read() -> list[int]:
            with self._client.pipeline(transaction=False) as pipeline:
                for name in names:
                    pipeline.strlen(name)
                return list(pipeline.execute())

        return self._caller.patiently(read)

    def _patiently(self, command: str, *arguments: Any) -> Any:
        return self._caller.patiently(lambda: getattr(self._client, command)(*arguments))
