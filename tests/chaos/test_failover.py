"""Sentinels replace a master that lives: workers follow, nothing is lost, answers are asked for once."""

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.server.client import RedisTarget
from tests.support.case_runs import bench
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer, Say
from tests.support.processes import Processes
from tests.support.query_desk import QueryDesk
from tests.support.redis_server import RedisServer
from tests.support.sentinels import Group
from tests.support.workers import start_worker

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

CASES, IN_FLIGHT, LATENCY_S = 400, 10, 0.2
"""Eight seconds of work; an old master lives on for about eleven."""
NOTICED_S = 4.0
"""How long answers may go to the old master: the sentinel promotes within 2 s, which is noticed in 1 s."""

logger = logging.getLogger(__name__)

NewServer = Callable[..., RedisServer]


class FailedOver(NamedTuple):
    """What became of a run whose master was replaced."""

    outcomes: list[str]
    """Of all items, in order."""
    asked: Counter[str]
    """How often the model was asked each question."""
    answered: int
    """Items that had a result when the fail-over was ordered."""
    worker: str
    """What the worker has logged."""


def fail_over_amid_cases(group: Group, folder: Path, processes: Processes) -> FailedOver:
    """Orders a fail-over when a quarter of the cases is answered, and follows the run to its end."""
    processes.env["PROCTOR_REDIS_URL"] = group.url
    worker = start_worker(processes, "-Q", "cases")
    with (
        ModelServer(lambda _prompt, _nth: Say("ok", after_s=LATENCY_S)) as model,
        closing(RedisTarget.parse(group.url).client()) as client,
    ):
        desk = QueryDesk(client, group.url, folder)
        cases = [{"input": f"question {number}", "regex_pattern": "ok"} for number in range(CASES)]
        config = {"judge_model": None, "concurrency": IN_FLIGHT, "cache": False}
        path = bench(folder, model, cases, models=["alpha"], config=config)
        run = submit(desk.ledger, desk.publisher, Source(path), options=SubmitOptions(await_disk=False)).run

        def is_under_way() -> int:
            done = desk.info(run).done
            assert done >= CASES // 4
            return done

        answered = eventually(is_under_way, 60)
        group.fail_over()
        eventually(group.has_changed_places, 60)
        rows = desk.ended(run, within_s=120)
        asked = Counter(request.prompt for request in model.requests)
    return FailedOver([row.outcome for row in rows], asked, answered, worker.errors)


def test_with_the_setting_that_doctor_asks_for_nothing_answered_is_asked_again(
    new_redis_server: NewServer, processes: Processes, tmp_path: Path
) -> None:
    """The old master refuses what it would lose: only what was in flight may be asked a second time."""
    group = Group(new_redis_server, processes, tmp_path)
    group.guard()
    found = fail_over_amid_cases(group, tmp_path, processes)
    again = found.asked.total() - len(found.asked)
    logger.info("%d asked again, %d answered at the order", again, found.answered)
    assert found.outcomes == ["passed"] * CASES
    assert len(found.asked) == CASES
    assert again <= IN_FLIGHT
    assert "Traceback" not in found.worker


def test_without_it_workers_notice_the_new_master_within_a_second(
    new_redis_server: NewServer, processes: Processes, tmp_path: Path
) -> None:
    """Nothing is lost; what is asked again is the work of some seconds, not of all the old master's life."""
    group = Group(new_redis_server, processes, tmp_path)
    found = fail_over_amid_cases(group, tmp_path, processes)
    again = found.asked.total() - len(found.asked)
    logger.info("%d asked again, %d answered at the order", again, found.answered)
    assert found.outcomes == ["passed"] * CASES
    assert again <= NOTICED_S * IN_FLIGHT / LATENCY_S
    assert "Traceback" not in found.worker
