"""The interface of a broker's queues: what differs between Redis and RabbitMQ, and nothing else."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Protocol

from shared.kinds import Kind

if TYPE_CHECKING:
    from kombu import Producer

BATCH_MESSAGES: Final = 500
"""Messages that travel in one round trip, where the broker can do that."""
CONNECT_TIMEOUT_S: Final = 5
"""For opening one connection to a broker."""


class Queues(Protocol):
    """The queues of one broker, one for each kind of work."""

    @property
    def declares(self) -> bool:
        """Whether a queue must be declared before a message for it is kept."""
        ...

    def name(self, kind: Kind) -> str:
        """Returns the name of a kind's queue, as Celery spells it."""
        ...

    def celery_settings(self) -> Mapping[str, object]:
        """Returns the Celery settings that depend on the broker."""
        ...

    def batch(self, producer: "Producer") -> AbstractContextManager[object]:
        """Publishes what is published inside it in as few round trips as the broker allows.

        When it ends without an exception, the broker has taken all of it.
        """
        ...

    def lengths(self) -> dict[Kind, int]:
        """Counts the wake-ups of each kind that no worker has taken yet.

        Raises:
            BrokerUnreachableError: RabbitMQ does not answer.
            redis.RedisError: Redis does not answer.
        """
        ...

    def forget_deliveries(self, older_than_s: float) -> int:
        """Removes what the broker keeps of messages that were handed out and never acknowledged.

        Their worker was killed, or lost its connection. The ledger hands out their chunks again by itself.

        Args:
            older_than_s: how long ago they were handed out at least.

        Returns:
            How many there were.

        Raises:
            redis.RedisError: Redis does not answer.
        """
        ...

    def close(self) -> None:
        """Closes what `lengths` has opened."""
        ...
