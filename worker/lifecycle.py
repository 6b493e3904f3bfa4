"""Connects our worker process to Celery's: a bootstep that starts before messages arrive.

Celery stops the consumer first, then this step, then the pool. It has no way of its own to end a threads pool
early (no soft time limit, no cancel, and `REMAP_SIGTERM` breaks it), so the signals are ours:

    SIGTERM     drains, however often it comes: a service manager and our supervisor may both send it
    SIGINT      drains; the second one (Ctrl-C twice) returns running items at once
    SIGQUIT     returns running items at once

The same step serves `python -m worker` and a plain `celery -A worker.app worker`.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable
from math import inf
from typing import Any

from celery import bootsteps, signals
from celery.worker import state

from shared import __version__
from shared.broker import Publisher
from shared.errors import ProctorError
from shared.kinds import TURNS, all_kinds
from shared.ledger.ledger import Ledger
from shared.ledger.times import Times
from shared.observability import tracing
from shared.runs import RunStore
from shared.server.in_use import Connection, resolve_target
from shared.settings import Settings
from worker.executors.chunk import ChunkRunner, trace_parents
from worker.kinds import executed_kinds, make_executor, slots_for
from worker.periodic_jobs import PeriodicJobs
from worker.process import WorkerProcess
from worker.talk import Talks
from worker.tasks.execute_chunk import set_runner
from worker.transport import end_waiting

logger = logging.getLogger(__name__)
_processes: list[WorkerProcess] = []
"""This process, once it has started; the module's functions end it."""


def exit_now() -> None:
    """Ends this process at once, in whatever state it is."""
    if not _processes:
        os._exit(0)
    _processes[-1].exit_now()


def exit_with(error: ProctorError) -> None:
    """Ends this process because Redis or the broker refuses it."""
    if not _processes:
        logger.error("worker cannot start", extra={"reason": error.message})
        os._exit(error.exit_code)
    _processes[-1].exit_with(error)


class Lifecycle(bootsteps.StartStopStep):
    """Our process inside Celery's.

    Args:
        worker: Celery's.
        redis: the Redis in use; None finds it by the environment.
        in_flight: items this process may have at work at once; None takes the pool's threads.
        burst: whether to end when nothing is left to do.
        options: Celery's own.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(
        self,
        worker: Any,
        *,
        redis: Connection | None = None,
        in_flight: int | None = None,
        burst: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(worker, **options)
        self._connection = redis
        self._burst = burst
        self._settings = Settings.from_environment()
        queues = worker.app.amqp.queues
        kinds = {kind.name: kind for kind in all_kinds()}
        queues.deselect(
            [
                name
                for name, kind in kinds.items()
                if kind not in executed_kinds() and name in queues.consume_from
            ]
        )
        self._in_flight = in_flight or worker.concurrency
        self._slots = slots_for(
            [kinds[name] for name in queues.consume_from], self._in_flight, self._settings.turn_slots
        )
        self._process: WorkerProcess | None = None
        self._jobs: PeriodicJobs | None = None

    def start(self, worker: Any) -> None:
        """Connects to the ledger, takes over the signals and begins to tick."""
        try:
            connection = self._connection or resolve_target(self._settings)
        except ProctorError as error:
            # No traceback: a wrong URL is no programming error.
            logger.error("worker cannot start", extra={"reason": error.message})  # noqa: TRY400 - see above
            raise SystemExit(error.exit_code) from error
        client = connection.target.client()
        settings = self._settings
        process = self._process = WorkerProcess(
            worker.hostname,
            self._slots,
            ledger=Ledger(
                client,
                patience_s=settings.patience_s,
                times=Times.of(settings.lease_s),
                refused_s=inf,  # the answers in hand cost money, and their leases hold
            ),
            publisher=Publisher(worker.app),
            settings=settings,
            in_flight=self._in_flight,
        )
        store = RunStore(client)
        _processes.append(process)
        executors = {kind: make_executor(kind, process, store) for kind in self._slots}
        talks = Talks(worker.app.wake_queues, self._slots.get(TURNS, 0), lambda: process.leases.is_draining)
        set_runner(ChunkRunner(process, executors, parent_of=trace_parents(store), talks=talks))
        process.on_drain = lambda: _stop_consuming(worker)
        process.start_drain_watch()
        tracing.start(instance=process.name, on_problem=_warn_of_traces)
        _take_over_signals(process)
        signals.worker_ready.connect(_say_ready, weak=False)
        if connection.risk:
            logger.warning("redis at risk", extra={"reason": connection.risk})
        self._jobs = PeriodicJobs(
            process, is_burst=self._burst, follow=_follower(worker, process, connection)
        )
        self._jobs.start()

    def close(self, _worker: Any) -> None:
        """Begins the drain, if it was not a signal of ours that made Celery stop."""
        if self._process is not None:
            self._process.drain()

    def stop(self, _worker: Any) -> None:
        """Waits for the chunks in work; the process ends itself when the grace period is over."""
        if self._process is None or self._jobs is None:
            return
        self._process.leases.wait_until_idle(None)
        self._jobs.stop()
        self._process.close()

    def terminate(self, worker: Any) -> None:
        """Ends in the same way, since a threads pool cannot be cut short."""
        self.stop(worker)


def _follower(worker: Any, process: WorkerProcess, connection: Connection) -> Callable[[], None] | None:
    """Returns what leaves masters that sentinels have replaced; None without sentinels."""

    def follow() -> None:
        """Asks the sentinels."""
        connection.target.follow_master(process.ledger.caller.client)
        if process.publisher.follow_master():
            end_waiting(worker.consumer.connection)
            process.repeat_returns()

    return follow if connection.target.is_watched or connection.broker.is_watched else None


def _stop_consuming(worker: Any) -> None:
    state.should_stop = 0  # type: ignore[assignment] # the stubs have only its first value
    worker.hub.call_soon(bool)  # the loop may wait in poll; it checks the flag when it wakes


def _take_over_signals(process: WorkerProcess) -> None:
    def on_signal(number: int, _frame: object) -> None:
        if number == signal.SIGQUIT or (number == signal.SIGINT and process.leases.is_draining):
            process.request_exit()
        else:
            process.drain()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, on_signal)


def _warn_of_traces(problem: str) -> None:
    logger.warning("traces off", extra={"reason": problem})


def _say_ready(sender: Any, **_options: Any) -> None:
    process = _processes[-1]
    logger.info(
        "worker started",
        extra={
            "pid": os.getpid(),
            "kinds": ",".join(map(str, process.slots)),
            "in_flight": process.in_flight.size,
            "version": __version__,
        },
    )
    # Exactly this line, without a prefix: the parent process waits for it.
    sys.stderr.write(f"ready {sender.hostname}\n")
    sys.stderr.flush()
