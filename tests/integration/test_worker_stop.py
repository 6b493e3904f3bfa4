"""How worker processes end, and that nothing is lost: SIGTERM, Ctrl-C, SIGQUIT, kill -9, a frozen Redis."""

import signal
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from shared import keys
from shared.kinds import TURNS
from tests.support.eventually import eventually, stays
from tests.support.processes import SHORT_LEASE_S, Process, Processes
from tests.support.redis_server import RedisServer
from tests.support.workers import Desk, conversation, heartbeat_folder, start_worker

if TYPE_CHECKING:
    import redis

THREADS, TURNS_EACH = 1000, 60
TOTAL = THREADS * TURNS_EACH
"""More than a second of work for one process."""


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str) -> Desk:
    """A producer on the session's server."""
    return Desk(redis_client, redis_url)


def leased(desk: Desk, run: str) -> list[bytes]:
    """Chunks of a run that a worker holds."""
    chunks: Any = desk.client.smembers(keys.admitted_key(run))
    return [c for c in chunks if desk.client.hget(keys.chunk_key(run, c.decode()), "st") == b"L"]


def in_the_middle(desk: Desk, run: str) -> None:
    """Waits until a run is partly decided."""

    def is_partly_done() -> None:
        assert desk.info(run).done > 0

    eventually(is_partly_done)
    assert desk.info(run).done < TOTAL


def every_turn_once(desk: Desk, run: str, within_s: float = 60.0) -> None:
    """Waits for the end of a run and asserts that each turn has exactly one result."""
    rows = desk.finished(run, within_s)
    assert [row.index for row in rows] == list(range(TOTAL))
    assert desk.info(run).done == TOTAL


def working(desk: Desk, processes: Processes, run: str = "r1") -> Process:
    """Starts a worker and stops waiting in the middle of its work."""
    desk.submit(run, conversation(THREADS, TURNS_EACH))
    worker = start_worker(processes, "-Q", "turns")
    in_the_middle(desk, run)
    return worker


def test_sigterm_gives_the_rest_back_at_once(desk: Desk, processes: Processes) -> None:
    """After SIGTERM the process ends within seconds with 0 and holds nothing; another decides the rest."""
    worker = working(desk, processes)
    assert worker.stop(within_s=10) == 0
    assert leased(desk, "r1") == []
    assert desk.store.workers(TURNS) == []
    assert desk.info("r1").done < TOTAL
    assert list(heartbeat_folder(processes.env).iterdir()) == []
    start_worker(processes, "-Q", "turns")
    every_turn_once(desk, "r1")


@pytest.mark.chaos
def test_kill_9_loses_nothing_and_costs_seconds(desk: Desk, processes: Processes) -> None:
    """Leases of a killed process run out and the rest of the fleet decides its turns soon after."""
    first, _ = (start_worker(processes, "-Q", "turns") for _ in range(2))
    desk.submit("r1", conversation(THREADS, TURNS_EACH))
    in_the_middle(desk, "r1")
    first.freeze()  # so that it surely holds chunks when it dies
    eventually(lambda: len(leased(desk, "r1")))
    first.kill()
    killed_at = monotonic()
    every_turn_once(desk, "r1")
    assert monotonic() - killed_at < SHORT_LEASE_S + 15  # and the work that was left


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM])
def test_a_process_in_a_hurry_leaves_a_frozen_redis_behind(
    new_redis_server: Callable[..., RedisServer], processes: Processes, number: signal.Signals
) -> None:
    """SIGQUIT, or SIGTERM with no grace left, ends a process whose chunks cannot be given back."""
    server = new_redis_server()
    desk = Desk(server.client(), server.url)
    processes.env |= {"PROCTOR_REDIS_URL": server.url, "PROCTOR_GRACE_S": "0.5"}
    worker = working(desk, processes)
    server.freeze()
    worker.send(number)
    assert worker.wait(within_s=12) == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, None)], ids=["ctrl-c", "sigterm"]
)
def test_only_a_second_ctrl_c_cuts_the_grace_period(
    new_redis_server: Callable[..., RedisServer],
    processes: Processes,
    number: signal.Signals,
    code: int | None,
) -> None:
    """A person who insists does not wait; service managers that repeat SIGTERM cut nothing off."""
    server = new_redis_server()
    desk = Desk(server.client(), server.url)
    processes.env |= {"PROCTOR_REDIS_URL": server.url, "PROCTOR_GRACE_S": "60"}
    worker = working(desk, processes)
    server.freeze()
    worker.send(number)
    worker.wait_for("worker draining")  # two signals that are sent at once may be delivered as one
    worker.send(number)
    if code is None:
        stays(lambda: _assert_running(worker), 5)
    else:
        assert worker.wait(within_s=12) == code


def _assert_running(worker: Process) -> None:
    assert worker.is_running(), worker.output_text()
