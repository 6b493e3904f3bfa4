"""Strikes with one fault while runs are under way, measures what it cost, and holds the invariants."""

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import pairwise
from time import monotonic
from typing import Any, Final, Self

from shared.keys import run_key
from tests.chaos.checks import Measurement, problems_left, problems_of, rows_of
from tests.chaos.cluster import Cluster
from tests.chaos.faults import Fault
from tests.chaos.needs import Setup
from tests.chaos.strikes import nothing
from tests.chaos.workloads import THINKS_S, WAITS_S, Workload
from tests.support.eventually import pause, stays

LOOK_S: Final = 0.05
"""Between two looks at the progress of runs."""


class Progress:
    """Watches how many results each run has: `with Progress(cluster) as progress: …`.

    Args:
        cluster: whose runs.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._steps: dict[str, list[tuple[float, int]]] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(10)

    def _watch(self) -> None:
        while not self._is_over.wait(LOOK_S):
            with suppress(Exception), closing(self._cluster.connect(socket_timeout=0.5)) as client:
                while not self._is_over.wait(LOOK_S):  # until the server is away; it is looked at again
                    self._look(client)

    def _look(self, client: Any) -> None:
        """Notes how many results each run has now."""
        for name, run in list(self._cluster.runs.items()):
            done = int(client.hget(run_key(run), "done") or 0)
            steps = self._steps.setdefault(name, [])
            if not steps or steps[-1][1] != done:
                steps.append((monotonic(), done))

    def gained(self, name: str, since: float, until: float) -> int:
        """Counts the results of a run between two moments."""
        found = [done for at, done in self._steps.get(name, []) if at <= until]
        before = [done for at, done in self._steps.get(name, []) if at <= since]
        return max(found, default=0) - max(before, default=0)

    def of(self, name: str, struck_at: float, healed_at: float) -> tuple[float, float]:
        """Returns a run's longest standstill since the strike, and how much of it came after the healing."""
        steps = [struck_at, *(at for at, _ in self._steps.get(name, []) if at > struck_at)]
        standstill_s, ended_at = max(
            ((later - earlier, later) for earlier, later in pairwise(steps)), default=(0.0, 0.0)
        )
        return standstill_s, min(standstill_s, max(0.0, ended_at - healed_at))


def run_trial(fault: Fault, cluster: Cluster, workloads: Sequence[Workload]) -> list[Measurement]:
    """Brings runs under way, strikes, heals, and waits for their ends.

    Raises:
        AssertionError: an invariant does not hold; its message has the lines of all runs.
    """
    awaits_middle = fault.strike is not nothing and fault.needs.setup is not Setup.LOADING
    with Progress(cluster) as progress:
        cluster.upstreams.answer_s = WAITS_S if awaits_middle else THINKS_S
        cluster.begin(workloads)
        if awaits_middle:
            cluster.await_middle()
            cluster.upstreams.answer_s = THINKS_S
        begun, struck_at = strike(fault, cluster)
        fault.heal(cluster)
        healed_at = monotonic()
        if not fault.loses_data:
            for workload in workloads:
                cluster.finished(workload)
        pause(2 * LOOK_S)  # for the last step
    measured = []
    problems: list[str] = []
    for workload in workloads:
        standstill_s, recovery_s = progress.of(workload.name, struck_at, healed_at)
        rows = [] if fault.loses_data else rows_of(cluster, workload)
        recent = progress.gained(workload.name, struck_at - fault.takes_back_s, struck_at)
        times = workload.calls()
        line = Measurement(
            fault.name,
            workload.name,
            workload.items,
            workload.items - len({row["index"] for row in rows if row["outcome"] != "skipped"}),
            len(rows) - len({row["index"] for row in rows}),
            times.total() - len(times),
            begun[workload.name] + (recent if workload.asked else 0),
            round(standstill_s, 1),
            round(recovery_s, 1),
        )
        measured.append(line)
        problems += problems_of(fault, cluster, workload, rows, line)
    problems += problems_left(fault, cluster)
    assert not problems, "\n".join([*problems, *map(str, measured)])
    return measured


def strike(fault: Fault, cluster: Cluster) -> tuple[Counter[str], float]:
    """Lets a fault strike, as often and as long as it does.

    Returns:
        The calls under way at the strikes, and the monotonic time of the first one.
    """
    begun, struck_at = Counter[str](), monotonic()
    until = struck_at + fault.lasts_s + fault.lasts_leases * cluster.times.lease_ms / 1000
    while True:
        cluster.count_begun()
        fault.strike(cluster)
        begun += cluster.begun
        if not fault.every_s:
            break
        stays(lambda: None, fault.every_s)
        if monotonic() >= until:
            break
    stays(lambda: None, until - monotonic())
    return begun, struck_at
