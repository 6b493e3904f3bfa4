"""Queues as lists of a Redis server, `proctor:<kind>`: Celery's default transport, and ours."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, cast

from shared.keys import PREFIX
from shared.names import Kind
from shared.queues.base import BATCH_MESSAGES, CONNECT_TIMEOUT_S

if TYPE_CHECKING:
    import redis
    from kombu import Producer

    from shared.target import RedisTarget

VISIBILITY_TIMEOUT_S: Final = 3600
"""After this an unacknowledged message comes again. Above every chunk's time: leases do the recovering."""
SOCKET_TIMEOUT_S: Final = 30
"""A broker that is silent for longer is treated as gone."""


class RedisQueues:
    """The queues of one Redis server.

    Args:
        target: the server.
        client: a client of the same server; by default one is made when it is needed.
    """

    declares = False
    """A list is made by its first element."""

    def __init__(self, target: "RedisTarget", client: "redis.Redis | None" = None) -> None:
        self._target = target
        self._client = client
        self._own: redis.Redis | None = None

    def name(self, kind: Kind) -> str:
        """Returns the kind's own name: the transport puts `proctor:` in front of every key."""
        return kind.value

    def celery_settings(self) -> Mapping[str, object]:
        """Returns URL, transport options and queues."""
        from kombu import Queue  # noqa: PLC0415 - start-up: kombu costs 60 ms, and most commands need none

        return {
            "broker_url": self._target.celery_url,
            "broker_transport_options": {
                "visibility_timeout": VISIBILITY_TIMEOUT_S,
                "socket_timeout": SOCKET_TIMEOUT_S,
                "socket_connect_timeout": CONNECT_TIMEOUT_S,
                "socket_keepalive": True,
                "health_check_interval": 25,
                "global_keyprefix": PREFIX,
                "priority_steps": [0],  # one list per queue, so that its length is the queue's length
                # One quick second try for a connection that is opened to publish: the publisher waits.
                "max_retries": 1,
                "interval_start": 0,
                # No retry_on_timeout: it silently switches batch publishing off.
                **self._target.transport_options,
            },
            "task_queues": tuple(Queue(kind.value, routing_key=kind.value) for kind in Kind),
            "worker_detect_quorum_queues": False,
        }

    def batch(self, producer: "Producer") -> AbstractContextManager[object]:
        """Publishes in pipelines."""
        batch = producer.batch(BATCH_MESSAGES)  # type: ignore[attr-defined] # new in kombu 5.7, unknown to the stubs
        return cast("AbstractContextManager[object]", batch)

    def lengths(self) -> dict[Kind, int]:
        """Counts the elements of each list.

        Raises:
            redis.RedisError: the server does not answer.
        """
        client = self._client or self._own
        if client is None:
            client = self._own = self._target.client()
        pipeline = client.pipeline(transaction=False)
        for kind in Kind:
            pipeline.llen(f"{PREFIX}{kind.value}")
        return {kind: int(length) for kind, length in zip(Kind, pipeline.execute(), strict=True)}

    def close(self) -> None:
        """Closes the client that was made here."""
        if self._own is not None:
            self._own.close()
