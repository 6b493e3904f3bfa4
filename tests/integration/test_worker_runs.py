"""Real worker processes decide runs of turns on a real Redis."""

import pytest

from tests.support.processes import Processes
from tests.support.workers import Desk, conversation, start_worker


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str) -> Desk:
    """A producer on the session's server."""
    return Desk(redis_client, redis_url)


def test_a_run_is_decided_end_to_end(desk: Desk, processes: Processes) -> None:
    """One worker decides every turn of a run once, in order, and the run is finished."""
    start_worker(processes, "-Q", "turns")
    desk.submit("r1", conversation(threads=25, turns=4))
    rows = desk.finished("r1")
    assert [row.index for row in rows] == list(range(100))
