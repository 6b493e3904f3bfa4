"""One Redis server as we use it: its URL in every form, clients for it, a test of whether it is suitable."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from shared.server.connection import check_server, ping_until
from shared.server.redis_url import RedisUrl, mask_password, parse_redis_url
from shared.server.sockets import REPLY_TIMEOUT_S, TCP_OPTIONS

if TYPE_CHECKING:
    import redis

CONNECT_TIMEOUT_S: Final = 2.0
"""For opening one connection."""


@dataclass(frozen=True)
class RedisTarget:
    """A Redis server, by URL, in the forms that its clients need; connects to nothing by itself."""

    url: RedisUrl
    """The parts of its URL."""

    @classmethod
    def parse(cls, url: str) -> Self:
        """Reads a URL: `redis://`, `rediss://`, `unix://`, `redis+socket://` or `sentinel://`.

        Raises:
            ConfigError: it names no server; the message holds it with its password masked.
        """
        return cls(parse_redis_url(url))

    @cached_property
    def redis_url(self) -> str:
        """The URL for redis-py, and for `PROCTOR_REDIS_URL` of child processes."""
        return self.url.for_redis_py

    @cached_property
    def celery_url(self) -> str:
        """The URL for Celery and Flower; goes together with `transport_options`."""
        return self.url.for_kombu

    @cached_property
    def transport_options(self) -> Mapping[str, object]:
        """What Celery's transport needs beside the URL: the sentinels' master."""
        if self.url.scheme != "sentinel":
            return {}
        return {"master_name": self.url.path, "sentinel_kwargs": self._sentinel_login()}

    @cached_property
    def display(self) -> str:
        """The URL for people: its password is masked."""
        return mask_password(self.redis_url)

    def client(
        self,
        *,
        socket_timeout_s: float = REPLY_TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        decode: bool = False,
    ) -> "redis.Redis":
        """Makes a client, which connects on first use. It does not retry: the ledger does.

        Args:
            socket_timeout_s: how long to wait for a reply.
            connect_timeout_s: how long to wait for a connection.
            decode: replies as text instead of bytes.
        """
        from redis import Redis, backoff, retry  # noqa: PLC0415 - start-up: redis costs 80 ms, and `--help` needs none

        options: dict[str, Any] = {
            "socket_timeout": socket_timeout_s,
            "decode_responses": decode,
            "retry": retry.Retry(backoff.NoBackoff(), 0),
            "protocol": 2,  # lists and bytes, whatever a later version of redis-py prefers
        }
        if self.url.scheme == "sentinel":
            return self._client_by_sentinel({**options, **_tcp_options(connect_timeout_s)})
        if self.url.scheme != "unix":
            options |= _tcp_options(connect_timeout_s)
        return Redis.from_url(self.redis_url, **options)

    @property
    def is_watched(self) -> bool:
        """Whether sentinels may make another server the master."""
        return self.url.scheme == "sentinel"

    def follow_master(self, client: "redis.Redis") -> tuple[str, int] | None:
        """Queries the sentinels for the master; if it has changed, connections to the old one are closed.

        A master that is replaced while it runs continues to accept writes for about 10 s, and loses them.
        Idle connections are closed at once, those in use after their call. If the sentinels do not answer,
        nothing changes: opening a new connection will raise the error.

        Args:
            client: of this server.

        Returns:
            Where the master is; None if the sentinels do not answer, and for a server without any.
        """
        from redis.exceptions import RedisError  # noqa: PLC0415 - start-up: see `client`

        pool: Any = client.connection_pool  # redis-py has no types here
        found: tuple[str, int] | None = None
        if self.is_watched:
            with suppress(RedisError):
                found = pool.get_master_address()
        return found

    def _client_by_sentinel(self, options: dict[str, Any]) -> "redis.Redis":
        from redis.sentinel import Sentinel  # noqa: PLC0415 - start-up: see `client`

        login = {"username": self.url.username, "password": self.url.password, "db": self.url.db}
        asking = {**options, **self._sentinel_login()}
        sentinel = Sentinel(self.url.hosts, sentinel_kwargs=asking, **options, **login)  # type: ignore[no-untyped-call]  # redis-py has no types here
        client: redis.Redis = sentinel.master_for(self.url.path)  # type: ignore[no-untyped-call]  # as above
        return client

    def _sentinel_login(self) -> dict[str, str]:
        return {name.removeprefix("sentinel_"): value for name, value in self.url.options.items()}


def _tcp_options(connect_timeout_s: float) -> dict[str, Any]:
    return {
        "socket_connect_timeout": connect_timeout_s,
        "socket_keepalive": True,
        "socket_keepalive_options": dict(TCP_OPTIONS),
    }


def probe(target: RedisTarget, patience_s: float) -> str:
    """Makes sure that a server answers and is suitable; returns what a crash of it would lose.

    Args:
        target: the server.
        patience_s: how long to wait for it.

    Raises:
        RedisUnreachableError: it does not answer in time.
        RedisUnsuitableError: it is too old, a cluster, or evicts keys.
    """
    client = target.client()
    try:
        ping_until(client, patience_s, where=target.display)
        return check_server(client)
    finally:
        client.close()
