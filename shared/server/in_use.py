"""Decides which Redis is in use: that of `--redis`, else of the environment, else the embedded one."""

from dataclasses import dataclass
from typing import Protocol

from shared.server.client import RedisTarget, probe
from shared.settings import Settings


class Closeable(Protocol):
    """Something that can be closed."""

    def close(self) -> None:
        """Closes it."""


@dataclass(frozen=True)
class Connection:
    """The servers in use."""

    target: RedisTarget
    """The ledger's server."""
    broker: RedisTarget
    """The broker; usually the same server."""
    embedded: bool
    """Whether the ledger's server is the embedded one of the data folder."""
    lease: Closeable
    """Keeps an embedded server alive; close it when the work is done."""
    risk: str = ""
    """What a crash of the ledger's server would lose; empty if nothing significant."""


class _NoLease:
    def close(self) -> None:
        """A lease for servers that are not embedded; does nothing."""


def resolve_target(
    settings: Settings, *, redis_flag: str | None = None, with_broker: bool = True
) -> Connection:
    """Decides which Redis is used, and makes sure that it answers and is suitable.

    Args:
        settings: settings of the environment.
        redis_flag: value of `--redis`, which overrides the environment; for the queue too.
        with_broker: whether to check a separate broker, too.

    Raises:
        ConfigError: a URL names no server, or the data folder cannot be used.
        RedisUnreachableError: the server does not answer within its time limit.
        RedisDeniedError: its access rules deny our user a required right.
        RedisUnsuitableError: the server is too old, a cluster, or evicts keys.
        NoServerError: no URL is given, and there is no server program to start.
    """
    broker_url = settings.broker_url if redis_flag is None else None
    broker = RedisTarget.parse(broker_url) if broker_url else None
    url = settings.redis_url if redis_flag is None else redis_flag
    risk = ""
    if url is not None:
        target = RedisTarget.parse(url)
        risk = probe(target, settings.connect_patience_s)
        lease: Closeable = _NoLease()
    else:
        from shared.server.embedded import ensure  # noqa: PLC0415 - start-up: 10 ms that nobody with a URL needs

        server = ensure(settings.data_dir, idle_s=settings.embedded_idle_s)
        target, lease = server.target, server
    if with_broker and broker is not None and broker != target:
        try:
            probe(broker, settings.connect_patience_s)
        except BaseException:
            lease.close()
            raise
    return Connection(target, broker or target, url is None, lease, risk)
