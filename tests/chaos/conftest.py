"""What fault tests share: runs on the session's server, or on one of the test's own."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.trial import Trial

if TYPE_CHECKING:
    import redis


@pytest.fixture
def trial(redis_client: "redis.Redis", redis_url: str, processes: Processes) -> Trial:
    """Runs on the session's server, for faults that do not touch the server."""
    return Trial(redis_client, redis_url, processes)


@pytest.fixture
def server(new_redis_server: Callable[..., RedisServer]) -> RedisServer:
    """A server of the test's own, to be killed and frozen."""
    return new_redis_server()


@pytest.fixture
def own_trial(server: RedisServer, processes: Processes) -> Iterator[Trial]:
    """Runs on the server of the test's own."""
    with Trial.on(server, processes) as made:
        yield made
