"""Simulates endpoints that refuse calls, and prints how much of what they grant is used, and what is refused.

The limiter is the model that the scripts are held against, on a clock of its own; callers wait, park and come
back as items of queries do: no sooner than a refusal asks, and up to 1.2 s later. Neither the network nor the
processor takes time. `python -m tests.benchmarks.simulate_refusals` prints the table of docs/decisions.md.
"""

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple

from shared.upstream.failure_reasons import Health
from shared.upstream.limits import Limits, Scope
from tests.support.upstream_model import UpstreamModel
from worker.upstream.constants import REFUSED_WAIT_MS, WAIT_MS
from worker.upstream.limiter import scope_limits_of

START_MS: Final = 1_000_000_000.0
LATE_MS: Final = 3.0
"""Timers of callers are late by up to so much."""
REFUSAL_MS: Final = 2.0
"""How long a refusal takes."""
MIDDLE: Final = (0.1, 0.9)
"""Between these shares of the answers a limit has been learned, and work is left for all slots."""

Admit = Callable[[float, int], float]
"""Of a call at a time (ms), with so many others under way: 0 serves it; else the wait in ms that is asked."""


def bucket(per_s: float, burst: int) -> Admit:
    """A token bucket that asks for a second whenever it is empty."""
    tokens, at = float(burst), -math.inf

    def admit(now: float, _under_way: int) -> float:
        nonlocal tokens, at
        tokens, at = min(burst, tokens + (now - at) * per_s / 1_000), now
        if tokens < 1:
            return 1_000
        tokens -= 1
        return 0

    return admit


def window(calls: int, seconds: int) -> Admit:
    """So many calls in each window; a refusal asks for the whole seconds that are left of it."""
    used = Counter[int]()

    def admit(now: float, _under_way: int) -> float:
        place = int(now // (1_000 * seconds))
        used[place] += 1
        left_ms = (place + 1) * 1_000 * seconds - now
        return 0 if used[place] <= calls else 1_000 * -(-left_ms // 1_000)

    return admit


def sparse(share: float) -> Admit:
    """Refuses a share of calls, whatever is sent."""
    draw = random.Random(7).random
    return lambda _now, _under_way: 1_000 * (draw() < share)


def at_once(most: int) -> Admit:
    """Refuses what is more than so many at a time."""
    return lambda _now, under_way: 1_000 * (under_way >= most)


def outage(begin_s: float, end_s: float) -> Admit:
    """Refuses everything for a while."""
    return lambda now, _under_way: 1_000 * (begin_s <= (now - START_MS) / 1_000 < end_s)


class Outcome(NamedTuple):
    """What came of a simulated run."""

    seconds: float
    """From the first call to the last answer."""
    answered: int
    lost: int
    """Queries that were refused four times, and end in an error."""
    refused_pct: float
    """Of all calls that were sent."""
    per_s: float
    """Answers a second in the middle of the run."""
    later_refused_pct: float
    """Of the calls in the middle of the run."""


@dataclass
class Fleet:
    """Slots that work off queries through one endpoint."""

    admit: Admit
    slots: int
    latency_ms: float
    varies: bool = False
    """Whether latencies are exponential, with that mean."""
    draws: random.Random = field(default_factory=lambda: random.Random(1))

    def run(self, queries: int) -> Outcome:
        """Works until every query is answered or lost."""
        self._model, self._serials = UpstreamModel(START_MS), count()
        self._bounds = (
            scope_limits_of(Scope("api"), Limits()),
            scope_limits_of(Scope("run:r"), Limits(concurrency=self.slots)),
        )
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._ready, self._free = deque((number, 1) for number in range(queries)), self.slots
        self._under_way = self._lost = 0
        self._answers: list[float] = []
        self._refusals: list[float] = []
        self._fill(START_MS)
        while self._events:
            now, _, act, arguments = heappop(self._events)
            self._model.now = self._model.ledger = max(self._model.now, float(int(now)))
            act(now, *arguments)
        return self._outcome()

    def _at(self, when: float, act: Callable[..., None], *arguments: Any) -> None:
        heappush(self._events, (when, next(self._serials), act, arguments))

    def _fill(self, now: float) -> None:
        while self._free and self._ready:
            self._free -= 1
            self._at(now + 0.2 * self.draws.random(), self._ask, *self._ready.popleft(), 0.0, now + WAIT_MS)

    def _leave(self, now: float) -> None:
        self._free += 1
        self._fill(now)

    def _return(self, now: float, number: int, attempt: int) -> None:
        self._ready.appendleft((number, attempt))
        self._fill(now)

    def _ask(self, now: float, number: int, attempt: int, ticket: float, patience: float) -> None:
        permit, late_ms = f"{number} {attempt}", LATE_MS * self.draws.random()
        may_wait = self._model.now < patience
        answer = self._model.begin(permit, ticket, self._bounds, may_wait=may_wait, has_breaker=False)
        match answer:
            case ["go", _, int(call)]:
                self._send(now, number, attempt, call)
            case ["wait", int(wait_ms), turn, _]:
                self._at(now + wait_ms + late_ms, self._ask, number, attempt, turn, patience)
            case ["full", int(wait_ms)]:
                self._at(now + wait_ms + late_ms, self._ask, number, attempt, ticket, patience)
            case ["later", int(wait_ms), _]:
                self._at(now + wait_ms + 1_500 * self.draws.random(), self._return, number, attempt)
                self._leave(now)
            case _:
                raise AssertionError(answer)

    def _send(self, now: float, number: int, attempt: int, call: int) -> None:
        wait_ms = self.admit(now, self._under_way)
        if wait_ms:
            self._at(now + REFUSAL_MS, self._refused, number, attempt, call, wait_ms)
            return
        self._under_way += 1
        mean_ms = self.latency_ms
        took_ms = self.draws.expovariate(1 / mean_ms) if self.varies else mean_ms
        self._at(now + took_ms, self._served, number, attempt, call, took_ms)

    def _served(self, now: float, number: int, attempt: int, call: int, took_ms: float) -> None:
        self._under_way -= 1
        self._answers.append(now)
        self._model.end(f"{number} {attempt}", Health.OK, took_ms, -1, self._bounds, number=call)
        self._leave(now)

    def _refused(self, now: float, number: int, attempt: int, call: int, wait_ms: float) -> None:
        self._refusals.append(now)
        permit = f"{number} {attempt}"
        self._model.end(permit, Health.BUSY, REFUSAL_MS, -1, self._bounds, number=call, pause=wait_ms)
        assert wait_ms > REFUSED_WAIT_MS, "shorter waits would hold the slot"
        if attempt > 3:
            self._lost += 1
        else:
            back_ms = wait_ms + 200 + 1_000 * self.draws.random()
            self._at(now + back_ms, self._return, number, attempt + 1)
        self._leave(now)

    def _outcome(self) -> Outcome:
        answers = self._answers
        first, last = (answers[int(share * (len(answers) - 1))] for share in MIDDLE)
        between = [moment for moment in answers if first < moment <= last]
        refused = [moment for moment in self._refusals if first < moment <= last]
        return Outcome(
            (answers[-1] - START_MS) / 1_000,
            len(answers),
            self._lost,
            100 * len(self._refusals) / (len(answers) + len(self._refusals)),
            1_000 * len(between) / (last - first),
            100 * len(refused) / max(1, len(refused) + len(between)),
        )


class Scenario(NamedTuple):
    """An endpoint, and the work that is sent to it."""

    name: str
    admit: Callable[[], Admit]
    ideal_per_s: float
    """What the endpoint grants, or the slots can use."""
    queries: int
    slots: int = 100
    latency_ms: float = 200
    varies: bool = False

    def simulate(self) -> Outcome:
        """Simulates it."""
        return Fleet(self.admit(), self.slots, self.latency_ms, self.varies).run(self.queries)


SCENARIOS: Final[Sequence[Scenario]] = (
    Scenario("10 % refused", lambda: sparse(0.1), 500, 10_000),
    Scenario("1 % refused", lambda: sparse(0.01), 500, 10_000),
    Scenario("10 % refused, one at a time", lambda: sparse(0.1), 5, 300, slots=1),
    Scenario("10 % refused, 8 at a time", lambda: sparse(0.1), 40, 1_000, slots=8),
    Scenario("30/s, bucket of 30", lambda: bucket(30, 30), 30, 3_000),
    Scenario("30/s, bucket of 1", lambda: bucket(30, 1), 30, 3_000),
    Scenario("30/s, bucket of 1, latency 1 s", lambda: bucket(30, 1), 30, 3_000, latency_ms=1_000),
    Scenario("30 in each second", lambda: window(30, 1), 30, 3_000),
    Scenario("300/s, bucket of 30", lambda: bucket(300, 30), 300, 10_000),
    Scenario("2/s, bucket of 1", lambda: bucket(2, 1), 2, 300),
    Scenario("600 in each minute", lambda: window(600, 60), 10, 3_000),
    Scenario("20 at a time", lambda: at_once(20), 100, 5_000),
    Scenario("20 at a time, latencies vary", lambda: at_once(20), 100, 5_000, varies=True),
    Scenario("everything for 20 s", lambda: outage(2, 22), 500, 20_000),
)


def main() -> None:
    """Prints the table."""
    head = ("endpoint", "ideal/s", "answered/s", "share", "refused", "later", "lost", "seconds")
    print("{:32}{:>8}{:>12}{:>8}{:>9}{:>8}{:>6}{:>9}".format(*head))
    for scenario in SCENARIOS:
        found, ideal = scenario.simulate(), scenario.ideal_per_s
        print(
            f"{scenario.name:32}{ideal:8.0f}{found.per_s:12.1f}{100 * found.per_s / ideal:6.0f} %"
            f"{found.refused_pct:7.1f} %{found.later_refused_pct:6.1f} %{found.lost:6}{found.seconds:9.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
