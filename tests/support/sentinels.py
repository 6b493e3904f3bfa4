"""A master, its replica and a sentinel that watches them: real servers, to be failed over."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import redis

from shared.server.client import RedisTarget
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer, program_for_tests

PASSWORD: Final = "right"  # noqa: S105 - of servers that live for a test
NewServer = Callable[..., RedisServer]


def as_admin(server: RedisServer) -> "redis.Redis":
    """A client of a server that asks for the password."""
    return RedisTarget.parse(f"unix://:{PASSWORD}@{server.socket}").client()


class Group:
    """A master with one replica, both with a password, and a sentinel that watches them."""

    def __init__(self, new_redis_server: NewServer, processes: Processes, folder: Path) -> None:
        first, second, port = free_port(), free_port(), free_port()
        common = ("--bind", "127.0.0.1", "--masterauth", PASSWORD)
        self.master = new_redis_server(*common, "--port", str(first))
        replica = new_redis_server(*common, "--port", str(second))
        for server in (self.master, replica):
            with server.client() as client:
                client.config_set("requirepass", PASSWORD)
        with closing(as_admin(replica)) as client:
            client.replicaof("127.0.0.1", first)
        config = folder / "sentinel.conf"
        config.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor main 127.0.0.1 {first} 1\nsentinel auth-pass main {PASSWORD}\n"
            "sentinel down-after-milliseconds main 1000\n"
        )
        processes.start(program_for_tests(), config, "--sentinel", env=dict(os.environ), cwd=folder)
        self._port = port
        self.servers = (self.master, replica)
        self.url = f"sentinel://:{PASSWORD}@127.0.0.1:{port}/main/2"
        eventually(self._is_in_step, 20.0)

    def guard(self) -> None:
        """Lets each server refuse writes while it has no replica in step."""
        for server in self.servers:
            with closing(as_admin(server)) as client:
                client.config_set("min-replicas-to-write", 1)
                client.config_set("min-replicas-max-lag", 10)

    def fail_over(self) -> None:
        """Orders the sentinel to make the replica the master, while the master lives."""

        def is_ordered() -> None:
            asked: Any = redis.Redis(port=self._port, decode_responses=True)  # redis-py has no types here
            with closing(asked) as sentinel:
                known = sentinel.sentinel_slaves("main")
                assert [each["flags"] for each in known] == ["slave"]
                sentinel.execute_command("SENTINEL", "FAILOVER", "main")

        eventually(is_ordered, 20.0)

    def has_changed_places(self) -> None:
        """Asserts that the old master is the replica of the new one."""
        old, new = self.servers
        with closing(as_admin(old)) as was, closing(as_admin(new)) as is_now:
            assert (was.info("replication")["role"], is_now.info("replication")["role"]) == (
                "slave",
                "master",
            )

    def _is_in_step(self) -> None:
        with closing(as_admin(self.master)) as client:
            assert client.info("replication")["slave0"]["state"] == "online"
