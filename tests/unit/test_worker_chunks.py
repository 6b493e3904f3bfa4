"""The chunks a process holds: tokens, renewal, what the ledger says of their runs, the drain."""

import threading

from shared.ledger import Held
from worker.chunks import LOST, Chunks


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
    chunks.heard(chunks.held(), ["paused", "running", LOST])
    assert [chunks.should_stop(lease) for lease in leases] == [True, False, True]
    assert [held.run for held in chunks.held()] == ["paused", "fine"]


def test_news_of_a_chunk_that_ended_meanwhile_are_dropped() -> None:
    """An answer may come after the chunk was given back."""
    chunks = Chunks("w")
    lease = chunks.open("r", "0")
    lease.is_held = True
    held = chunks.held()
    chunks.close(lease)
    chunks.heard(held, [LOST])
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
