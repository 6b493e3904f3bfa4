"""What fault tests share: runs on the session's server, or on one of the test's own."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.trial import Trial

if TYPE_CHECKING:
    import redis


@pytest.fixture(
    params=[pytest.param(5, id="short leases"), pytest.param(15, id="real leases", marks=pytest.mark.slow)]
)
def lease_s(request: pytest.FixtureRequest, processes: Processes) -> int:
    """Claims last 5 s, so that tests need not wait; in the long form they last as long as for users."""
    processes.env["PROCTOR_LEASE_S"] = str(request.param)
    return int(request.param)


@pytest.fixture
def trial(redis_client: "redis.Redis", redis_url: str, processes: Processes, lease_s: int) -> Trial:
    """Runs on the session's server, for faults that do not touch the server."""
    assert processes.env["PROCTOR_LEASE_S"] == str(lease_s)
    return Trial(redis_client, redis_url, processes)


@pytest.fixture
def server(new_redis_server: Callable[..., RedisServer]) -> RedisServer:
    """A server of the test's own, to be killed and frozen."""
    return new_redis_server()


@pytest.fixture
def own_trial(server: RedisServer, processes: Processes, lease_s: int) -> Iterator[Trial]:
    """Runs on the server of the test's own."""
    assert processes.env["PROCTOR_LEASE_S"] == str(lease_s)
    with Trial.on(server, processes) as made:
        yield made
