"""Sentinels name another master: what still talks to the old one leaves it, also what only waits."""

import socket
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pytest
from redis.exceptions import ConnectionError as NoConnectionError

from shared.queues import WakeQueues
from shared.server.client import RedisTarget
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer
from worker.transport import end_waiting

WATCHED: Final = RedisTarget.parse("sentinel://one/main")


class Group(NamedTuple):
    """A server with two addresses, the second of which sentinels name later, and a client that asks them."""

    named: list[tuple[str, int]]
    """What the sentinels answer, the last one; empty: they do not."""
    client: Any

    def discover_master(self, _name: str) -> tuple[str, int]:
        """Answers as the sentinels do."""
        if not self.named:
            raise NoConnectionError("nobody answers")
        return self.named[-1]

    def move(self) -> None:
        """Makes the other address that of the master."""
        self.named.append(("localhost", self.named[0][1]))


@pytest.fixture
def group(redis_server: RedisServer) -> Iterator[Group]:
    """A server whose sentinels are in the test."""
    port = free_port()
    with redis_server.client() as admin, closing(WATCHED.client()) as client:
        admin.config_set("port", port)
        found = Group([("127.0.0.1", port)], client)
        found.client.connection_pool.proxy.sentinel_manager = found
        yield found
        admin.config_set("port", 0)


def test_connections_to_a_replaced_master_are_closed(group: Group) -> None:
    """Idle ones at once, those in use when they are given back; silent sentinels change nothing."""
    pool = group.client.connection_pool
    in_use, idle = pool.get_connection(), pool.get_connection()
    pool.release(idle)
    assert WATCHED.follow_master(group.client) == group.named[0]
    assert idle._sock is not None
    group.move()
    assert WATCHED.follow_master(group.client) == group.named[-1]
    assert (idle._sock, in_use._sock is None) == (None, False)
    pool.release(in_use)
    assert in_use._sock is None
    assert group.client.ping()
    assert idle.host == "localhost"
    group.named.clear()
    assert WATCHED.follow_master(group.client) is None
    assert idle._sock is not None


def test_wake_ups_go_to_the_new_master_at_once(group: Group) -> None:
    """A change is told once, and what is published next takes a new connection."""
    queues = WakeQueues(WATCHED, group.client)
    closed = list[bool]()
    pool = SimpleNamespace(disconnect=lambda **_: closed.append(True))
    producer: Any = SimpleNamespace(channel=SimpleNamespace(pool=pool), batch=lambda _: None)
    assert not queues.follow_master()
    queues.batch(producer)
    group.move()
    assert [queues.follow_master(), queues.follow_master()] == [True, False]
    assert not closed
    queues.batch(producer)
    queues.batch(producer)
    assert closed == [True]
    group.named.clear()
    assert not queues.follow_master()
    assert not WakeQueues(RedisTarget.parse("redis://db")).follow_master(), "nobody watches it"


def test_a_worker_that_waits_for_messages_of_an_old_master_is_woken() -> None:
    """Its connection ends as if the server had gone; Celery then asks the sentinels."""
    ours, servers = socket.socketpair()
    events, far = socket.socketpair()
    with ours, servers, events, far:
        known = {("channel", "client", "BRPOP"): ours, ("channel", "client", "LISTEN"): events}
        cycle = SimpleNamespace(_chan_to_sock=known)
        end_waiting(SimpleNamespace(transport=SimpleNamespace(cycle=cycle)))
        assert ours.recv(1) == b""
        events.settimeout(0)
        with pytest.raises(BlockingIOError):
            events.recv(1)
