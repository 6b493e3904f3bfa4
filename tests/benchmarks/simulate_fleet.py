"""Simulates a fleet, event by event: worker processes, their places, the upstream, one Redis.

An item takes CPU of its worker process, time of Redis, the upstream's latency, CPU again, Redis again; then
its place is free for the next one:

    place ─ CPU ─ Redis ─ upstream ─ CPU ─ collect ─ Redis ─┐
      ▲─────────────────────────────────────────────────────┘

A process runs one thing at a time, and so does Redis; who comes later waits. What an item costs is measured
(`bench_costs`), and so are the small cases that the simulation has to reproduce; everything larger is
computed. Pure: the same arguments give the same result.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

COLLECT_S: Final = 0.004
"""Answers within this time of each other are committed together: `worker.executors.claim_loop`."""
BEFORE: Final = 0.5
"""Share of an item's CPU that comes before its call; the rest comes after it."""
WARM_UP: Final = 0.5
"""Share of the simulated time that is left out of the result: no place is free before its first item ends."""


@dataclass(frozen=True)
class Work:
    """What one item takes."""

    worker_us: float
    """CPU of its worker process."""
    redis_us: float
    """CPU of Redis."""
    latency_s: float = 0.0
    """Of the upstream; 0: it asks nobody."""


@dataclass(frozen=True)
class Fleet:
    """Who does it."""

    processes: int
    """Worker processes."""
    in_flight: int
    """Places of each."""
    cores: int = 0
    """Cores that workers and Redis share, as on one machine; 0: each has a core of its own."""
    idle_redis: float = 0.0
    """Share of Redis' core that each process takes even if it has nothing to do."""


class Outcome(NamedTuple):
    """What came of it."""

    per_second: float
    """Items."""
    redis_busy: float
    """Share of the time."""
    worker_busy: float
    """The same of a worker process, on average."""
    turnaround_s: float
    """From the moment an item has its place to the moment it is free, on average."""


@dataclass
class _Clock:
    """What happens next."""

    now: float = 0.0
    _queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _serial: "count[int]" = field(default_factory=count)

    def after(self, delay_s: float, event: Callable[[], None]) -> None:
        """Has something happen; what is due at the same time happens in this order."""
        heapq.heappush(self._queue, (self.now + delay_s, next(self._serial), event))

    def run(self, until_s: float) -> None:
        """Has everything happen that is due until then."""
        while self._queue and self._queue[0][0] <= until_s:
            self.now, _, event = heapq.heappop(self._queue)
            event()
        self.now = until_s


class _Cores:
    """Cores that whoever needs one takes in turn."""

    def __init__(self, number: int) -> None:
        self._free, self._waiting = number, deque[Callable[[], None]]()

    def take(self, then: Callable[[], None]) -> None:
        """Takes a core, at once or when it is free."""
        if self._free:
            self._free -= 1
            then()
        else:
            self._waiting.append(then)

    def give(self) -> None:
        """Gives a core to the next in line."""
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1


class _Station:
    """One that does one thing at a time: a worker process, or Redis.

    Args:
        clock: of the simulation.
        cores: to take one from; None: it has its own.
        speed: share of a core that is left for what is asked of it.
    """

    def __init__(self, clock: _Clock, cores: _Cores | None, speed: float = 1.0) -> None:
        self._clock, self._cores, self._speed = clock, cores, speed
        self._waiting = deque[tuple[float, Callable[[], None]]]()
        self._is_busy = False
        self.busy_s = 0.0

    def use(self, seconds: float, then: Callable[[], None]) -> None:
        """Has it work for so long, when its turn comes."""
        self._waiting.append((seconds / self._speed, then))
        if not self._is_busy:
            self._is_busy = True
            self._next()

    def _next(self) -> None:
        if self._cores is None:
            self._begin()
        else:
            self._cores.take(self._begin)

    def _begin(self) -> None:
        seconds, then = self._waiting.popleft()
        self._clock.after(seconds, lambda: self._end(seconds, then))

    def _end(self, seconds: float, then: Callable[[], None]) -> None:
        self.busy_s += seconds
        if self._cores is not None:
            self._cores.give()
        then()
        if self._waiting:
            self._next()
        else:
            self._is_busy = False


class _Simulation:
    """One run that never lacks items."""

    def __init__(self, work: Work, fleet: Fleet) -> None:
        self.clock = _Clock()
        cores = _Cores(fleet.cores) if fleet.cores else None
        left = max(0.01, 1.0 - fleet.idle_redis * fleet.processes)
        self.redis = _Station(self.clock, cores, left)
        self.workers = [_Station(self.clock, cores) for _ in range(fleet.processes)]
        self.work, self.ended, self.waited_s = work, 0, 0.0
        for number in range(fleet.in_flight):
            for worker in self.workers:
                # Places fill one after the other, as a process claims and begins its items.
                start_s = number / fleet.in_flight * max(work.latency_s, 1e-3)
                self.clock.after(start_s, lambda worker=worker: self._item(worker))  # type: ignore[misc] # the loop's own worker

    def _item(self, worker: _Station) -> None:
        """Takes one item through its stations, and begins the next one in its place."""
        work, begun_s = self.work, self.clock.now
        cpu_s, redis_s = work.worker_us / 1e6, work.redis_us / 1e6

        def call() -> None:
            self.clock.after(work.latency_s, answered)

        def answered() -> None:
            worker.use(cpu_s * (1 - BEFORE), collected)

        def collected() -> None:
            self.clock.after(COLLECT_S if work.latency_s else 0.0, committed)

        def committed() -> None:
            self.redis.use(redis_s * (1 - BEFORE), freed)

        def freed() -> None:
            self.ended += 1
            self.waited_s += self.clock.now - begun_s
            self._item(worker)

        worker.use(cpu_s * BEFORE, lambda: self.redis.use(redis_s * BEFORE, call))


def simulate(work: Work, fleet: Fleet, *, for_s: float = 0.0) -> Outcome:
    """Simulates a fleet that has enough to do.

    Args:
        work: what an item takes.
        fleet: who does it.
        for_s: how long, in simulated seconds; by default twenty items a place.

    >>> idle = simulate(Work(worker_us=0, redis_us=0, latency_s=0.096), Fleet(processes=2, in_flight=50))
    >>> round(idle.per_second, -1)
    1000.0
    """
    one_s = work.latency_s + COLLECT_S + (work.worker_us * fleet.in_flight + work.redis_us) / 1e6
    for_s = for_s or 20 * one_s
    simulation = _Simulation(work, fleet)
    warm_s = WARM_UP * for_s
    simulation.clock.run(warm_s)
    stations = [simulation.redis, *simulation.workers]
    before = [station.busy_s for station in stations]
    ended, waited_s = simulation.ended, simulation.waited_s
    simulation.clock.run(for_s)
    redis_busy, *busy = (now.busy_s - then for now, then in zip(stations, before, strict=True))
    measured_s, items = for_s - warm_s, simulation.ended - ended
    return Outcome(
        items / measured_s,
        redis_busy / measured_s,
        sum(busy) / len(busy) / measured_s,
        (simulation.waited_s - waited_s) / max(1, items),
    )
