"""Where wake-ups wait for a worker: lists of a Redis server, `proctor:<kind>`, one for each kind of work.

`shared.broker` has the Celery app and the publisher. Importing this loads neither Celery nor a client.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import inf
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, cast

from shared.keys import PREFIX
from shared.kinds import Kind, all_kinds
from shared.server.sockets import BROKER_REPLY_TIMEOUT_S, HEALTH_CHECK_S, TCP_OPTIONS

if TYPE_CHECKING:
    import redis
    from kombu import Producer

    from shared.server.client import RedisTarget

BATCH_MESSAGES: Final = 500
"""Messages that travel in one round trip."""
CONNECT_TIMEOUT_S: Final = 5
"""For opening one connection to the broker."""
VISIBILITY_TIMEOUT_S: Final = 3600
"""After this an unacknowledged message is redelivered. Longer than any chunk: leases do the recovery."""
UNACKED_KEY: Final = f"{PREFIX}unacked"
"""Hash of the transport: messages that were handed out and are not acknowledged, by delivery tag."""
UNACKED_INDEX_KEY: Final = f"{PREFIX}unacked_index"
"""Sorted set: their delivery tags by the time of the worker that took them, seconds."""


class WakeQueues:
    """The queues of one Redis server; connects to nothing before it has to.

    Args:
        target: the server.
        client: a client of the same server; by default one is made when it is needed.
    """

    def __init__(self, target: "RedisTarget", client: "redis.Redis | None" = None) -> None:
        self._target = target
        self._client = client
        self._own: redis.Redis | None = None
        self._published_s = monotonic()
        self._master: tuple[str, int] | None = None

    def celery_settings(self) -> Mapping[str, object]:
        """Returns the Celery settings that depend on the server: URL, transport options and queues."""
        from kombu import Queue  # noqa: PLC0415 - start-up: kombu costs 60 ms, and most commands need none

        return {
            "broker_url": self._target.celery_url,
            "broker_transport_options": {
                "visibility_timeout": VISIBILITY_TIMEOUT_S,
                "socket_timeout": BROKER_REPLY_TIMEOUT_S,
                "socket_connect_timeout": CONNECT_TIMEOUT_S,
                "socket_keepalive": True,
                "socket_keepalive_options": dict(TCP_OPTIONS),
                "health_check_interval": HEALTH_CHECK_S,
                "global_keyprefix": PREFIX,
                "priority_steps": [0],  # one list per queue, so that its length is the queue's length
                # One quick second try for a connection that is opened to publish: the publisher waits.
                "max_retries": 1,
                "interval_start": 0,
                # No retry_on_timeout: it silently switches batch publishing off.
                **self._target.transport_options,
            },
            "task_queues": tuple(Queue(kind.name, routing_key=kind.name) for kind in all_kinds()),
            "worker_detect_quorum_queues": False,
        }

    def batch(self, producer: "Producer") -> AbstractContextManager[object]:
        """Publishes in pipelines; after a pause over a new connection, since the old one may be half open."""
        now_s = monotonic()
        if now_s - self._published_s > HEALTH_CHECK_S:
            channel: Any = producer.channel
            channel.pool.disconnect(inuse_connections=False)
        self._published_s = now_s
        batch = producer.batch(BATCH_MESSAGES)  # type: ignore[attr-defined] # new in kombu 5.7, unknown to the stubs
        return cast("AbstractContextManager[object]", batch)

    def follow_master(self) -> bool:
        """Leaves a server that sentinels have replaced: nobody reads there what is published.

        Returns:
            Whether they have done so since the last call.
        """
        before = self._master
        self._master = self._target.follow_master(self._connected()) or before
        has_moved = before is not None and self._master != before
        if has_moved:
            self._published_s = -inf
        return has_moved

    def lengths(self) -> dict[Kind, int]:
        """Counts the wake-ups of each kind that no worker has taken yet.

        Raises:
            redis.RedisError: the server does not answer.
        """
        pipeline = self._connected().pipeline(transaction=False)
        for kind in all_kinds():
            pipeline.llen(f"{PREFIX}{kind.name}")
        return {kind: int(length) for kind, length in zip(all_kinds(), pipeline.execute(), strict=True)}

    def put(self, kind: Kind, messages: Sequence[bytes]) -> None:
        """Adds messages to a queue.

        Raises:
            redis.RedisError: the server does not answer.
        """
        self._connected().lpush(f"{PREFIX}{kind.name}", *messages)

    def take(self, kind: Kind, within_s: float) -> bytes | None:
        """Takes the oldest message of a queue without Celery, which keeps no copy; None if none comes.

        Raises:
            redis.RedisError: the server does not answer.
        """
        client: Any = self._connected()
        found: tuple[bytes, bytes] | None = client.brpop(f"{PREFIX}{kind.name}", within_s)
        return found[1] if found else None

    def put_back(self, kind: Kind, message: bytes) -> None:
        """Makes a message that was taken the oldest of its queue again.

        Raises:
            redis.RedisError: the server does not answer.
        """
        self._connected().rpush(f"{PREFIX}{kind.name}", message)

    def forget_deliveries(self, older_than_s: float) -> int:
        """Removes what is kept of messages that were handed out and never acknowledged, some at a time.

        Their worker was killed, or lost its connection. The ledger hands out their chunks again by itself.

        The transport itself would put them back into their queue, after `VISIBILITY_TIMEOUT_S`.

        Args:
            older_than_s: how long ago they were handed out at least.

        Returns:
            How many there were.

        Raises:
            redis.RedisError: the server does not answer.
        """
        client: Any = self._connected()
        tags = client.zrangebyscore(UNACKED_INDEX_KEY, "-inf", time() - older_than_s, 0, BATCH_MESSAGES)
        if tags:
            with client.pipeline() as pipeline:
                pipeline.zrem(UNACKED_INDEX_KEY, *tags)
                pipeline.hdel(UNACKED_KEY, *tags)
                pipeline.execute()
        return len(tags)

    def _connected(self) -> "redis.Redis":
        client = self._client or self._own
        if client is None:
            client = self._own = self._target.client()
        return client

    def close(self) -> None:
        """Closes the client that was made here."""
        if self._own is not None:
            self._own.close()
