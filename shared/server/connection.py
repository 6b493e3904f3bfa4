"""Connects to a Redis server: waits until it answers, translates its errors, rejects an unsuitable one."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from shared.errors import DENIED_HINT, RedisDeniedError, RedisUnreachableError, RedisUnsuitableError
from shared.server.requirements import channels, durability_risk, why_unsuitable

if TYPE_CHECKING:
    import redis

PAUSE_S: Final = 0.05
"""Between two attempts to reach a server."""
UNREACHABLE_HINT: Final = (
    "start it, or correct --redis or PROCTOR_REDIS_URL; without a URL, Proctor starts a server of its own"
)


def ping_until(client: "redis.Redis", patience_s: float, *, where: str = "") -> None:
    """Waits until the server answers and has loaded its data.

    Args:
        client: any client of ours.
        patience_s: a hard limit, also for name servers, firewalls and frozen servers.
        where: the server's URL for the error message, by default that of the client.

    Raises:
        RedisUnreachableError: it does not answer, or refuses our credentials.
        RedisDeniedError: its access rules deny our user even PING.
        RedisUnsuitableError: it refuses for another reason, such as a database that it does not have.
    """
    # In a thread, because neither a name look-up nor a slowly arriving reply has a time limit.
    attempt = _Attempt(client, monotonic() + patience_s)
    attempt.start()
    attempt.join(patience_s + PAUSE_S)
    if attempt.answered:
        return
    attempt.given_up.set()
    place = where or _place(client)
    if attempt.refusal is not None:
        raise refused(place, attempt.refusal) from attempt.refusal
    why = attempt.failure or "it is silent"
    raise RedisUnreachableError(
        f"Redis at {place} does not answer within {patience_s:g} s: {why}", hint=UNREACHABLE_HINT
    )


class _Attempt(Thread):
    """Pings a server until it answers, the time is over, or another attempt is pointless."""

    def __init__(self, client: "redis.Redis", deadline: float) -> None:
        super().__init__(name="redis-ping", daemon=True)
        self.client = client
        self.deadline = deadline
        self.given_up = Event()
        self.answered = False
        self.failure: str | None = None
        self.refusal: Exception | None = None

    def run(self) -> None:
        """Pings."""
        while not self._is_over() and monotonic() < self.deadline:
            self.given_up.wait(PAUSE_S)

    def _is_over(self) -> bool:
        from redis.exceptions import (  # noqa: PLC0415 - as in `RedisTarget.client`
            AuthenticationError,
            MasterDownError,
            ResponseError,
        )

        try:
            self.answered = bool(self.client.ping())
        except MasterDownError as error:
            self.failure = str(error)  # a fail-over is under way
        except (AuthenticationError, ResponseError) as error:
            # A server with a full disk refuses even PING; reads still work.
            self.answered = str(error).startswith("MISCONF ")
            self.refusal = None if self.answered else error
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


def refused(place: str, error: Exception) -> RedisUnreachableError | RedisUnsuitableError:
    """Builds the error for a server that refuses the login, a command, or the database.

    >>> from redis.exceptions import ResponseError
    >>> refused("redis://db:6379", ResponseError("DB index is out of range")).message
    'Redis at redis://db:6379 does not have the database of the URL: DB index is out of range'
    """
    from redis.exceptions import (  # noqa: PLC0415 - as in `RedisTarget.client`
        AuthenticationError,
        NoPermissionError,
    )

    if isinstance(error, AuthenticationError):
        return RedisUnreachableError(
            f"Redis at {place} refuses us: {error}", hint="correct user and password in the URL"
        )
    if isinstance(error, NoPermissionError):
        return RedisDeniedError(f"Redis at {place} denies our user a right: {error}", hint=DENIED_HINT)
    if "DB index" in str(error):
        return RedisUnsuitableError(
            f"Redis at {place} does not have the database of the URL: {error}",
            hint="its setting `databases` says how many there are, numbered from 0",
        )
    return RedisUnsuitableError(f"Redis at {place} refuses a command: {error}", hint="see `proctor doctor`")


def check_server(client: "redis.Redis") -> str:
    """Refuses a server that answers but cannot carry the ledger.

    Returns:
        What a crash of it would lose; empty if nothing significant.

    Raises:
        RedisUnsuitableError: it is older than 6.2, a cluster, a sentinel, a replica, or evicts keys.
        RedisDeniedError: its access rules deny our user the server's state, or our channels.
        RedisUnreachableError: it stopped answering meanwhile.
    """
    with _errors_distinguished(client):
        info = client.info()
    unfit = why_unsuitable(info)
    if unfit is not None:
        raise RedisUnsuitableError(f"Redis at {_place(client)} {unfit.what}", hint=unfit.fix)
    with _errors_distinguished(client):
        # The channel has no subscribers; this only checks the right.
        client.publish(channels(_database(client))[-1].replace("*", "access"), b"")
    return durability_risk(info)


def check_listening(client: "redis.Redis") -> None:
    """Makes sure that our user may subscribe to remote control and events, as workers and Flower do.

    Raises:
        RedisDeniedError: its access rules deny it.
        RedisUnreachableError: the server stopped answering meanwhile.
    """
    untyped: Any = client  # redis-py has no types here
    with _errors_distinguished(client), untyped.pubsub() as listener:
        for channel in channels(_database(client)):
            listener.psubscribe(channel)
            listener.parse_response()


@contextmanager
def _errors_distinguished(client: "redis.Redis") -> Iterator[None]:
    """Translates the client's errors into ours: a denied right is no outage."""
    from redis.exceptions import NoPermissionError, RedisError  # noqa: PLC0415 - as in `RedisTarget.client`

    try:
        yield
    except NoPermissionError as error:
        raise refused(_place(client), error) from error
    except (RedisError, OSError) as error:
        raise RedisUnreachableError(
            f"Redis at {_place(client)} does not answer: {error}", hint=UNREACHABLE_HINT
        ) from error


def _database(client: "redis.Redis") -> int:
    return int(client.connection_pool.connection_kwargs.get("db") or 0)


def read_config(client: "redis.Redis", name: str) -> str | None:
    """Reads one setting of the server; None if CONFIG is not available, as in managed services."""
    from redis.exceptions import ResponseError  # noqa: PLC0415 - as in `RedisTarget.client`

    try:
        found = client.config_get(name).get(name)
    except ResponseError:
        return None
    return found.decode() if isinstance(found, bytes) else found
