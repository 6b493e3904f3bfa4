"""`kill -9` of a worker amid test cases: no answer is lost, and none is paid for twice without need."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from shared.names import Outcome
from tests.support.kill_cases import kill_amid_cases
from tests.support.processes import Processes

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
    rows, asked, tally, left, _ = kill_amid_cases(
        redis_client, redis_url, tmp_path, processes, cases=CASES, together=TOGETHER
    )
    assert left > 0, "it was over before anything could go wrong"
    assert [(row.index, row.outcome) for row in rows] == [(index, Outcome.PASSED) for index in range(CASES)]
    assert len(asked) == CASES
    assert asked.total() <= CASES + TOGETHER
    assert tally.get("passed") == CASES
    # Also of what the dead worker had been answered but not written down: a cached answer keeps its cost.
    for row in rows:
        assert row.cost_usd == pytest.approx(COST_USD)
