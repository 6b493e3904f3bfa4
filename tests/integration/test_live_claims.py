"""How a worker takes live threads from question to answer; the model is a function of the test."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from producer.turns.retry import retry_turns
from shared import keys
from shared.contracts.live_turns import LiveRun
from shared.ledger.bounds import SUSPECT_STRIKES
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from tests.support.inline_live import Answers, InlineLive, parrot
from tests.support.live_desk import talks
from worker.upstream.failures import UpstreamError

if TYPE_CHECKING:
    import redis


class Make(Protocol):
    """Makes a worker."""

    def __call__(self, answer: Answers = parrot, *, in_flight: int = 100) -> InlineLive:
        """With this model."""


@pytest.fixture
def make(redis_client: "redis.Redis", tmp_path: Path) -> Iterator[Make]:
    """Makes workers that end with the test."""
    with ExitStack() as stack:

        def made(answer: Answers = parrot, *, in_flight: int = 100) -> InlineLive:
            live = InlineLive(redis_client, tmp_path, answer, in_flight=in_flight)
            return stack.enter_context(closing(live))

        yield made


def etags(live: InlineLive, run: str) -> list[str]:
    """The etag after each turn, in input order."""
    return [json.loads(row.line)["etag"] for row in live.store.rows(run)]


def test_turns_of_a_thread_over_several_chunks_keep_their_order(make: Make) -> None:
    """A thread that is longer than a chunk goes on where the chunk before ended."""
    live = make()
    run = live.submit(talks(2, 25), chunk_turns=10)
    live.work()
    assert etags(live, run) == [str(number) for _ in range(2) for number in range(1, 26)]
    for thread in range(2):
        mine = [message for message in live.asked if message.startswith(f"question {thread}.")]
        assert mine == [f"question {thread}.{number}" for number in range(25)]
    assert live.client.hlen(keys.owners_key(run)) == 0


def test_suspects_are_asked_one_turn_at_a_time(make: Make) -> None:
    """A chunk that cost workers their lives is worked on turn by turn, each asked once."""
    live = make()
    run = live.submit(talks(3, 4, skips=1))
    live.client.hset(keys.chunk_key(run, "0"), "k", SUSPECT_STRIKES)
    live.work()
    assert live.store.info(run).state == "finished"
    assert sorted(live.asked) == sorted({f"question {t}.{n}" for t in range(3) for n in range(4)})


def test_no_more_is_under_way_than_the_process_may(make: Make) -> None:
    """However many threads a chunk has, `-j` bounds its questions."""
    state = {"now": 0, "most": 0}

    async def slow(message: str) -> str:
        """Counts those that are under way."""
        state["now"] += 1
        state["most"] = max(state["most"], state["now"])
        await asyncio.sleep(0.02)
        state["now"] -= 1
        return message

    live = make(slow, in_flight=3)
    run = live.submit(talks(9, 1))
    live.work()
    assert live.store.info(run).state == "finished"
    assert state["most"] == 3


def test_a_chunk_goes_back_after_a_while(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads are asked no further, other work has its turn, and nothing is asked twice."""
    monkeypatch.setattr("worker.executors.live.MAX_CLAIM_S", 0.02)
    live = make()
    run = live.submit(talks(4, 12))
    visits = live.work()
    assert len(visits) > 1
    assert live.store.info(run).state == "finished"
    assert len(live.asked) == len(set(live.asked)) == 48


def test_recorded_and_live_turns_of_two_runs_share_a_chunk_visit(make: Make) -> None:
    """Whoever meets turns of another run in a thread's inbox decides them as that run says."""
    live = make()
    recorded = live.submit(talks(2, 2), live=None, namespace="both")
    asked = live.submit(talks(2, 2), namespace="both")
    live.work()
    assert etags(live, recorded) == ["1", "2", "1", "2"]
    assert etags(live, asked) == ["3", "4", "3", "4"]
    assert len(live.asked) == 4


def test_an_answer_that_breaks_the_engine_is_its_turns_error(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn is `internal`, in the dead set; the rest of its thread goes on."""
    live = make()

    def fail(text: str) -> Any:
        raise ArithmeticError(text)

    monkeypatch.setattr("worker.breakpoint.live_decisions.read_reply", fail)
    run = live.submit(talks(1, 1, skips=1))
    live.work()
    codes = [row.code for row in live.store.rows(run)]
    assert codes == ["x0", "k5a"]
    assert live.client.zcard(keys.DEAD_KEY) == 1


def test_a_client_that_breaks_is_its_turns_error(make: Make) -> None:
    """What no client should raise ends one turn, not the chunk."""

    async def broken(message: str) -> str:
        """Fails at the first question as nothing should."""
        if message == "question 0.0":
            raise ArithmeticError
        return message

    live = make(broken)
    run = live.submit(talks(2, 1))
    live.work()
    lines = [json.loads(row.line) for row in live.store.rows(run)]
    assert lines[0]["error"] == {"code": "internal", "message": "asking failed: ArithmeticError"}
    assert lines[1]["response"] == "question 1.0"


def test_errors_are_asked_again_by_a_retry(make: Make) -> None:
    """A retried turn goes to the end of its thread, begins anew, and replaces the error."""
    failing = {"question 0.0"}

    async def flaky(message: str) -> str:
        """Refuses what is listed."""
        if message in failing:
            raise UpstreamError(FailureReason.REFUSED, "not now")
        return message

    live = make(flaky)
    run = live.submit(talks(1, 2))
    live.work()
    assert [row.code for row in live.store.rows(run)] == ["x0", "s6l"]
    failing.clear()
    retry_turns(live.ledger, live, live.store, run)
    live.work()
    rows = list(live.store.rows(run))
    assert [(row.code, row.attempts) for row in rows] == [("s6l", 2), ("s6l", 1)]
    assert etags(live, run) == ["2", "1"]
    assert live.client.zcard(keys.DEAD_KEY) == 0


@pytest.mark.parametrize("is_anew", [True, False])
def test_a_retried_turn_asks_the_model_again_unless_told_not_to(make: Make, is_anew: bool) -> None:  # noqa: FBT001 - parametrized
    """`retry --item` does not use the stored answer to the same question; with `--cached` it does."""
    live = make()
    turns = [{"threadId": name, "message": "question"} for name in "ab"]
    run = live.submit(turns, live=LiveRun(ModelTarget("m", api_base="http://localhost/v1")))
    live.work()
    asked = [len(live.asked)]
    for index, flag in ((0, False), (1, is_anew)):
        retry_turns(live.ledger, live, live.store, run, indexes=[index], is_anew=flag)
        live.work()
        asked.append(len(live.asked))
    assert asked == [1, 2, 2 + is_anew]
    assert [row.code for row in live.store.rows(run)] == ["s6l", "s6l" if is_anew else "s6lc"]


def test_a_cap_without_a_price_ends_the_run_at_once(make: Make) -> None:
    """Nothing is sent, and one turn says why."""
    live = make()
    run = live.submit(
        talks(3, 3), live=LiveRun(ModelTarget("m", api_base="http://localhost/v1"), max_cost=1.0)
    )
    live.work()
    assert live.store.info(run).state == "aborted"
    errors = [json.loads(row.line)["error"]["code"] for row in live.store.rows(run) if row.code]
    assert set(errors) == {"price_unknown"}
    assert live.asked == []
