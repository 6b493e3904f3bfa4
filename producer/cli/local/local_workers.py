"""Local workers for runs: started only if none is alive for their kind, stopped with the command."""

from collections.abc import Sequence
from threading import Event
from time import monotonic
from typing import Final, Self

from producer.cli.local.child_processes import (
    Child,
    child_environment,
    last_log_line,
    open_log,
    worker_command,
)
from producer.cli.output import printable
from producer.cli.session import Session
from producer.text import plural
from shared.errors import InfrastructureError, RedisUnreachableError
from shared.kinds import Kind
from shared.names import RunState

NAME: Final = "workers"
ALONE_FOR_S: Final = 3.0
"""How long no worker may be alive before workers are started here."""
CALLS_END_S: Final = 3.5
"""How long calls in flight may continue after Ctrl-C: most are answered by then, and users still wait."""
NOTE_AFTER_S: Final = 1.0
"""If workers take longer to end, a note shows what the command waits for."""
START_WITHIN_S: Final = 30.0
"""How long `wait_until_alive` waits for the first worker of each kind."""
_LOOK_EVERY_S: Final = 0.05


class LocalWorkers:
    """The worker processes that this command started, if any; as a context, it stops them at its end.

    Args:
        session: access to Redis and the data folder.
        kinds: what they work on.
        processes: how many; 0 starts none, None takes the settings'.
        in_flight: items in flight per process; None takes the settings'.
    """

    def __init__(
        self, session: Session, kinds: Sequence[Kind], *, processes: int | None, in_flight: int | None
    ) -> None:
        self._session = session
        self._kinds = kinds
        self._processes = session.settings.processes if processes is None else processes
        self._in_flight = in_flight
        self._child: Child | None = None
        self._alone_since_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_working(self) -> bool:
        """Whether workers were started here."""
        return self._child is not None

    def start(self) -> None:
        """Starts the workers, once.

        Raises:
            InfrastructureError: they cannot be started.
        """
        if self._child is not None or not self._processes:
            return
        settings = self._session.settings
        command = worker_command(
            settings,
            kinds=self._kinds,
            processes=self._processes,
            in_flight=self._in_flight,
            with_parent=True,
        )
        self._child = Child.start(
            NAME,
            command,
            environment=child_environment(settings),
            grace_s=settings.grace_s,
            log=open_log(settings, NAME),
            with_parent=True,
            returns_items=True,
        )
        self._session.output.detail(
            f"started {plural(self._processes, 'worker')} here, log in {self._child.log}"
        )

    def wait_until_alive(self) -> None:
        """Waits until each kind has a worker, at most `START_WITHIN_S`; runs start workers of their own then.

        Raises:
            InfrastructureError: the workers started here ended by themselves.
            RedisUnreachableError: Redis is away.
        """
        deadline_s = monotonic() + START_WITHIN_S
        while monotonic() < deadline_s and not self._are_alive():
            self.check()
            Event().wait(_LOOK_EVERY_S)

    def ensure_running(self, workers: int | None = None) -> None:
        """Starts workers once none has been alive for `ALONE_FOR_S`; to be called periodically.

        Workers that were alive at the beginning may belong to another command, and end with it.

        Args:
            workers: live workers of the kind, if already counted.

        Raises:
            InfrastructureError: the workers started here ended by themselves, or cannot be started.
            RedisUnreachableError: Redis is away.
        """
        self.check()
        if self.is_working or (self._are_alive() if workers is None else workers):
            self._alone_since_s = None
            return
        self._alone_since_s = self._alone_since_s or monotonic()
        if monotonic() - self._alone_since_s >= ALONE_FOR_S:
            self.start()

    def start_in_background(self) -> None:
        """Starts workers that outlive this command and end when every run of their kinds is final."""
        if not self._processes:
            return
        settings = self._session.settings
        child = Child.start(
            NAME,
            worker_command(
                settings,
                kinds=self._kinds,
                processes=self._processes,
                in_flight=self._in_flight,
                burst=True,
            ),
            environment=child_environment(settings),
            grace_s=settings.grace_s,
            log=open_log(settings, NAME),
        )
        workers = plural(self._processes, "worker")
        self._session.output.note(f"{workers} in the background until the run ends; log in {child.log}")

    def check(self) -> None:
        """Checks that the started workers are still running.

        Raises:
            InfrastructureError: they ended by themselves; the message ends with the last line of their log.
        """
        if self._child is None or (code := self._child.exit_code) is None:
            return
        log = self._child.log
        self._child = None
        line = printable(last_log_line(log)) if log else ""
        message = f"the workers started here ended by themselves with exit code {code}"
        raise InfrastructureError(f"{message}: {line}" if line else message, hint=f"their log is {log}")

    def ask_to_stop(self) -> None:
        """Sends SIGTERM to the started workers, without waiting for their end."""
        if self._child is not None:
            self._child.ask_to_stop()

    def interrupt(self, run: str) -> None:
        """Stops the started workers after Ctrl-C; the run is kept.

        Calls in flight get `CALLS_END_S`, then their items go back to the queue. Workers that other runs may
        use as well only get SIGTERM: `stop` waits for them.

        Args:
            run: the run, which is not final.
        """
        child = self._child
        if child is None:
            return
        try:
            child.ask_to_stop()
            if not child.ends_within(CALLS_END_S) and not self._is_used_by_others(besides=run):
                child.stop_now()
        except KeyboardInterrupt:
            child.stop_now()
            raise

    def stop(self) -> None:
        """Stops the started workers; running items of other runs get the grace period.

        Ctrl-C meanwhile ends the workers at once: unfinished items are given back.
        """
        if self._child is None:
            return
        child, self._child = self._child, None
        try:
            child.ask_to_stop()
            if not child.ends_within(NOTE_AFTER_S) and self._is_used_by_others():
                grace_s = self._session.settings.grace_s
                self._session.output.note(
                    f"waiting up to {grace_s:g} s for running items of other runs; Ctrl-C ends them at once"
                )
            child.stop()
        except KeyboardInterrupt:
            child.stop_now()
            raise

    def _are_alive(self) -> bool:
        """Returns whether each kind has a worker, wherever it was started."""
        return all(self._session.access.count_workers(kind) for kind in self._kinds)

    def _is_used_by_others(self, *, besides: str = "") -> bool:
        """Returns whether the started workers may be working on a run other than this one."""
        try:
            store = self._session.access.impatient_store
            running = (store.list(limit=2, kind=kind, state=RunState.RUNNING) for kind in self._kinds)
            return any(info.run != besides for found in running for info in found)
        except RedisUnreachableError:
            return False
