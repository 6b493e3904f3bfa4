"""The settings, Redis client, ledger and queue of one command, each created on first use."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing, suppress
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

import click

from producer.cli.error_exit import describe
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output
from shared.errors import (
    InfrastructureError,
    RedisUnreachableError,
    RunLostError,
    UnknownRunError,
    UsageError,
)
from shared.kinds import Kind, all_kinds
from shared.processes.heartbeat import oldest_beat_s
from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis

    from shared.broker import Publisher
    from shared.ledger.ledger import Ledger
    from shared.queues import WakeQueues
    from shared.runs import RunStore
    from shared.server.in_use import Connection

P = ParamSpec("P")
CANNOT_WRITE: Final = "MISCONF"
"""Error word of a server whose disk is full."""

FULL_S: Final = 2.0
"""How long a command waits for a full Redis, which rarely resolves by itself."""


class Session:
    """Lazily created resources of one command; closing it releases the connection to Redis."""

    def __init__(self, options: GlobalOptions, settings: Settings | None = None) -> None:
        self.options = options
        self.output = Output(options)
        self.seen = set[str]()
        """Runs that this command has found: if one is unknown later, it was lost meanwhile."""
        self._has_warned_of_refusal = False
        if settings is not None:
            self.settings = settings

    @cached_property
    def settings(self) -> Settings:
        """The settings of the environment, with the server that `--redis` names."""
        settings = Settings.from_environment(origins=self.options.from_file)
        if self.options.redis:
            settings = settings.override("--redis", redis_url=self.options.redis, broker_url=None)
        return settings

    @cached_property
    def connection(self) -> Connection:
        """The Redis in use: flag, else environment, else embedded (started when it is not running)."""
        from shared.server.in_use import resolve_target  # noqa: PLC0415 - start-up: `--help` must not load redis

        # Most commands only read the ledger, which works while a separate broker is unavailable.
        return resolve_target(self.settings, redis_flag=self.options.redis, with_broker=False)

    def require_broker(self) -> None:
        """Makes sure that a separate broker answers, before work that needs it.

        Raises:
            InfrastructureError: it does not answer, or is unfit.
        """
        from shared.server.client import probe  # noqa: PLC0415 - start-up: `--help` must not load redis

        if self._has_own_broker:
            probe(self.connection.broker, self.settings.connect_patience_s)

    def broker_refusal(self) -> str:
        """Returns why a separate broker refuses writes; empty if it accepts them.

        Raises:
            redis.RedisError: it does not answer.
        """
        from shared.ledger.calls import refused_write  # noqa: PLC0415 - start-up: `--help` must not load redis

        if not self._has_own_broker:
            return ""
        with closing(self.connection.broker.client()) as client:
            return refused_write(client)

    @cached_property
    def client(self) -> redis.Redis:
        """A client of that Redis, which was checked: it answers and can carry the ledger."""
        return self.connection.target.client()

    @cached_property
    def queues(self) -> WakeQueues:
        """The broker's queues; the broker is the ledger's server unless a separate one is configured."""
        from shared.queues import WakeQueues  # noqa: PLC0415 - start-up: `--help` must not load redis

        return WakeQueues(self.connection.broker, None if self._has_own_broker else self.client)

    def queue_lengths(self) -> dict[Kind, int | None]:
        """Counts the wake-ups that no worker has taken yet; None while a separate broker does not answer.

        Raises:
            redis.RedisError: the broker is the ledger's server, and it does not answer.
        """
        try:
            return {**self.queues.lengths()}
        except Exception as error:
            if describe(error) is None or not self._has_own_broker:
                raise
            return dict.fromkeys(all_kinds())

    @property
    def _has_own_broker(self) -> bool:
        return self.connection.broker != self.connection.target

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, with the time limits of a running command."""
        from shared.ledger.ledger import Ledger  # noqa: PLC0415 - start-up: `--help` must not load redis
        from shared.ledger.times import Times  # noqa: PLC0415 - same

        settings = self.settings
        return Ledger(
            self.client,
            patience_s=settings.patience_s,
            namespace_ttl_s=settings.namespace_ttl_s,
            times=Times.of(settings.lease_s),
            full_s=min(FULL_S, settings.patience_s),
            on_refusal=self._warn_of_refusal,
        )

    def _warn_of_refusal(self, why: str) -> None:
        """Warns once that the command waits for a Redis that refuses writes."""
        if not self._has_warned_of_refusal:
            self._has_warned_of_refusal = True
            self.output.warn(f"Redis takes no writes; waiting up to {self.settings.patience_s:g} s: {why}")
            if CANNOT_WRITE in why:
                self.output.hint(f"make room on {self._disk}, and this command goes on")

    @cached_property
    def store(self) -> RunStore:
        """Reads runs and results."""
        from shared.runs import RunStore  # noqa: PLC0415 - start-up: `--help` must not load redis

        return RunStore(self.client, patience_s=self.settings.patience_s)

    @cached_property
    def impatient_store(self) -> RunStore:
        """The same without waiting, for callers that handle an unavailable Redis themselves."""
        from shared.runs import RunStore  # noqa: PLC0415 - start-up: `--help` must not load redis

        return RunStore(self.client, patience_s=0.0)

    @cached_property
    def publisher(self) -> Publisher:
        """Publishes wake-ups for workers."""
        from shared.broker import Publisher, make_app  # noqa: PLC0415 - start-up: Celery costs 80 ms

        return Publisher(make_app(self.connection.broker))

    def count_workers(self, kind: Kind, layout: int = 0) -> int:
        """Counts live workers of a kind that know a layout of runs; 0: all of them.

        All workers of an embedded server are on this machine and hold a heartbeat file, so that a killed
        worker is detected before its registration has expired.

        Raises:
            RedisUnreachableError: Redis is away.
        """
        if self.settings.redis_url is None and oldest_beat_s(self.settings.data_dir) is None:
            return 0  # before the embedded server is started, so that it starts while workers do
        return sum(worker.layout >= layout for worker in self.impatient_store.workers(kind))

    def warn_if_unwritable(self) -> None:
        """Warns that the server cannot write its data, for commands that only read it."""
        if unwritable := self.unwritable():
            self.output.warn(unwritable)

    def unwritable(self) -> str:
        """Returns a message if the server cannot write its data; empty if it can, or does not report it."""
        from shared.ledger.calls import refused_write  # noqa: PLC0415 - start-up: `--help` must not load redis

        try:
            refusal = refused_write(self.client)
        except Exception as error:
            if describe(error) is None:
                raise
            return ""
        if not refusal.startswith(CANNOT_WRITE):
            return ""
        return f"Redis cannot write its data: make room on {self._disk}, and it goes on"

    @property
    def _disk(self) -> str:
        """The server's disk, as far as known."""
        return f"the disk of {self.settings.data_dir}" if self.connection.embedded else "the server's disk"

    def with_disk_hint(self, error: RedisUnreachableError) -> RedisUnreachableError:
        """Adds the place of the data to the error of an embedded server with a full disk."""
        if CANNOT_WRITE in error.message and self.connection.embedded:
            error.hint = f"make room on {self._disk}, then run the command again"
        return error

    def command(self, *words: str) -> str:
        """Formats a follow-up command that uses the same Redis."""
        options = ["--redis", self.connection.target.display] if self.options.redis else []
        return shlex.join(["proctor", *words, *options])

    def confirm(self, question: str) -> None:
        """Asks for confirmation before something is deleted.

        Raises:
            UsageError: the answer was no, or stdin is no terminal and `--yes` was not given.
        """
        if self.options.yes:
            return
        if not sys.stdin.isatty() or self.options.json:
            raise UsageError(f"asked to {question.rstrip('?')}", hint="add --yes to do it without a question")
        if not click.confirm(question, err=True):
            raise UsageError("nothing was changed")

    def revive(self) -> None:
        """Restarts an embedded server that has ended; clients reconnect to the same socket."""
        if not self.connection.embedded:
            return
        with suppress(InfrastructureError):  # the caller has a time limit of its own
            from shared.server.in_use import resolve_target  # noqa: PLC0415 - start-up: `--help` must not load redis

            before, self.connection = self.connection, resolve_target(self.settings, with_broker=False)
            before.lease.close()

    def close(self) -> None:
        """Closes the connections; an embedded server without clients stops by itself."""
        made = self.__dict__
        queues, client, connection = made.get("queues"), made.get("client"), made.get("connection")
        if queues is not None:
            queues.close()
        if client is not None:
            client.close()
        if connection is not None:
            connection.lease.close()


def _lost(error: UnknownRunError) -> RunLostError:
    """Builds the error for a run that existed before."""
    return RunLostError(
        f"run {error.run} is gone: somebody removed it, it expired, or Redis lost its data",
        hint="the input is where it was: run it again",
    )


def pass_session(handler: Callable[Concatenate[Session, P], int | None]) -> Callable[P, Any]:
    """Passes a session to a command's handler and closes it afterwards."""

    @wraps(handler)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> int | None:
        options = click.get_current_context().ensure_object(GlobalOptions)
        if options.json and options.jsonl:
            raise UsageError("--json and --jsonl are two forms of the same", hint="keep one of them")
        session = Session(options)
        try:
            return handler(session, *args, **kwargs)
        except RedisUnreachableError as error:
            raise session.with_disk_hint(error) from error.__cause__
        except UnknownRunError as error:
            raise (_lost(error) if error.run in session.seen else error) from error
        finally:
            session.close()

    return wrapper
