"""Queues of a RabbitMQ broker, `proctor.<kind>`: durable quorum queues that publishers and workers declare.

What RabbitMQ does by itself, and why no work is lost by it:

    connection lost         its messages are redelivered. A claim then finds nothing to do, or that the
                            chunk's lease has to expire first.
    delivery limit          RabbitMQ 4 drops a message after 20 returns. The ledger's overdue rule publishes
                            another one, and its poison rule ends what kills workers.
    consumer timeout        after 30 minutes without acknowledgement RabbitMQ closes the channel and hands out
                            its messages again; the worker opens another channel and goes on with its chunks.
                            From RabbitMQ 3.11.15 on our consumers ask for a day.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from shared.errors import BrokerUnreachableError, BrokerUnsuitableError
from shared.kinds import Kind, all_kinds
from shared.names import DISTRIBUTION
from shared.queues.base import CONNECT_TIMEOUT_S
from shared.server.amqp import REPLY_TIMEOUT_S, AmqpTarget, errors_of, limit_replies

if TYPE_CHECKING:
    from kombu import Connection, Producer, Queue

HEARTBEAT_S: Final = 4
"""A connection that is silent for twice as long is closed, by the worker as by the broker."""
ACKNOWLEDGE_WITHIN_MS: Final = 24 * 3600 * 1000
"""For `x-consumer-timeout`: a chunk is acknowledged when it ends, and it may wait for an upstream."""
LOOK_AGAIN_S: Final = 5.0
"""Time without further queries for queue lengths after a broker did not answer."""
NOT_FOUND: Final = 404
PRECONDITION_FAILED: Final = 406


class RabbitQueues:
    """The queues of one RabbitMQ broker.

    Args:
        target: the broker.
    """

    declares = True
    """A message for an undeclared queue is dropped without an error."""

    def __init__(self, target: AmqpTarget) -> None:
        self._target = target
        self._connection: Connection | None = None
        self._failure: BrokerUnreachableError | None = None
        self._look_again_at = 0.0

    def name(self, kind: Kind) -> str:
        """Returns `proctor.<kind>`.

        >>> from shared.kinds import TURNS
        >>> RabbitQueues(AmqpTarget.parse("amqp://mq.example")).name(TURNS)
        'proctor.turns'
        """
        return f"{DISTRIBUTION}.{kind.name}"

    def celery_settings(self) -> Mapping[str, object]:
        """Returns URL, TLS, transport options and queues."""
        return {
            "broker_url": self._target.celery_url,
            "broker_use_ssl": self._target.url.tls or False,
            "broker_heartbeat": HEARTBEAT_S,
            # A channel that RabbitMQ closes (see the top) is opened again, and does not end the worker.
            "broker_channel_error_retry": True,
            "broker_transport_options": {
                # No `confirm_publish`: it would also hold for the channel of events, which several threads
                # share, and one of them would wait for ever. `batch` does it where it is needed.
                "max_retries": 1,
                "interval_start": 0,
            },
            "task_queues": tuple(self._queue(kind) for kind in all_kinds()),
            # Quorum queues have no prefetch count of a whole channel, only one of each consumer.
            "worker_detect_quorum_queues": True,
        }

    @contextmanager
    def batch(self, producer: "Producer") -> Iterator[None]:
        """Waits at its end until every message is confirmed: a majority of the nodes has it on disk.

        Gives up the connection when publishing fails, since its channel may be closed.
        """
        try:
            channel: Any = producer.channel
            confirms: Confirms = getattr(channel, "confirms", None) or Confirms(channel)
            yield
            confirms.wait()
        except Exception:
            connection: Any = producer.connection
            connection.collect()
            raise

    def declare(self) -> None:
        """Declares all queues, as publishers and workers do before they use them.

        Raises:
            BrokerUnsuitableError: a queue of the name exists with other settings.
            BrokerUnreachableError: the broker does not answer, or refuses our user.
        """
        with self._target.connection() as connection:
            for kind in all_kinds():
                try:
                    limit_replies(connection.connection)
                    self._queue(kind)(connection.default_channel).declare()
                except errors_of(connection) as error:
                    if getattr(error, "reply_code", None) != PRECONDITION_FAILED:
                        raise self._target.unreachable(error) from error
                    raise BrokerUnsuitableError(
                        f"queue {self.name(kind)} of {self._target.display} is not ours: {error}",
                        hint="delete it (`rabbitmqctl delete_queue NAME`) or use a virtual host of its own; "
                        "what was in it comes again",
                    ) from error

    def lengths(self) -> dict[Kind, int]:
        """Counts the messages of each queue that are ready; a queue that was never declared is empty.

        Raises:
            BrokerUnreachableError: the broker does not answer, or did not a few seconds ago.
        """
        if self._failure is not None and monotonic() < self._look_again_at:
            raise self._failure
        connection = self._connection = self._connection or self._target.connection(
            connect_timeout_s=CONNECT_TIMEOUT_S
        )
        try:
            connection.ensure_connection(max_retries=1, interval_start=0)
            limit_replies(connection.connection)
            found = {kind: _count(connection, self.name(kind)) for kind in all_kinds()}
        except errors_of(connection) as error:
            self.close()
            self._failure = self._target.unreachable(error)
            self._look_again_at = monotonic() + LOOK_AGAIN_S
            raise self._failure from error
        self._failure = None
        return found

    def forget_deliveries(self, older_than_s: float) -> int:  # noqa: ARG002 - the interface of all brokers
        """Does nothing: RabbitMQ takes messages back itself when a connection ends."""
        return 0

    def close(self) -> None:
        """Closes the connection that `lengths` has opened."""
        if self._connection is not None:
            self._connection.release()
            self._connection = None

    def _queue(self, kind: Kind) -> "Queue":
        from kombu import Exchange, Queue  # noqa: PLC0415 - start-up: kombu costs 60 ms, and most commands need none

        name = self.name(kind)
        return Queue(
            name,
            exchange=Exchange(""),  # the default exchange: it routes by queue name and needs no binding
            routing_key=name,
            durable=True,
            queue_arguments={"x-queue-type": "quorum"},
            consumer_arguments={"x-consumer-timeout": ACKNOWLEDGE_WITHIN_MS},
        )


class Confirms:
    """Counts the messages of one channel that the broker has not confirmed yet.

    Without confirms, a message that is written to a dying connection is lost unseen.

    Args:
        channel: py-amqp's, of a connection that one thread at a time uses.
    """

    def __init__(self, channel: Any) -> None:
        limit_replies(channel.connection)
        channel.confirm_select()
        self._connection = channel.connection
        self._publish = channel.basic_publish
        self._last = 0
        self._open: set[int] = set()
        self._refused = 0
        channel.events["basic_ack"].add(self._on_ack)
        channel.events["basic_nack"].add(self._on_nack)
        channel.confirms = self  # for the next batch
        channel.basic_publish = self.publish  # as py-amqp itself does to confirm one message at a time

    def publish(self, *arguments: Any, **options: Any) -> Any:
        """Publishes a message."""
        self._last += 1
        self._open.add(self._last)
        return self._publish(*arguments, **options)

    def wait(self) -> None:
        """Waits until all messages are confirmed.

        Raises:
            OSError: they are not within `REPLY_TIMEOUT_S`, or the broker refused some.
        """
        deadline = monotonic() + REPLY_TIMEOUT_S
        while self._open:
            self._connection.drain_events(timeout=max(0.001, deadline - monotonic()))
        refused, self._refused = self._refused, 0
        if refused:
            raise OSError(f"the broker refused {refused} messages")

    def _on_ack(self, tag: int, multiple: bool) -> None:  # noqa: FBT001 - py-amqp's signature
        self._open = {each for each in self._open if each > tag} if multiple else self._open - {tag}

    def _on_nack(self, tag: int, multiple: bool) -> None:  # noqa: FBT001 - py-amqp's signature
        before = len(self._open)
        self._on_ack(tag, multiple)
        self._refused += before - len(self._open)


def _count(connection: "Connection", name: str) -> int:
    """Counts the ready messages of a queue, by asking for a queue of this name without making one."""
    channel: Any = connection.channel()
    try:
        return int(channel.queue_declare(queue=name, passive=True).message_count)
    except connection.channel_errors as error:
        if getattr(error, "reply_code", None) == NOT_FOUND:
            return 0
        raise
    finally:
        if channel.is_open:
            channel.close()
