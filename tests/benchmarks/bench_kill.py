"""Kills one of two workers at half of 1,000 test cases: what is lost, asked again, and how long it takes."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.benchmarks.results import Figure, sized
from tests.support.kill_cases import LATENCY_S, kill_amid_cases
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT

CASES: Final = 1000
TOGETHER: Final = 20
IN_FLIGHT: Final = "cases in flight"
IDEAL: Final = "what the cases left take by themselves"


def measured(scale: float) -> Iterator[Figure]:
    """Measures one kill."""
    cases = sized(CASES, scale, least=4 * TOGETHER)
    with RedisServer() as server, TemporaryDirectory(prefix="bench-kill-") as name:
        folder = Path(name)
        env = {**os.environ, "PROCTOR_REDIS_URL": server.url, "PROCTOR_DATA_DIR": name}
        processes = Processes(folder, {**env, "PYTHONPATH": str(ROOT)})
        try:
            with closing(server.client()) as client:
                killed = kill_amid_cases(
                    client, server.url, folder, processes, cases=cases, together=TOGETHER
                )
        finally:
            processes.close()
    lost, again = sum(not row.code for row in killed.rows), killed.asked.total() - len(killed.asked)
    assert killed.tally["passed"] == cases, killed.tally
    parameter = f"kill -9 of one of two workers, at half of {cases:,} cases"

    def figure(measure: str, value: float, unit: str, bound: str) -> Figure:
        return Figure(
            workload="kill", parameter=parameter, measure=measure, value=value, unit=unit, bound=bound
        )

    yield figure("lost", lost, "cases", "none may be").beside(IN_FLIGHT, TOGETHER)
    yield figure("repeated", again, "calls", "calls in flight at the kill").beside(IN_FLIGHT, TOGETHER)
    ideal_s = killed.left * LATENCY_S / TOGETHER
    yield figure("time", killed.seconds, "s", "the lease of the killed worker").beside(IDEAL, ideal_s)
