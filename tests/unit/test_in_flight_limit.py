"""Unit tests: how many items a process takes on and runs, over all its chunks and those of one run."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from worker.executors.claim_loop import ItemPool, PoolItem
from worker.in_flight_limit import InFlightLimit
from worker.loop import Loop
from worker.upstream.attempts import CallsMade


@pytest.fixture
def loop() -> Iterator[Loop]:
    """An event loop in a thread."""
    with closing(Loop()) as made:
        yield made


def admits(limit: InFlightLimit, items: int) -> bool:
    """Whether a chunk is admitted at once."""
    return limit.admit(items, lambda: True) is not None


def test_a_slow_item_holds_one_place_and_not_those_of_its_chunk() -> None:
    """Places become free one by one; what is returned twice, or beyond the chunk, counts once."""
    limit = InFlightLimit(4)
    first, second = limit.admit(4, lambda: True), limit.admit(4, lambda: True)
    assert first is not None
    assert second is not None
    assert not admits(limit, 1)
    first.release(3)  # 5 of the 6 that may be claimed
    assert admits(limit, 1)
    assert not admits(limit, 1)
    first.release(7)
    first.close()
    second.close()  # what is left is the chunk of one
    assert admits(limit, 5)
    assert not admits(limit, 1)


def test_chunks_of_one_run_share_its_slots_in_a_process(loop: Loop) -> None:
    """Two chunks of a run with two slots have two items in flight, not two each, and all items end."""
    slots, running, most = asyncio.Semaphore(2), 0, 0

    async def work(_: PoolItem) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1

    in_flight = InFlightLimit(10)
    pools = [ItemPool(loop, in_flight, work, slots=slots) for _ in range(2)]
    for pool in pools:
        pool.begin([PoolItem(CallsMade()) for _ in range(5)])
    for pool in pools:
        while pool.left:
            assert pool.collect(10.0), "no item ended"
    assert most == 2
