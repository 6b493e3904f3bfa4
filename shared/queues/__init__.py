"""Where wake-ups wait for a worker: lists of Redis or queues of RabbitMQ, behind one interface.

`shared.broker` has the Celery app and the publisher, which work on either. Importing this loads neither
Celery nor a client library.
"""

from typing import TYPE_CHECKING

from shared.queues.base import Queues
from shared.queues.rabbitmq import RabbitQueues
from shared.queues.redis_lists import RedisQueues
from shared.server.amqp import AmqpTarget

if TYPE_CHECKING:
    import redis

    from shared.server.client import BrokerTarget

__all__ = ["Queues", "RabbitQueues", "RedisQueues", "queues_on"]


def queues_on(target: "BrokerTarget", *, client: "redis.Redis | None" = None) -> Queues:
    """Returns the queues of a broker; connects to nothing.

    Args:
        target: the broker.
        client: a client of the same Redis server to use; by default one is made when it is needed.
    """
    if isinstance(target, AmqpTarget):
        return RabbitQueues(target)
    return RedisQueues(target, client)
