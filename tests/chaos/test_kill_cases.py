"""`kill -9` of a worker amid test cases: no answer is lost, and none is paid for twice without need."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.item_rows import CACHED
from shared.names import Outcome
from tests.support.case_runs import bench
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer, Say
from tests.support.processes import Processes
from tests.support.query_desk import QueryDesk
from tests.support.workers import start_worker

if TYPE_CHECKING:
    import redis

pytestmark = pytest.mark.chaos

CASES: Final = 1000
TOGETHER: Final = 20
COST_USD: Final = 0.0017
"""Of one answer: 11 and 3 tokens at the prices of `bench`."""


def test_a_worker_killed_at_half_repeats_only_what_was_under_way(
    redis_client: "redis.Redis", redis_url: str, tmp_path: Path, processes: Processes
) -> None:
    """One of two workers killed at half of 1,000 cases: each is judged once, few asked twice, sums hold."""
    desk = QueryDesk(redis_client, redis_url, tmp_path)
    workers = [start_worker(processes, "-Q", "cases") for _ in range(2)]
    cases = [{"input": f"question {number}", "regex_pattern": "ok"} for number in range(CASES)]
    with ModelServer(lambda _prompt, _nth: Say("ok", after_s=0.2)) as server:
        config = {"judge_model": None, "concurrency": TOGETHER}
        path = bench(tmp_path, server, cases, models=["alpha"], config=config)
        options = SubmitOptions(await_disk=False)
        run = submit(desk.ledger, desk.publisher, Source(path), options=options).run

        def is_half_done() -> None:
            assert desk.info(run).done >= CASES // 2

        eventually(is_half_done, 30)
        workers[0].kill()
        assert desk.info(run).done < CASES, "it was over before anything could go wrong"
        rows = desk.ended(run, within_s=90)
        asked = Counter(request.prompt for request in server.requests)
    assert [(row.index, row.outcome) for row in rows] == [(index, Outcome.PASSED) for index in range(CASES)]
    assert len(asked) == CASES
    assert asked.total() <= CASES + TOGETHER
    assert desk.info(run).tally.get("passed") == CASES
    # What the dead worker had been answered but not written down came from the cache, for nothing.
    for row in rows:
        assert row.cost_usd == pytest.approx(0.0 if CACHED in row.code else COST_USD)
