"""Follows an evaluation: prints one line per query, in order, as results arrive."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event
from typing import Final

from producer.cli.local.local_workers import LocalWorkers
from producer.queries.report import console
from producer.queries.report.opened_rows import OpenedQuery, opened
from shared.clock import now_ms
from shared.codecs.item_rows import ItemRow
from shared.codecs.parked_items import decode_parked
from shared.contracts.query_vocabulary import MAX_RETRIES
from shared.errors import RedisUnreachableError
from shared.runs import RunInfo, RunStore
from shared.upstream.failure_reasons import FailureReason

LOOK_EVERY_S: Final = 0.1
RATE_LIMITED: Final = FailureReason.RATE_LIMITED.api_code
"""Error code of a query whose retries are printed."""


class Lines:
    """Prints the lines of one run.

    Args:
        store: reads the run.
        run: its id.
        ids: of the queries of the file, in order.
        offset: how many of them are not of this run.
        write: prints text.
    """

    def __init__(
        self, store: RunStore, run: str, ids: list[str], offset: int, write: Callable[[str], object]
    ) -> None:
        self._store, self._run, self._ids, self._offset, self._write = store, run, ids, offset, write
        self._next = 0
        self._retries = dict[int, int]()

    def follow(self, local_workers: LocalWorkers) -> RunInfo:
        """Prints until the run has ended, and returns it; starts workers whenever none is left.

        Raises:
            InfrastructureError: the workers started here ended, or Redis stays away.
        """
        pause = Event()
        while True:
            info = self._store.info(self._run)
            self.catch_up(info)
            if info.is_final:
                return info
            with suppress(RedisUnreachableError):  # the next poll waits longer for Redis
                local_workers.ensure_running()
            pause.wait(LOOK_EVERY_S)

    def catch_up(self, info: RunInfo) -> None:
        """Prints what is new: results in order, so that one that is missing holds back those behind it."""
        for query in opened(self._new(info)):
            if query.result is not None:
                of = len(self._ids)
                line = console.query_line(query.shown, number=self._offset + self._next, of=of)
                self._write(line)
        if not info.is_final:
            self._print_retries()

    def _new(self, info: RunInfo) -> Iterator[ItemRow]:
        reader = self._store.item_reader(self._run, with_open=False)
        for page in reader.pages(info.total, first=self._next):
            for row in page:
                if row.index > self._next and not info.is_final:
                    return
                self._next = row.index + 1
                yield row

    def _print_retries(self) -> None:
        for index, attempt in self._store.tries(self._run).items():
            is_new = self._retries.get(index, 0) < attempt.attempts
            if is_new and decode_parked(attempt.parked_state).history.code == RATE_LIMITED:
                self._retries[index] = attempt.attempts
                name, wait_s = self._ids[self._offset + index], _left_s(attempt.not_before_ms)
                self._write(console.retry_line(name, retry=attempt.attempts, of=MAX_RETRIES, wait_s=wait_s))


def queries_of(store: RunStore, run: str) -> dict[str, OpenedQuery]:
    """Reads the queries of a run that have a result, by their ids and in order."""
    queries = (query for page in store.item_pages(run) for query in opened(page))
    return {query.result.id: query for query in queries if query.result is not None}


def _left_s(due_ms: int) -> int:
    return max(0, round((due_ms - now_ms()) / 1000))
