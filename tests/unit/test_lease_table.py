"""The leases a process holds: tokens, renewal, what the ledger says of their runs, the drain."""

import asyncio
import threading
from time import monotonic

import pytest

from shared.ledger import HeldLease
from worker.lease_table import LOST, LeaseTable


def test_every_delivery_has_its_own_token() -> None:
    """The same chunk twice, and the same name in a later life, never share a token; none has a space."""
    first, second = LeaseTable("turns-1.7@host"), LeaseTable("turns-1.7@host")
    tokens = [table.open("r", "0").token for table in (first, first, second, second)]
    assert len(set(tokens)) == 4
    assert not [token for token in tokens if " " in token]


def test_only_what_the_ledger_gave_us_is_renewed() -> None:
    """A chunk is renewed from its claim to its last commit."""
    table = LeaseTable("w")
    lease = table.open("r", "0")
    assert table.held() == []
    lease.is_held = True
    assert table.held() == [HeldLease("r", "0", lease.token)]
    table.close(lease)
    assert table.held() == []
    assert table.closed_within(60) == [HeldLease("r", "0", lease.token)]
    assert table.closed_within(-1) == []


def test_news_of_a_run_reach_its_chunks() -> None:
    """Pause, cancel and a lost lease stop the chunk they are about, and no other."""
    table = LeaseTable("w")
    leases = [table.open(run, "0") for run in ("paused", "fine", "lost")]
    for lease in leases:
        lease.is_held = True
    table.update(table.held(), ["paused", "running", LOST], asked_s=monotonic())
    assert [table.should_stop(lease) for lease in leases] == [True, False, True]
    assert [held.run for held in table.held()] == ["paused", "fine"]


def test_news_of_a_chunk_that_ended_meanwhile_are_dropped() -> None:
    """An answer may come after the chunk was given back."""
    table = LeaseTable("w")
    lease = table.open("r", "0")
    lease.is_held = True
    held = table.held()
    table.close(lease)
    table.update(held, [LOST], asked_s=monotonic())
    assert not lease.is_lost


def test_a_drain_stops_every_chunk() -> None:
    """Once the process is to end, no thread begins another item."""
    table = LeaseTable("w")
    lease = table.open("r", "0")
    table.drain()
    assert table.should_stop(lease)
    assert table.is_draining


def test_waiting_ends_with_the_last_chunk() -> None:
    """Who waits for the process to be idle is woken when the last thread is done."""
    table = LeaseTable("w")
    lease = table.open("r", "0")
    assert not table.wait_until_idle(0)
    threading.Timer(0.05, lambda: table.close(lease)).start()
    assert table.wait_until_idle(10)


def test_a_lease_that_was_heard_of_lately_is_ours() -> None:
    """A call may begin at once; not for a chunk that was closed or lost."""
    table = LeaseTable("w", max_age_s=60)
    ours, lost, closed = (table.open("r", str(number)) for number in range(3))
    lost.state = LOST
    table.close(closed)
    found = [asyncio.run(table.confirm(lease.token)) for lease in (ours, lost, closed)]
    assert found == [True, False, False]


@pytest.mark.parametrize(("state", "is_ours"), [("running", True), (LOST, False)])
def test_a_process_that_stood_still_waits_for_the_ledger(state: str, *, is_ours: bool) -> None:
    """A call for a lease that was not heard of for long begins after the next renewal, if that is good."""
    table = LeaseTable("w", max_age_s=60)
    lease = table.open("r", "0")
    lease.is_held, lease.asked_s = True, monotonic() - 61

    async def both() -> bool:
        """Asks, and has the answer of a renewal come in meanwhile."""
        asked = asyncio.ensure_future(table.confirm(lease.token))
        await asyncio.sleep(0)
        assert not asked.done()
        table.update(table.held(), [state], asked_s=monotonic())
        return await asked

    assert asyncio.run(both()) is is_ours
