"""One command's way to settings, Redis, ledger and queue, each made when it is first asked for."""

from __future__ import annotations

from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from producer.cli.options import GlobalOptions
from producer.cli.output import Output
from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from shared.target import Connection

    from shared.broker import Publisher
    from shared.ledger import Ledger
    from shared.runs import RunStore

P = ParamSpec("P")


class Session:
    """What a handler works with; closing it lets go of Redis."""

    def __init__(self, options: GlobalOptions, settings: Settings | None = None) -> None:
        self.options = options
        self.output = Output(options)
        if settings is not None:
            self.settings = settings

    @cached_property
    def settings(self) -> Settings:
        """The settings of the environment."""
        return Settings.from_environment()

    @cached_property
    def connection(self) -> Connection:
        """The Redis in use: flag, else environment, else embedded (started when it is not running)."""
        from shared.target import resolve_target  # noqa: PLC0415 - start-up: `--help` must not load redis

        return resolve_target(self.settings, redis_flag=self.options.redis)

    @cached_property
    def client(self) -> redis.Redis:
        """A client of that Redis, checked once: it answers and can carry the ledger."""
        from shared.target import check_server, ping_until  # noqa: PLC0415 - start-up: `--help` must not load redis

        client = self.connection.target.client()
        ping_until(client, self.settings.connect_patience_s)
        check_server(client)
        return client

    @cached_property
    def broker_client(self) -> redis.Redis:
        """A client of the broker's server, which is the ledger's unless the environment says otherwise."""
        connection = self.connection
        return self.client if connection.broker == connection.target else connection.broker.client()

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, with the patience of a running command."""
        from shared.ledger import Ledger  # noqa: PLC0415 - start-up: `--help` must not load redis

        return Ledger(self.client, patience_s=self.settings.patience_s)

    @cached_property
    def store(self) -> RunStore:
        """The reading side of runs."""
        from shared.runs import RunStore  # noqa: PLC0415 - start-up: `--help` must not load redis

        return RunStore(self.client)

    @cached_property
    def publisher(self) -> Publisher:
        """The way to publish wake-ups for workers."""
        from shared.broker import Publisher, make_app  # noqa: PLC0415 - start-up: Celery costs 80 ms

        return Publisher(make_app(self.connection.broker))

    def reconnect(self) -> None:
        """Forgets the connection, so that the next use starts an embedded server that has gone."""
        self.close()
        for name in ("connection", "client", "broker_client", "ledger", "store", "publisher"):
            self.__dict__.pop(name, None)

    def close(self) -> None:
        """Lets go of Redis; an embedded server without clients stops by itself."""
        connection = self.__dict__.get("connection")
        if connection is not None:
            connection.lease.close()


def pass_session(handler: Callable[Concatenate[Session, P], int | None]) -> Callable[P, Any]:
    """Hands a handler its session and closes it afterwards."""

    @wraps(handler)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> int | None:
        session = Session(click.get_current_context().ensure_object(GlobalOptions))
        try:
            return handler(session, *args, **kwargs)
        finally:
            session.close()

    return wrapper
