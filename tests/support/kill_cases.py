"""Kills one of two workers amid a run of test cases, and tells what became of it."""

from collections import Counter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.codecs.item_rows import ItemRow
from tests.support.case_runs import bench
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer, Say
from tests.support.processes import Processes
from tests.support.query_desk import QueryDesk
from tests.support.workers import start_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

LATENCY_S = 0.2
"""How long the model thinks."""


class Killed(NamedTuple):
    """What became of the run."""

    rows: list[ItemRow]
    """All results, in input order."""
    asked: Counter[str]
    """How often the model was asked each question."""
    tally: "Mapping[str, int]"
    """The counters of the run."""
    left: int
    """Cases without a result at the kill."""
    seconds: float
    """From the kill to the end of the run."""


def kill_amid_cases(
    client: "redis.Redis", url: str, folder: Path, processes: Processes, *, cases: int, together: int
) -> Killed:
    """Runs cases on two workers and kills one with SIGKILL when half of them have a result.

    Args:
        client: of the server that the workers use.
        url: the same server's URL, also in the environment of `processes`.
        folder: for the bench.
        processes: starts the workers.
        cases: how many.
        together: how many may be under way at a time.
    """
    desk = QueryDesk(client, url, folder)
    workers = [start_worker(processes, "-Q", "cases") for _ in range(2)]
    written = [{"input": f"question {number}", "regex_pattern": "ok"} for number in range(cases)]
    with ModelServer(lambda _prompt, _nth: Say("ok", after_s=LATENCY_S)) as server:
        config = {"judge_model": None, "concurrency": together}
        path = bench(folder, server, written, models=["alpha"], config=config)
        options = SubmitOptions(await_disk=False)
        run = submit(desk.ledger, desk.publisher, Source(path), options=options).run

        def is_half_done() -> None:
            """Asserts that half of the cases have a result."""
            assert desk.info(run).done >= cases // 2

        eventually(is_half_done, 30)
        workers[0].kill()
        killed_s, left = monotonic(), cases - desk.info(run).done
        rows = desk.ended(run, within_s=90)
        seconds = monotonic() - killed_s
        asked = Counter(request.prompt for request in server.requests)
    return Killed(rows, asked, desk.info(run).tally, left, seconds)
