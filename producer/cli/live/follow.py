"""Follows a run until it ends: polls and shows it, waits for Redis, applies the time limit."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Final, TypeVar

from producer.cli.error_exit import describe
from producer.cli.live.progress import Meter, Progress, View
from producer.cli.live.upstream_monitor import UpstreamMonitor
from producer.cli.local.local_workers import LocalWorkers
from producer.cli.session import Session
from producer.run_settings import is_freeform
from producer.text import duration
from shared.clock import now_ms
from shared.errors import RedisUnreachableError
from shared.names import RunState
from shared.runs import RunInfo

LOOK_EVERY_S: Final = 0.2
"""Longest polling interval."""
FIRST_LOOK_S: Final = 0.02
"""Shortest one: small runs end within a second."""
LOOK_SHARE: Final = 0.1
"""The polling interval, as a share of the time that the run was followed: so much later is its end seen."""

T = TypeVar("T")


def look_after(followed_s: float) -> float:
    """Returns the pause before the next look at a run that was followed for some time.

    >>> look_after(0.0), look_after(1.0), look_after(60.0)
    (0.02, 0.1, 0.2)
    """
    return min(LOOK_EVERY_S, max(FIRST_LOOK_S, LOOK_SHARE * followed_s))


class Follower:
    """Follows one run.

    Args:
        session: access to Redis; reconnected after Redis was unavailable.
        run: the run's id.
        view: where to show it.
        local_workers: workers to start if none is alive; None: start none.
        timeout_s: after this the run is ended as incomplete.
        meanwhile: called between two polls with the seconds it may take; None waits.
    """

    def __init__(
        self,
        session: Session,
        run: str,
        view: View,
        *,
        local_workers: LocalWorkers | None = None,
        timeout_s: float | None = None,
        meanwhile: Callable[[float], None] | None = None,
    ) -> None:
        self._session = session
        self._run = run
        self._view = view
        self._local_workers = local_workers
        self._deadline_s = None if timeout_s is None else monotonic() + timeout_s
        self._meter = Meter()
        self._monitor = UpstreamMonitor(session)
        self._pause = threading.Event()
        self._meanwhile = meanwhile or self._wait
        self._last = Progress(run, RunState.RUNNING, 0, 0, {}, 0.0, 0, 0)
        self._away_since_s: float | None = None

    def follow(self) -> RunInfo:
        """Follows the run until its state is final and returns it.

        Raises:
            UnknownRunError: there is no such run (any more).
            RedisUnreachableError: Redis was unavailable for longer than `PROCTOR_PATIENCE_S`.
            InfrastructureError: the workers started here ended.
        """
        began_s = monotonic()
        while True:
            info = self._try(self._look)
            if info is not None:
                if info.is_final:
                    return info
                self._check_workers(info)
                self._end_at_deadline()
            pause_s = look_after(monotonic() - began_s)
            if info is None or self._try(partial(self._gather, pause_s)) is None:
                self._wait(pause_s)

    def _try(self, read: Callable[[], T]) -> T | None:
        """Reads from Redis; None if it is briefly unavailable."""
        try:
            return read()
        except Exception as error:
            failure = describe(error)
            if failure is None or failure.code != RedisUnreachableError.code:
                raise
            self._wait_for_redis(error)
            return None

    def _gather(self, within_s: float) -> bool:
        self._meanwhile(within_s)
        return True

    def _wait(self, within_s: float) -> None:
        self._pause.wait(within_s)

    def _look(self) -> RunInfo:
        """Polls Redis once and shows the snapshot."""
        store = self._session.impatient_store
        info = store.info(self._run)
        workers = self._session.count_workers(info.kind, info.layout)
        queued = self._session.queue_lengths()[info.kind]
        self._monitor.look(info)
        self._away_since_s = None
        rate_s = self._meter.rate(monotonic(), info.done)
        self._last = Progress(
            run=info.run,
            state=info.state,
            done=info.done,
            total=info.total,
            tally=info.tally,
            elapsed_s=info.elapsed_ms(info.finished_ms or now_ms()) / 1000,
            workers=workers,
            queued=queued,
            rate_s=rate_s,
            source=info.source,
            kind=info.kind,
            why=self._wait_reason(info, workers, queued, is_stalled=rate_s == 0),
            calls=self._monitor.calls,
            is_freeform=is_freeform(info),
        )
        self._view.show(self._last)
        return info

    def _wait_reason(self, info: RunInfo, workers: int, queued: int | None, *, is_stalled: bool) -> str:
        """Returns why the run makes no progress; empty if it does or has ended."""
        if info.is_final:
            return ""
        if is_stalled and (unwritable := self._session.unwritable()):
            return unwritable
        if queued is None:
            return "the broker does not answer; waiting for it"
        if (
            not workers
            and info.state == RunState.RUNNING
            and self._local_workers is not None
            and self._local_workers.is_working
        ):
            return "starting workers"
        return self._session.impatient_store.wait_reason_of(info, self._monitor.upstream_status)

    def _wait_for_redis(self, error: Exception) -> None:
        """Shows that Redis is unavailable and restarts an embedded one; raises after the time limit."""
        now_s = monotonic()
        self._away_since_s = self._away_since_s or now_s
        patience_s = self._session.settings.patience_s
        if now_s - self._away_since_s > patience_s:
            raise RedisUnreachableError(
                f"Redis did not answer for {duration(patience_s)}: {error}",
                hint=f"what it holds of the run is kept; `proctor watch {self._run}` when it is back",
            ) from error
        why = f"Redis does not answer; waiting for it, up to {duration(patience_s)}"
        self._view.show(replace(self._last, why=why, rate_s=None))
        self._session.revive()

    def _check_workers(self, info: RunInfo) -> None:
        """Starts workers if the run needs some and none is alive; raises if started ones have ended."""
        if self._local_workers is None:
            return
        if info.state == RunState.RUNNING:
            self._local_workers.ensure_running(self._last.workers)
        else:
            self._local_workers.check()

    def _end_at_deadline(self) -> None:
        """Ends the run as incomplete after its time limit."""
        if self._deadline_s is not None and monotonic() >= self._deadline_s:
            self._deadline_s = None
            self._session.ledger.control(self._run, RunState.INCOMPLETE)
