"""Measures commands that have next to nothing to do: `--help`, and one case for a model of 50 ms.

Each figure is the middle one of several starts. One case is run with a new embedded server, with a server
that runs already, and beside workers that are up; CPU is that of all processes that the command started.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from tests.benchmarks import bare_loops
from tests.benchmarks.bench_cases import LATENCY_S, asked, models_at
from tests.benchmarks.bench_queries import api, workers
from tests.benchmarks.process_costs import Costs, measure, proctor
from tests.benchmarks.results import Figure, sized
from tests.support.redis_server import RedisServer

STARTS: Final = 7
HELP: Final = "proctor --help"
IMPORTS: Final = "imports of Python modules"
FRESH: Final = "one case, a new server"
RUNNING: Final = "one case, a server that runs"
UP: Final = "one case, beside `proctor up`"
LOOP: Final = "bare aiohttp loop"


def measured(scale: float) -> Iterator[Figure]:
    """Measures a bare loop over one case, then each start."""
    starts = sized(STARTS, scale, least=1)
    with TemporaryDirectory(prefix="bench-") as name, api(0, LATENCY_S) as url, RedisServer() as server:
        folder = Path(name)
        case = asked(folder, 1, **models_at(url))
        ask = [*bare_loops.COMMAND, "aiohttp", f"{url}/v1/chat/completions", "1", "1"]
        looped = middle(lambda: measure(ask, bare_loops.ENV, folder), starts)
        yield figure(LOOP, "time", looped.wall_s, "imports of aiohttp, and 50 ms")
        yield figure(LOOP, "CPU", looped.cpu_s, "imports of aiohttp")

        def one_case(env: Mapping[str, str]) -> Costs:
            with TemporaryDirectory(dir=folder) as data:
                return proctor(["run", "-q", case], Path(data), env=env)

        def beside(parameter: str, bound: str, start: Callable[[], Costs]) -> Iterator[Figure]:
            costs = middle(start, starts)
            yield figure(parameter, "time", costs.wall_s, bound).beside(LOOP, looped.wall_s)
            yield figure(parameter, "CPU", costs.cpu_s, bound).beside(LOOP, looped.cpu_s)

        running = {"PROCTOR_REDIS_URL": server.url}
        yield from beside(HELP, IMPORTS, lambda: proctor(["--help"], folder / "data"))
        yield from beside(FRESH, f"{IMPORTS}, start of server and worker", lambda: one_case({}))
        yield from beside(RUNNING, f"{IMPORTS}, start of a worker", lambda: one_case(running))
        with workers(server.url, 1, 10, kinds="turns,cases,queries"):
            yield from beside(UP, IMPORTS, lambda: one_case(running))


def figure(parameter: str, measure: str, value: float, bound: str) -> Figure:
    """One figure of this workload."""
    return Figure(
        workload="start-up", parameter=parameter, measure=measure, value=value, unit="s", bound=bound
    )


def middle(start: Callable[[], Costs], starts: int) -> Costs:
    """Starts something once for nothing, then so often; the middle times."""
    start()
    costs = [start() for _ in range(starts)]
    return Costs(0, median(each.cpu_s for each in costs), 0.0, median(each.wall_s for each in costs))
