"""Reads the results of a turns run while it is in progress, each once and in input order.

A command that follows a run can write reports meanwhile, so that little is left to do when it has ended.
"""

from collections import deque
from collections.abc import Iterator

from shared.runs.info import RunInfo, RunStore
from shared.runs.pages import ChunkFields, Page


class GrowingRun:
    """The position of the reader.

    Args:
        run: id of a turns run that has been sealed.
        with_payload: whether rows contain the turn's line of the input.
    """

    def __init__(self, run: str, *, with_payload: bool = False) -> None:
        self._run, self._with_payload = run, with_payload
        self._left: deque[ChunkFields] | None = None

    @property
    def is_read(self) -> bool:
        """Whether nothing is left to be read."""
        return self._left is not None and not self._left

    def next(self, store: RunStore) -> Iterator[Page] | None:
        """Returns the pages of the next chunk; None as long as it is not decided, and at the end.

        Raises:
            RedisUnreachableError: Redis is unavailable; the next call continues from the same position.
        """
        left = self._chunks(store)
        if not left or store.is_open(self._run, left[0]):
            return None
        # A chunk that was dropped by a cancel is closed too.
        reader = store.reader(self._run, with_open=False, with_payload=self._with_payload)
        pages = reader.complete(left[0])
        if pages is not None:
            left.popleft()
        return pages

    def rest(self, store: RunStore, info: RunInfo) -> Iterator[Page] | None:
        """Returns what is left to be read of a run that has ended; None if what was read is not final.

        Args:
            store: reads the run.
            info: its state.

        Raises:
            RedisUnreachableError: Redis stays away.
        """
        if info.generation:
            return None  # turns were retried meanwhile, and may have been read before
        reader = store.reader(self._run, with_open=info.is_final, with_payload=self._with_payload)
        return reader.pages(self._chunks(store))

    def _chunks(self, store: RunStore) -> deque[ChunkFields]:
        if self._left is None:
            self._left = deque(store.chunks(self._run))
        return self._left
