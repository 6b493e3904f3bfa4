"""A RabbitMQ broker: its URL in every form, connections to it, and whether it answers.

    amqp://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/VHOST]        amqps:// with TLS

Several hosts are the nodes of one cluster. kombu is imported where a connection is made, so that a wrong
URL is an error in milliseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from shared.errors import BrokerUnreachableError, ConfigError
from shared.server.redis_url import TLS_OPTIONS, mask_password, read_host

if TYPE_CHECKING:
    from kombu import Connection

PORTS: Final = {"amqp": 5672, "amqps": 5671}
EXAMPLE: Final = "write amqp://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/VHOST], or amqps://… for TLS"
CERT_REQUIREMENTS: Final = {"none": 0, "optional": 1, "required": 2}
"""The values of `ssl.CERT_NONE`, `CERT_OPTIONAL` and `CERT_REQUIRED`."""
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


@dataclass(frozen=True, slots=True)
class AmqpUrl:
    """The parts of an AMQP URL, unquoted."""

    scheme: str
    """`amqp`, or `amqps` with TLS."""
    hosts: tuple[tuple[str, int], ...]
    """Nodes of the cluster, the first one is tried first."""
    vhost: str = "/"
    """The virtual host."""
    username: str = "guest"
    password: str = field(default="guest", repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """TLS options of the query."""

    @property
    def for_kombu(self) -> str:
        """The URL as kombu reads it: one for each host, with semicolons between them."""
        login = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@"
        vhost = quote(self.vhost, safe="")
        return ";".join(f"{self.scheme}://{login}{_authority(host)}/{vhost}" for host in self.hosts)

    @property
    def display(self) -> str:
        """The URL for people: its password is masked."""
        hosts = ",".join(map(_authority, self.hosts))
        vhost = "" if self.vhost == "/" else f"/{quote(self.vhost, safe='')}"
        return mask_password(f"{self.scheme}://{quote(self.username, safe='')}:x@{hosts}{vhost}")

    @property
    def tls(self) -> dict[str, Any] | None:
        """What Celery's `broker_use_ssl` takes; None without TLS."""
        if self.scheme != "amqps":
            return None
        options: dict[str, Any] = {
            name.removeprefix("ssl_"): value for name, value in self.options.items() if value
        }
        required = CERT_REQUIREMENTS[options.pop("cert_reqs", "required")]
        checks_name = options.pop("check_hostname", "true").lower() not in {"0", "false", "no"}
        # `server_hostname: None` is kombu's way to say: the host that is connected to.
        name = {"server_hostname": None} if required and checks_name else {}
        return {**options, "cert_reqs": required, **name}


def is_amqp(url: str) -> bool:
    """Whether a URL names an AMQP broker.

    >>> is_amqp("amqps://mq.example/proctor"), is_amqp("redis://db.example")
    (True, False)
    """
    return url.strip().partition("://")[0].lower() in PORTS


def parse_amqp_url(url: str) -> AmqpUrl:
    """Reads an AMQP URL.

    Raises:
        ConfigError: it cannot be read; the message holds the URL with its password masked.

    >>> parse_amqp_url("amqp://mq.example/proctor").hosts
    (('mq.example', 5672),)
    >>> parse_amqp_url("amqp://a:b@mq-1,mq-2:5673").display
    'amqp://a:***@mq-1:5672,mq-2:5673'
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        _refuse(url, "it cannot be read")  # Python's message may contain the password
    if parts.scheme not in PORTS:
        _refuse(url, "its scheme is neither amqp nor amqps")
    if parts.fragment or "@" in parts.path + parts.query or "/" in parts.path[1:]:
        _refuse(url, "in a password or virtual host, `/` is written %2F, `?` %3F, `#` %23 and `@` %40")
    known = TLS_OPTIONS if parts.scheme == "amqps" else frozenset[str]()
    for name in query:
        if name not in known:
            _refuse(url, f"unknown option {name!r}")
    if query.get("ssl_cert_reqs", "required") not in CERT_REQUIREMENTS:
        _refuse(url, "ssl_cert_reqs is required, optional or none")
    login, _, netloc = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    try:
        hosts = tuple(read_host(each, PORTS[parts.scheme]) for each in netloc.split(","))
    except ValueError as error:
        _refuse(url, str(error))
    return AmqpUrl(
        parts.scheme,
        hosts,
        unquote(parts.path[1:]) or "/",
        unquote(username) or "guest",
        unquote(password) or "guest",
        query,
    )


def _authority(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _refuse(url: str, why: str) -> NoReturn:
    raise ConfigError(f"{mask_password(url)!r} names no RabbitMQ broker: {why}", hint=EXAMPLE)


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
        """Connects, trying again while there is no answer; returns product and version.

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
        """Builds the error for a broker that does not answer or refuses the login."""
        text = " ".join(str(error).split()) or type(error).__name__
        if any(word in text for word in DENIED):
            return BrokerUnreachableError(
                f"the broker at {self.display} refuses us: {text}",
                hint="correct user, password and virtual host in PROCTOR_BROKER_URL, or grant the user "
                "configure, write and read on that virtual host",
            )
        return BrokerUnreachableError(
            f"the broker at {self.display} does not answer: {text}", hint=UNREACHABLE_HINT
        )


def limit_replies(connection: Any) -> None:
    """Sets `REPLY_TIMEOUT_S` for every later answer of the broker; py-amqp would wait for ever.

    Args:
        connection: py-amqp's, which is open.
    """
    connection.sock.settimeout(REPLY_TIMEOUT_S)


def errors_of(connection: "Connection") -> tuple[type[Exception], ...]:
    """Lists what using a connection to a broker may raise; connects to nothing."""
    from kombu.exceptions import KombuError  # noqa: PLC0415 - start-up: see `AmqpTarget.connection`

    transport = (*connection.connection_errors, *connection.channel_errors)
    return (KombuError, *cast("tuple[type[Exception], ...]", transport))
