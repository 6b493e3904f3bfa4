"""One Redis server as we use it: its URL in every form, clients for it, and whether it can carry the ledger.

`resolve_target` is the one place that decides which server that is: `--redis`, else the environment, else the
embedded server of the data folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from shared.errors import RedisUnreachableError, RedisUnsuitableError
from shared.fitness import why_unsuitable
from shared.redis_url import RedisUrl, mask_password, parse_redis_url

if TYPE_CHECKING:
    import redis

    from shared.settings import Settings

SOCKET_TIMEOUT_S: Final = 10.0
"""A server that is silent for longer is treated as gone; the ledger then asks again."""
CONNECT_TIMEOUT_S: Final = 2.0
"""For opening one connection."""
PAUSE_S: Final = 0.05
"""Between two attempts to reach a server."""
UNREACHABLE_HINT: Final = (
    "start it, or correct --redis or PROCTOR_REDIS_URL; without a URL, Proctor starts a server of its own"
)


class Closeable(Protocol):
    """Something to let go of."""

    def close(self) -> None:
        """Lets go."""


@dataclass(frozen=True)
class RedisTarget:
    """A Redis server, by URL; knows its forms and connects to nothing by itself."""

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
        socket_timeout_s: float = SOCKET_TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        decode: bool = False,
    ) -> "redis.Redis":
        """Makes a client, which connects when it is first used. It retries nothing: the ledger does.

        Args:
            socket_timeout_s: how long to wait for a reply.
            connect_timeout_s: how long to wait for a connection.
            decode: replies as text instead of bytes.
        """
        import redis  # noqa: PLC0415 - start-up: redis costs 80 ms, and `--help` needs none
        from redis.backoff import NoBackoff  # noqa: PLC0415 - as above
        from redis.retry import Retry  # noqa: PLC0415 - as above

        options: dict[str, Any] = {
            "socket_timeout": socket_timeout_s,
            "decode_responses": decode,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,  # lists and bytes, whatever a later version of redis-py prefers
        }
        if self.url.scheme == "sentinel":
            return self._client_by_sentinel({**options, "socket_connect_timeout": connect_timeout_s})
        if self.url.scheme != "unix":
            options |= {"socket_connect_timeout": connect_timeout_s, "socket_keepalive": True}
        return redis.Redis.from_url(self.redis_url, **options)

    def _client_by_sentinel(self, options: dict[str, Any]) -> "redis.Redis":
        from redis.sentinel import Sentinel  # noqa: PLC0415 - start-up: see `client`

        login = {"username": self.url.username, "password": self.url.password, "db": self.url.db}
        asking = {**options, **self._sentinel_login()}
        sentinel = Sentinel(self.url.hosts, sentinel_kwargs=asking, **options, **login)  # type: ignore[no-untyped-call]  # redis-py has no types here
        client: redis.Redis = sentinel.master_for(self.url.path)  # type: ignore[no-untyped-call]  # as above
        return client

    def _sentinel_login(self) -> dict[str, str]:
        return {name.removeprefix("sentinel_"): value for name, value in self.url.options.items()}


@dataclass(frozen=True)
class Connection:
    """The Redis in use."""

    target: RedisTarget
    """The ledger's server."""
    broker: RedisTarget
    """The queue's server; usually the same."""
    embedded: bool
    """Whether the ledger's server is the data folder's own."""
    lease: Closeable
    """Keeps an embedded server alive; close it when the work is done."""


class _NoLease:
    def close(self) -> None:
        """A server of somebody else needs no lease."""


def resolve_target(settings: "Settings", *, redis_flag: str | None = None) -> Connection:
    """Decides which Redis is used, and makes sure that it answers and is fit for us.

    Args:
        settings: what the environment says.
        redis_flag: value of `--redis`, which wins over the environment; for the queue too.

    Raises:
        ConfigError: a URL names no server, or the data folder cannot be used.
        RedisUnreachableError: the server does not answer within its time limit.
        RedisUnsuitableError: the server is too old, a cluster, or evicts keys.
        NoServerError: no URL is given, and there is no server program to start.
    """
    broker_url = settings.broker_url if redis_flag is None else None
    broker = RedisTarget.parse(broker_url) if broker_url else None
    url = settings.redis_url if redis_flag is None else redis_flag
    if url is not None:
        target = RedisTarget.parse(url)
        _probe(target, settings.connect_patience_s)
        lease: Closeable = _NoLease()
    else:
        from shared.embedded import ensure  # noqa: PLC0415 - start-up: 10 ms that nobody with a URL needs

        server = ensure(settings.data_dir, idle_s=settings.embedded_idle_s)
        target, lease = server.target, server
    if broker is not None and broker != target:
        try:
            _probe(broker, settings.connect_patience_s)
        except BaseException:
            lease.close()
            raise
    return Connection(target, broker or target, url is None, lease)


def _probe(target: RedisTarget, patience_s: float) -> None:
    client = target.client()
    try:
        ping_until(client, patience_s, where=target.display)
        check_server(client)
    finally:
        client.close()


def ping_until(client: "redis.Redis", patience_s: float, *, where: str = "") -> None:
    """Waits until the server answers and has loaded its data.

    Args:
        client: any client of ours.
        patience_s: a hard limit, whatever name servers, firewalls and frozen servers do.
        where: the server's URL for the error message, default what the client knows.

    Raises:
        RedisUnreachableError: it does not answer, or refuses our credentials.
    """
    # In a thread of its own, because neither a name look-up nor a reply that trickles in has a time limit.
    attempt = _Attempt(client, monotonic() + patience_s)
    attempt.start()
    attempt.join(patience_s + PAUSE_S)
    if attempt.answered:
        return
    attempt.given_up.set()
    place = where or _place(client)
    if attempt.refusal is not None:
        raise RedisUnreachableError(
            f"Redis at {place} refuses us: {attempt.refusal}", hint="correct user and password in the URL"
        )
    why = attempt.failure or "it is silent"
    raise RedisUnreachableError(
        f"Redis at {place} does not answer within {patience_s:g} s: {why}", hint=UNREACHABLE_HINT
    )


class _Attempt(Thread):
    """Asks a server until it answers, the time is over, or there is no sense in asking again."""

    def __init__(self, client: "redis.Redis", deadline: float) -> None:
        super().__init__(name="redis-ping", daemon=True)
        self.client = client
        self.deadline = deadline
        self.given_up = Event()
        self.answered = False
        self.failure: str | None = None
        self.refusal: str | None = None

    def run(self) -> None:
        """Pings."""
        while not self._is_over() and monotonic() < self.deadline:
            self.given_up.wait(PAUSE_S)

    def _is_over(self) -> bool:
        from redis.exceptions import AuthenticationError  # noqa: PLC0415 - start-up: see `client`

        try:
            self.answered = bool(self.client.ping())
        except AuthenticationError as error:
            self.refusal = str(error)
        except Exception as error:  # noqa: BLE001 - host names fail in ways that are no RedisError
            self.failure = str(error).strip().rstrip(".") or type(error).__name__
        return self.answered or self.refusal is not None or self.given_up.is_set()


def _place(client: "redis.Redis") -> str:
    known = client.connection_pool.connection_kwargs
    if "path" in known:
        return f"unix://{known['path']}"
    if "host" in known:
        return f"redis://{known['host']}:{known.get('port', 6379)}"
    return "the sentinels' master"


def check_server(client: "redis.Redis") -> None:
    """Refuses a server that answers but cannot carry the ledger.

    Raises:
        RedisUnsuitableError: it is older than 6.2, a cluster, a sentinel, a replica, or evicts keys.
        RedisUnreachableError: it went away while it was asked.
    """
    from redis.exceptions import RedisError  # noqa: PLC0415 - start-up: see `RedisTarget.client`

    try:
        info = client.info()
    except (RedisError, OSError) as error:
        raise RedisUnreachableError(
            f"Redis at {_place(client)} does not answer: {error}", hint=UNREACHABLE_HINT
        ) from error
    unfit = why_unsuitable(info)
    if unfit is not None:
        raise RedisUnsuitableError(f"Redis at {_place(client)} {unfit.what}", hint=unfit.mend)


def read_config(client: "redis.Redis", name: str) -> str | None:
    """Reads one setting of the server; None where it does not tell, as managed services do not."""
    from redis.exceptions import ResponseError  # noqa: PLC0415 - start-up: see `RedisTarget.client`

    try:
        found = client.config_get(name).get(name)
    except ResponseError:
        return None
    return found.decode() if isinstance(found, bytes) else found
