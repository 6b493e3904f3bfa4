"""Access to one Redis and its queues: settings, client, ledger, runs; each part is created on first use.

Nothing here prints or belongs to a process: several of these can be open at a time.
"""

from __future__ import annotations

from contextlib import closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from shared.errors import InfrastructureError, RedisUnreachableError
from shared.kinds import Kind, all_kinds
from shared.processes.heartbeat import oldest_beat_s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import redis

    from shared.broker import Publisher
    from shared.ledger.ledger import Ledger
    from shared.queues import WakeQueues
    from shared.runs import RunStore
    from shared.server.in_use import Connection
    from shared.settings import Settings

CANNOT_WRITE: Final = "MISCONF"
"""Error word of a server whose disk is full."""
FULL_S: Final = 2.0
"""How long a call waits for a full Redis, which rarely resolves by itself."""


class Access:
    """The way to one Redis; closing it releases the connections.

    A program with several threads calls `connect` before it shares one.

    Args:
        settings: name the server and the time limits.
        redis_flag: URL that the command line gave; None: that of the settings.
        on_refusal: called with the reason when a call begins to wait for a Redis that refuses writes.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        redis_flag: str | None = None,
        on_refusal: Callable[[str], object] = str,
    ) -> None:
        self.settings = settings
        self._redis_flag = redis_flag
        self._on_refusal = on_refusal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> Self:
        """Creates all parts now.

        Raises:
            ProctorError: Redis or a separate broker does not answer, or is unfit.
        """
        self.require_broker()
        _parts = self.ledger, self.store, self.impatient_store, self.publisher, self.queues
        return self

    @cached_property
    def connection(self) -> Connection:
        """The Redis in use: flag, else environment, else embedded (started when it is not running)."""
        from shared.server.in_use import resolve_target  # noqa: PLC0415 - start-up: `--help` must not load redis

        # Most commands only read the ledger, which works while a separate broker is unavailable.
        return resolve_target(self.settings, redis_flag=self._redis_flag, with_broker=False)

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
        from shared.ledger.calls import is_foreseen  # noqa: PLC0415 - start-up: `--help` must not load redis

        try:
            return {**self.queues.lengths()}
        except Exception as error:
            if not self._has_own_broker or not is_foreseen(error):
                raise
            return dict.fromkeys(all_kinds())

    @property
    def _has_own_broker(self) -> bool:
        return self.connection.broker != self.connection.target

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, with the time limits of a caller that waits for it."""
        from shared.ledger import ledger, times  # noqa: PLC0415 - start-up: `--help` must not load redis

        settings = self.settings
        return ledger.Ledger(
            self.client,
            patience_s=settings.patience_s,
            namespace_ttl_s=settings.namespace_ttl_s,
            times=times.Times.of(settings.lease_s),
            full_s=min(FULL_S, settings.patience_s),
            on_refusal=self._on_refusal,
        )

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

    def follow_masters(self) -> None:
        """Leaves servers that sentinels have replaced; to be called each second by what runs for long."""
        self.connection.target.follow_master(self.client)
        self.publisher.follow_master()

    def count_workers(self, kind: Kind, layout: int = 0, needed: Iterable[str] = ()) -> int:
        """Counts live workers of a kind that know a layout of runs; 0: all of them.

        With `needed`, as `shared.plugins` names it, those are not counted that lack something; of new ones it
        is not known yet.

        All workers of an embedded server are on this machine and hold a heartbeat file, so that a killed
        worker is detected before its registration has expired.

        Raises:
            RedisUnreachableError: Redis is away.
        """
        if self.settings.redis_url is None and oldest_beat_s(self.settings.data_dir) is None:
            return 0  # before the embedded server is started, so that it starts while workers do
        live = [worker for worker in self.impatient_store.workers(kind) if worker.layout >= layout]
        wanted = frozenset(needed)
        has = self.impatient_store.plugins(kind) if wanted else {}
        return sum(wanted <= has.get(worker.name, wanted) for worker in live)

    def unwritable(self) -> str:
        """Returns a message if the server cannot write its data; empty if it can, or does not report it."""
        from shared.ledger.calls import is_foreseen, refused_write  # noqa: PLC0415 - start-up: `--help` must not load redis

        try:
            refusal = refused_write(self.client)
        except Exception as error:
            if not is_foreseen(error):
                raise
            return ""
        if not refusal.startswith(CANNOT_WRITE):
            return ""
        return f"Redis cannot write its data: make room on {self.disk}, and it goes on"

    @property
    def disk(self) -> str:
        """The server's disk, as far as known."""
        return f"the disk of {self.settings.data_dir}" if self.connection.embedded else "the server's disk"

    def with_disk_hint(self, error: RedisUnreachableError) -> RedisUnreachableError:
        """Adds the place of the data to the error of an embedded server with a full disk."""
        if CANNOT_WRITE in error.message and self.connection.embedded:
            error.hint = f"make room on {self.disk}, then run the command again"
        return error

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
