"""People talk to `proctor serve` while servers, workers and Redis fail: each turn counts once, in order."""

import logging
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from http import HTTPStatus
from pathlib import Path
from typing import Final

import pytest

from tests.support.callers import Callers, Server
from tests.support.eventually import eventually, stays
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.sentinels import Group
from tests.support.workers import start_worker

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

CALLERS: Final = 8
FROZEN_S: Final = 10.0
NOTICED_S: Final = 3.0
"""After so long a new master is promoted, and servers and workers have noticed."""
ADOPTED_S: Final = 150.0
"""Within this time another server keeps the results of one that was killed."""
IDLE: Final = 10_000
"""Connections; both ends together need twice as many open files."""
HALVES: Final = 100

logger = logging.getLogger(__name__)


class Town:
    """Two servers and two workers on a Redis of their own, and people who talk."""

    def __init__(self, redis: RedisServer, processes: Processes) -> None:
        self.redis, self.processes = redis, processes
        processes.env["PROCTOR_REDIS_URL"] = redis.url
        self.workers = [start_worker(processes, "-Q", "turns") for _ in range(2)]
        self.servers = [Server.started(processes) for _ in range(2)]


@pytest.fixture
def town(server: RedisServer, processes: Processes) -> Town:
    """Servers, workers and a Redis to be disturbed."""
    return Town(server, processes)


def server_killed(town: Town) -> None:
    """Kills a server between acceptance and answer; another one starts."""
    town.servers[0].process.kill()
    town.servers[0] = Server.started(town.processes)


def worker_killed(town: Town) -> None:
    """Kills a worker with what it holds."""
    town.workers[0].kill()


def redis_restarted(town: Town) -> None:
    """Kills Redis and starts it on its data."""
    town.redis.restart()


def redis_frozen(town: Town) -> None:
    """Stops Redis for longer than callers wait."""
    town.redis.freeze()
    stays(lambda: None, FROZEN_S)
    town.redis.thaw()


def redis_full(town: Town) -> None:
    """Leaves Redis no memory for a while."""
    with closing(town.redis.client()) as client:
        client.config_set("maxmemory", 1)
        stays(lambda: None, FROZEN_S)
        client.config_set("maxmemory", 0)


@pytest.mark.parametrize("fault", [server_killed, worker_killed, redis_restarted, redis_frozen, redis_full])
def test_people_notice_a_pause_and_nothing_else(town: Town, fault: Callable[[Town], None]) -> None:
    """Nothing that was answered is lost or decided twice, order is kept, all answers come in time."""
    with Callers(town.servers, CALLERS) as callers:
        callers.await_more(20)
        fault(town)
        callers.await_more(20)
    logger.info("%s: %s, slowest %.2f s", fault.__name__, dict(callers.outcomes), callers.slowest_s)
    callers.check()


@pytest.mark.parametrize("fault", [server_killed, worker_killed, redis_restarted, redis_frozen])
def test_who_fetches_decisions_later_notices_a_pause_and_nothing_else(
    town: Town, fault: Callable[[Town], None]
) -> None:
    """An id that was acknowledged leads to the result, unless a Redis is killed that had not written it."""
    with Callers(town.servers, CALLERS, waits=False) as callers:
        callers.await_more(5)
        fault(town)
        callers.await_more(5, ADOPTED_S)
    logger.info("%s: %s, slowest %.2f s", fault.__name__, dict(callers.outcomes), callers.slowest_s)
    callers.check()
    assert fault is redis_restarted or "fetched 404" not in callers.outcomes, callers.outcomes


def test_servers_follow_a_new_master(
    new_redis_server: Callable[..., RedisServer], processes: Processes, tmp_path: Path
) -> None:
    """Sentinels replace a master that lives and refuses what it would lose: the new one answers people."""
    group = Group(new_redis_server, processes, tmp_path)
    group.guard()
    processes.env["PROCTOR_REDIS_URL"] = group.url
    start_worker(processes, "-Q", "turns")
    with Callers([Server.started(processes) for _ in range(2)], CALLERS) as callers:
        callers.await_more(20)
        group.fail_over()
        eventually(group.has_changed_places, 60)
        callers.await_more(20)
    logger.info("fail-over: %s, slowest %.2f s", dict(callers.outcomes), callers.slowest_s)
    callers.check()


def test_servers_leave_an_old_master_that_still_takes_writes(
    new_redis_server: Callable[..., RedisServer], processes: Processes, tmp_path: Path
) -> None:
    """Without that protection writes are lost; people are answered long before the old master has gone."""
    group = Group(new_redis_server, processes, tmp_path)
    processes.env["PROCTOR_REDIS_URL"] = group.url
    start_worker(processes, "-Q", "turns")
    with Callers([Server.started(processes)], 2) as callers:
        callers.await_more(20)
        group.fail_over()
        stays(lambda: None, NOTICED_S)
        callers.await_more(20, 6.0)
        with pytest.raises(AssertionError):
            group.has_changed_places()
    logger.info("fail-over: %s, slowest %.2f s", dict(callers.outcomes), callers.slowest_s)
    assert set(callers.outcomes) <= {"200", "503"}


def test_callers_who_say_nothing_or_half_of_it_cost_nobody_else(town: Town) -> None:
    """Many connections idle, some with half a body: these get an error, and others answers as always."""
    first = town.servers[0]
    head = f"POST /v1/turns?timeout_s=3 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {first.token}\r\n"
    half = f'{head}Content-Length: 1000\r\n\r\n{{"threadId": "half", "mess'.encode()
    with ExitStack() as stack:
        halves = [stack.enter_context(socket.create_connection(first.address, 10)) for _ in range(HALVES)]
        for each in halves:
            each.sendall(half)
        for _ in range(IDLE - HALVES):
            stack.enter_context(socket.create_connection(first.address, 10))
        with Callers(town.servers, CALLERS) as callers:
            callers.await_more(20)
        for each in halves:
            assert b" 408 " in each.recv(100)
    logger.info("idle: %s, slowest %.2f s", dict(callers.outcomes), callers.slowest_s)
    callers.check()
    assert first.ask("GET", "/v1/threads/half")[0] == HTTPStatus.NOT_FOUND
