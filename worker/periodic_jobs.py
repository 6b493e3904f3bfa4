"""Runs the periodic jobs of every worker process: repairing the ledger, and renewing leases.

    steward    each second: one `tick` (the script does nothing if another worker's ran less than 0.9 s ago),
               publishing wake-ups of waiting, overdue or due chunks; touching the heartbeat file. An idle
               process searches for lost wake-ups with it; a draining one registers with capacity 0.
    renewer    each second: one `renew` for every lease of the process; brings back the states of the runs,
               so that pause and cancel reach the chunks in work within about a second
    retention  each minute, with a retention of texts: deletes those of runs that ended before it
    sentinel   each second, behind sentinels: queries the master, see `RedisTarget.follow_master`

They are threads of their own because publishing may wait for a broker that is away, and a lease must not.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from time import monotonic
from typing import Final

from shared import keys, plugins
from shared.clock import now_ms
from shared.errors import RedisRefusingError, RedisUnreachableError
from shared.kinds import Kind
from shared.runs import RunStore
from shared.runs.forgetting import forget_old_texts
from worker.process import WorkerProcess

IDLE_TICKS: Final = 2
"""A burst process ends after finding the ledger empty so many times in a row."""

UNACKED_LEASES: Final = 4
"""Unacknowledged deliveries are removed after this many times a lease; checked at the same interval."""
STOP_S: Final = 1.0
"""How long the end of the process waits for each of the two jobs."""
ANNOUNCE_S: Final = 20.0
"""Interval of announcements of plug-ins."""
ANNOUNCE_AFTER_S: Final = 2.0
"""Time from the start to the first of them."""
RETENTION_S: Final = 60.0
"""Interval of searches for runs whose texts are to be deleted; one worker of the fleet makes them."""
FOLLOW_S: Final = 1.0
"""Interval of queries to the sentinels."""

logger = logging.getLogger(__name__)


class PeriodicThread(threading.Thread):
    """Calls a job periodically until stopped; an exception of the job ends only that call.

    Args:
        name: of the thread, in logs.
        every_s: pause between two calls.
        job: what to do.
        on_unreachable: called when Redis was unavailable for longer than the ledger's time limit.
    """

    def __init__(
        self,
        name: str,
        every_s: float,
        job: Callable[[], object],
        on_unreachable: Callable[[RedisUnreachableError], object],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._every_s = every_s
        self._job = job
        self._on_unreachable = on_unreachable
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Works until `stop`."""
        while not self._stop_asked.is_set():
            try:
                self._job()
            except RedisRefusingError:
                pass  # logged once by the call; the next round tries again
            except RedisUnreachableError as error:
                self._on_unreachable(error)
            except Exception:
                logger.exception("round failed", extra={"job": self.name})
            self._stop_asked.wait(self._every_s)

    def stop(self) -> None:
        """Ends the thread after its current call."""
        self._stop_asked.set()


class PeriodicJobs:
    """The periodic jobs of one process.

    Args:
        process: whose leases, heartbeat and kinds.
        is_burst: end the process once no run of its kinds has anything left to do.
        follow: queries the sentinels for the master; None without sentinels.
    """

    def __init__(
        self,
        process: WorkerProcess,
        *,
        is_burst: bool = False,
        follow: Callable[[], object] | None = None,
    ) -> None:
        self._process = process
        self._is_burst = is_burst
        self._idle_ticks = 0
        self._has_arrived = False
        self._sweep_at_s = 0.0
        self._announce_at_s = monotonic() + ANNOUNCE_AFTER_S
        self._capacities = _kinds_by_capacity(process)
        period_s = process.ledger.times.period_ms / 1000
        self._threads = [
            PeriodicThread("steward", period_s, self._tick, process.exit_with),
            PeriodicThread("renewer", period_s, self._renew, process.exit_with),
        ]
        if process.settings.texts_ttl_s is not None:
            self._threads.append(
                PeriodicThread("retention", RETENTION_S, self._forget_old_texts, process.exit_with)
            )
        if follow is not None:
            self._threads.append(PeriodicThread("sentinel", FOLLOW_S, follow, process.exit_with))

    def start(self) -> None:
        """Begins; the process counts as a live worker after the first tick."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends the jobs; a tick that is under way would register the process again after it has left."""
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join(STOP_S)

    def _tick(self) -> None:
        process = self._process
        process.heartbeat.beat()  # also while Redis takes no writes: that is no fault of this process
        is_draining = process.leases.is_draining
        if not self._has_arrived:
            process.replace_dead_workers()
            self._has_arrived = True
        idle = [] if is_draining else process.idle_kinds()
        for capacity, kinds in self._capacities.items():
            names = [kind.name for kind in kinds]
            looking = [kind.name for kind in kinds if kind in idle]
            now = 0 if is_draining else capacity
            wakes = process.ledger.tick(process.name, names, now, idle=looking, is_patient=False)
            process.publish(wakes)
        process.publisher.flush()
        self._sweep_broker()
        self._announce_plugins()
        if self._is_burst and not is_draining:
            self._end_when_idle()

    def _sweep_broker(self) -> None:
        """Removes, from time to time, unacknowledged deliveries of killed workers."""
        process, now_s = self._process, monotonic()
        if now_s < self._sweep_at_s:
            return
        after_s = UNACKED_LEASES * process.ledger.times.lease_ms / 1000
        self._sweep_at_s = now_s + after_s
        process.publisher.forget_deliveries(after_s)

    def _announce_plugins(self) -> None:
        """Says from time to time what this process has; not while it starts: finding out takes long."""
        process, now_s = self._process, monotonic()
        if now_s < self._announce_at_s:
            return
        self._announce_at_s = now_s + ANNOUNCE_S
        found = " ".join([*plugins.installed(), *([plugins.CODE] if process.settings.allow_code else ())])
        caller, key = process.ledger.caller, keys.plugins_key(process.name)
        caller.patiently(lambda: caller.client.set(key, found, ex=3 * round(ANNOUNCE_S)), is_patient=False)

    def _end_when_idle(self) -> None:
        is_idle = not self._process.ledger.has_work([kind.name for kind in self._process.slots])
        self._idle_ticks = self._idle_ticks + 1 if is_idle else 0
        if self._idle_ticks >= IDLE_TICKS:
            logger.info("nothing left to do")
            self._process.drain()

    def _forget_old_texts(self) -> None:
        kept_s = self._process.settings.texts_ttl_s
        if kept_s is None:
            return
        caller = self._process.ledger.caller
        forgotten = forget_old_texts(caller.client, RunStore(caller.client), kept_s=kept_s, now_ms=now_ms())
        if forgotten:
            logger.info("texts forgotten", extra={"runs": forgotten})

    def _renew(self) -> None:
        held, asked_s = self._process.leases.held(), monotonic()
        if held:
            self._process.leases.update(held, self._process.ledger.renew(held), asked_s=asked_s)


def _kinds_by_capacity(process: WorkerProcess) -> dict[int, list[Kind]]:
    """Groups kinds that the process works on with the same number of slots: one registration each."""
    groups: dict[int, list[Kind]] = defaultdict(list)
    for kind, slots in process.slots.items():
        groups[slots].append(kind)
    return dict(groups)
