"""Memory does not grow with the size of a run: neither for loading it nor for reading its results."""

import io
import os
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producer.document import run_document
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from producer.turns.load import MAX_LINE_BYTES
from producer.turns.report.to_jsonl import JsonlReport
from shared.errors import InputError
from tests.support.inline_worker import InlineWorker
from tests.support.turn_files import read_turns

if TYPE_CHECKING:
    import redis

SMALL, LARGE = 1_500, 4_500
"""Threads of ten turns: 15,000 and 45,000 turns, both above what is in memory at a time."""
GROWTH_BYTES = 3_000_000
"""Allowed, since what is under way at a time differs: a third of the lines that the larger run has more."""


class Generated(io.RawIOBase):
    """A stream of turns that is nowhere in memory as a whole."""

    def __init__(self, threads: int) -> None:
        self._lines, self._rest = self._made(threads), b""

    def readable(self) -> bool:
        """It is read only."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Hands out a line at a time, as a slow pipe does."""
        line = self._rest or next(self._lines, b"")
        taken = min(len(line), len(buffer))
        buffer[:taken] = line[:taken]
        self._rest = line[taken:]
        return taken

    def _made(self, threads: int) -> Iterator[bytes]:
        for thread in range(threads):
            for turn in range(10):
                yield b'{"threadId":"t%d","message":"turn %d %s"}\n' % (thread, turn, b"x" * 250)


def peak_of(act: Callable[[], object]) -> int:
    """Most bytes that Python held at a time while something was done."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_memory_is_flat(redis_client: "redis.Redis") -> None:
    """Three times the turns need no more memory, when they are loaded and when they are read and reported."""
    worker = InlineWorker(redis_client)
    runs = list[str]()

    def load(threads: int) -> None:
        source = Source("-", stdin=io.BufferedReader(Generated(threads)))
        runs.append(submit(worker.ledger, worker, source, options=SubmitOptions(await_disk=False)).run)

    load(SMALL)  # imports and caches are paid here
    loaded = [peak_of(partial(load, threads)) for threads in (SMALL, LARGE)]
    assert loaded[1] - loaded[0] < GROWTH_BYTES, loaded
    worker.register()
    worker.work()
    with Path(os.devnull).open("wb") as nowhere:
        reports = {run: JsonlReport(nowhere, worker.store.info(run)) for run in runs}
        read = [peak_of(partial(run_document, worker.store, run, reports=[reports[run]])) for run in runs[1:]]
    assert read[1] - read[0] < GROWTH_BYTES, read


def test_an_endless_line_needs_a_bounded_amount(tmp_path: Path) -> None:
    """A line of 200 MB is refused after its first megabyte; it is never in memory."""
    path = tmp_path / "endless.jsonl"
    with path.open("wb") as stream:
        stream.write(b'{"threadId":"')
        stream.seek(200_000_000)
        stream.write(b"x")

    def read() -> None:
        with pytest.raises(InputError, match="longer than"):
            read_turns(Source(path))

    assert peak_of(read) < 8 * MAX_LINE_BYTES
