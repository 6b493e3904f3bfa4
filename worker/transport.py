"""Adapts kombu's Redis transport to workers: no invalid message, silent broker or refused write stops it.

Workers put it in kombu's place by name (`guard_transports`), so that it also serves connections that are made
again, and Sentinel's.
"""

from contextlib import suppress
from json import JSONDecodeError
from socket import SHUT_RDWR
from typing import Any

from kombu import transport
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as lists

from worker.message_checks import log_rejected, why_unreadable


class GuardedQoS(lists.QoS):
    """Counts the messages of a channel; one that cannot be acknowledged is not counted for ever.

    A channel takes no more messages than it may have unacknowledged, and kombu counts a message until the
    server has removed it. Where the server refuses that (`NOREPLICAS`) and the connection stays, the channel
    would take none again. What stays in the server's hash is removed by the steward.
    """

    def ack(self, delivery_tag: str) -> None:
        """Acknowledges a message.

        Raises:
            RedisError: of redis-py: the server refused that, or cannot be reached.
        """
        try:
            super().ack(delivery_tag)
        except Exception:
            self._quick_ack(delivery_tag)  # type: ignore[attr-defined] # unknown to the stubs
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002 - kombu's signature
        """Rejects a message.

        Raises:
            RedisError: as for `ack`.
        """
        try:
            super().reject(delivery_tag, requeue=requeue)
        except Exception:
            self._quick_ack(delivery_tag)  # type: ignore[attr-defined] # unknown to the stubs
            raise


class GuardedChannel(lists.Channel):
    """A channel that survives texts that are no JSON, and closes without waiting for messages.

    Such a text has left its list when it is read.
    """

    QoS = GuardedQoS
    _shared_client: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002 - kombu's signature
        """Returns the channel's client; kombu makes one for each command, which takes longer than that."""
        make: Any = super()._create_client  # type: ignore[misc] # unknown to the stubs
        if asynchronous:
            return make(asynchronous=True)
        if self._shared_client is None or self._shared_client.connection_pool is not self.pool:
            self._shared_client = make()
        return self._shared_client

    def close(self) -> None:
        """Closes the channel; kombu waits up to a second for the answer to its BRPOP, which is ended here."""
        known: Any = self  # incomplete stubs
        waiting = known._in_poll  # noqa: SLF001 - kombu's own
        greeting = waiting.handshake_metadata if waiting else None
        if greeting:  # only the third version of the protocol greets
            with suppress(*known.connection_errors, known.ResponseError), known.conn_or_acquire() as client:
                client.client_unblock(greeting[b"id"])
        super().close()

    def _brpop_read(self, **options: Any) -> Any:
        transport: Any = self.connection
        transport.has_json = False
        try:
            return super()._brpop_read(**options)  # type: ignore[misc] # unknown to the stubs
        except (JSONDecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
            if transport.has_json:
                raise  # of code to which the message was handed
            log_rejected(f"it is no JSON: {error}", ",".join(sorted(self.active_queues)))
            return True


class Poller(lists.MultiChannelPoller):
    """Has Celery connect anew when a consumer's connection is half open: its others went the same way."""

    def maybe_check_brpop_health(self) -> None:
        """Closes a connection whose BRPOP got no answer.

        Raises:
            ConnectionError: of redis-py, when one was closed.
        """
        known: Any = self  # incomplete stubs
        waiting = [channel._in_poll for channel in known._channels if channel._in_poll]  # noqa: SLF001 - kombu's own
        open_before = [connection for connection in waiting if connection._sock is not None]  # noqa: SLF001 - same
        super().maybe_check_brpop_health()  # type: ignore[misc] # as above
        if any(connection._sock is None for connection in open_before):  # noqa: SLF001 - same
            kombu: Any = lists  # as above
            raise kombu.get_redis_ConnectionError()("the broker has not answered for some seconds")


class _Guarded:
    """Shared by both transports."""

    has_json = False
    """Whether what was read last was JSON, and was handed on."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.cycle = Poller()

    def _deliver(self, message: object, queue: str) -> None:
        self.has_json = True
        if reason := why_unreadable(message):
            log_rejected(reason, str(queue))
        else:
            super()._deliver(message, queue)  # type: ignore[misc] # of the transport that it is mixed into


class GuardedTransport(_Guarded, lists.Transport):  # type: ignore[misc] # the stubs have other names
    """Redis lists."""

    Channel = GuardedChannel


class GuardedSentinelChannel(GuardedChannel, lists.SentinelChannel):
    """The same, for servers that sentinels watch."""


class GuardedSentinelTransport(_Guarded, lists.SentinelTransport):  # type: ignore[misc] # as above
    """Redis lists on servers that sentinels watch."""

    Channel = GuardedSentinelChannel


def end_waiting(connection: Any) -> None:
    """Ends the wait of a consumer for messages, as a server does that goes away: Celery connects anew.

    Args:
        connection: kombu's, of the consumer; it may be used by another thread.
    """
    known = connection.transport.cycle._chan_to_sock  # noqa: SLF001 - kombu's own; its thread changes it
    for (_channel, _client, command), waiting in [*known.items()]:
        if command == "BRPOP":
            with suppress(OSError):  # it has just gone
                waiting.shutdown(SHUT_RDWR)


def guard_transports() -> None:
    """Has kombu take the guarded transports for Redis, in this process and for whatever connects later."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{GuardedTransport.__name__}"
    TRANSPORT_ALIASES["sentinel"] = f"{__name__}:{GuardedSentinelTransport.__name__}"
    # kombu keeps the class of each scheme that has connected before, and would not look here again.
    vars(transport)["_transport_cache"].clear()  # private: kombu 5.7 has no other way
