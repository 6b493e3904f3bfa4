"""The chunks a process holds: tokens, renewal, what the ledger says of their runs, the drain."""

import asyncio
import threading
from time import monotonic

import pytest

from shared.ledger import Held
from worker.lease_table import LOST, Chunks


def test_every_delivery_has_its_own_token() -> None:
    """The same chunk twice, and the same name in a later life, never share a token; none has a space."""
    first, second = Chunks("turns-1.7@host"), Chunks("turns-1.7@host")
    tokens = [chunks.open("r", "0").token for chunks in (first, first, second, second)]
    assert len(set(tokens)) == 4
    assert not [token for token in tokens if " " in token]


def test_only_what_the_ledger_gave_us_is_renewed() -> None:
    """A chunk is renewed from its claim to its last commit."""
    chunks = Chunks("w")
    lease = chunks.open("r", "0")
    assert chunks.held() == []
    lease.is_held = True
    assert chunks.held() == [Held("r", "0", lease.token)]
    chunks.close(lease)
    assert chunks.held() == []


def test_news_of_a_run_reach_its_chunks() -> None:
    """Pause, cancel and a lost lease stop the chunk they are about, and no other."""
    chunks = Chunks("w")
    leases = [chunks.open(run, "0") for run in ("paused", "fine", "lost")]
    for lease in leases:
        lease.is_held = True
    chunks.heard(chunks.held(), ["paused", "running", LOST], asked_s=monotonic())
    assert [chunks.should_stop(lease) for lease in leases] == [True, False, True]
    assert [held.run for held in chunks.held()] == ["paused", "fine"]


def test_news_of_a_chunk_that_ended_meanwhile_are_dropped() -> None:
    """An answer may come after the chunk was given back."""
    chunks = Chunks("w")
    lease = chunks.open("r", "0")
    lease.is_held = True
    held = chunks.held()
    chunks.close(lease)
    chunks.heard(held, [LOST], asked_s=monotonic())
    assert not lease.is_lost


def test_a_drain_stops_every_chunk() -> None:
    """Once the process is to end, no thread begins another item."""
    chunks = Chunks("w")
    lease = chunks.open("r", "0")
    chunks.drain()
    assert chunks.should_stop(lease)
    assert chunks.is_draining


def test_waiting_ends_with_the_last_chunk() -> None:
    """Who waits for the process to be idle is woken when the last thread is done."""
    chunks = Chunks("w")
    lease = chunks.open("r", "0")
    assert not chunks.wait_until_idle(0)
    threading.Timer(0.05, lambda: chunks.close(lease)).start()
    assert chunks.wait_until_idle(10)


def test_a_lease_that_was_heard_of_lately_is_ours() -> None:
    """A call may begin at once; not for a chunk that was closed or lost."""
    chunks = Chunks("w", doubt_s=60)
    ours, lost, closed = (chunks.open("r", str(number)) for number in range(3))
    lost.state = LOST
    chunks.close(closed)
    found = [asyncio.run(chunks.confirm(lease.token)) for lease in (ours, lost, closed)]
    assert found == [True, False, False]


@pytest.mark.parametrize(("state", "is_ours"), [("running", True), (LOST, False)])
def test_a_process_that_stood_still_waits_for_the_ledger(state: str, *, is_ours: bool) -> None:
    """A call for a lease that was not heard of for long begins after the next renewal, if that is good."""
    chunks = Chunks("w", doubt_s=60)
    lease = chunks.open("r", "0")
    lease.is_held, lease.asked_s = True, monotonic() - 61

    async def both() -> bool:
        """Asks, and has the answer of a renewal come in meanwhile."""
        asked = asyncio.ensure_future(chunks.confirm(lease.token))
        await asyncio.sleep(0)
        assert not asked.done()
        chunks.heard(chunks.held(), [state], asked_s=monotonic())
        return await asked

    assert asyncio.run(both()) is is_ours
