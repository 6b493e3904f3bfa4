"""One RabbitMQ broker as we use it: its URL in every form, connections to it, and whether it answers."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, cast

from shared.errors import BrokerUnreachableError
from shared.server.amqp_url import AmqpUrl, parse_amqp_url

if TYPE_CHECKING:
    from kombu import Connection

CONNECT_TIMEOUT_S: Final = 5.0
"""For opening one connection; includes the handshake."""
REPLY_TIMEOUT_S: Final = 5.0
"""A broker that does not confirm a message or answer a question for longer is treated as gone."""
PAUSE_S: Final = 0.1
"""Between the first two attempts to connect; each later pause is longer by as much."""
UNREACHABLE_HINT: Final = (
    "start it, or correct PROCTOR_BROKER_URL; without one, the ledger's Redis is the broker"
)
DENIED: Final = ("ACCESS_REFUSED", "NOT_ALLOWED")
"""What RabbitMQ answers to a wrong password, an unknown virtual host or a missing permission."""


@dataclass(frozen=True)
class AmqpTarget:
    """A RabbitMQ broker, by URL; connects to nothing by itself."""

    url: AmqpUrl
    """The parts of its URL."""

    @classmethod
    def parse(cls, url: str) -> Self:
        """Reads a URL: `amqp://` or `amqps://`.

        Raises:
            ConfigError: it names no broker; the message holds it with its password masked.
        """
        return cls(parse_amqp_url(url))

    @cached_property
    def celery_url(self) -> str:
        """The URL for Celery and Flower; goes together with `url.tls`."""
        return self.url.for_kombu

    @cached_property
    def display(self) -> str:
        """The URL for people: its password is masked."""
        return self.url.display

    def connection(self, *, connect_timeout_s: float = CONNECT_TIMEOUT_S) -> "Connection":
        """Makes a connection, which connects when it is first used."""
        from kombu import Connection  # noqa: PLC0415 - start-up: kombu costs 60 ms, and most commands need none

        tls: Any = self.url.tls or False
        return Connection(
            self.celery_url,
            ssl=tls,
            connect_timeout=connect_timeout_s,
        )

    def probe(self, patience_s: float) -> str:
        """Connects, trying again while nobody answers; returns product and version.

        Raises:
            BrokerUnreachableError: it does not answer in time, or refuses the user or virtual host.
        """
        with self.connection(connect_timeout_s=min(CONNECT_TIMEOUT_S, patience_s)) as connection:
            try:
                patient: Any = connection  # the stubs want whole seconds
                patient.ensure_connection(
                    interval_start=PAUSE_S, interval_step=PAUSE_S, interval_max=1, timeout=patience_s
                )
                found: Any = connection.connection
                limit_replies(found)
                properties = found.server_properties
            except errors_of(connection) as error:
                raise self.unreachable(error) from error
        return f"{properties.get('product', 'AMQP broker')} {properties.get('version', '')}".strip()

    def unreachable(self, error: BaseException) -> BrokerUnreachableError:
        """Words a failure to reach the broker, or to be let in."""
        said = " ".join(str(error).split()) or type(error).__name__
        if any(word in said for word in DENIED):
            return BrokerUnreachableError(
                f"the broker at {self.display} refuses us: {said}",
                hint="correct user, password and virtual host in PROCTOR_BROKER_URL, or grant the user "
                "configure, write and read on that virtual host",
            )
        return BrokerUnreachableError(
            f"the broker at {self.display} does not answer: {said}", hint=UNREACHABLE_HINT
        )


def limit_replies(connection: Any) -> None:
    """Makes every later answer of the broker a matter of `REPLY_TIMEOUT_S`; py-amqp would wait for ever.

    Args:
        connection: py-amqp's, which is open.
    """
    connection.sock.settimeout(REPLY_TIMEOUT_S)


def errors_of(connection: "Connection") -> tuple[type[Exception], ...]:
    """Lists what using a connection to a broker may raise; connects to nothing."""
    from kombu.exceptions import KombuError  # noqa: PLC0415 - start-up: see `AmqpTarget.connection`

    transport = (*connection.connection_errors, *connection.channel_errors)
    return (KombuError, *cast("tuple[type[Exception], ...]", transport))
