"""Judges are asked at the same time; for who must wait the case is sent away, or held."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import pytest

from shared.clock import now_ms
from shared.codecs.parked_items import History, ParkedState, WaitReason
from shared.errors import RedisUnreachableError
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from worker.executors.case_judges import JudgesDeferred, JudgeVotes, ask_judges
from worker.executors.items import PoolItem
from worker.upstream.budget import OverBudget
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_caller import Answered, CallDeferred, CallFailed, CallOutcome

REQUESTS: Final = [ModelRequest(ModelTarget(name), "system", "user") for name in ("a", "b", "c")]
PASS: Final = ModelReply("PASS", 5, cost_usd=0.1)
Judge = Callable[[History], CallOutcome]


def asked(
    *judges: Judge, earlier: Sequence[History] = (), may_park: bool = True
) -> JudgeVotes | JudgesDeferred:
    """Asks judges that give fixed answers; all of them must be under way before the first answers."""

    async def together() -> JudgeVotes | JudgesDeferred:
        """Asks on a loop."""
        under_way, everybody = set[str](), asyncio.Event()

        async def ask(request: ModelRequest, history: History) -> CallOutcome:
            """Answers when all are asked."""
            under_way.add(request.model)
            if len(under_way) == len(judges):
                everybody.set()
            await asyncio.wait_for(everybody.wait(), 10)
            return judges["abc".index(request.model)](history)

        return await ask_judges(REQUESTS[: len(judges)], ask, earlier, may_park=may_park)

    return asyncio.run(together())


def passes(history: History) -> CallOutcome:
    """Says PASS."""
    return Answered(PASS, history)


def parked(in_ms: int = 60_000) -> Judge:
    """Cannot be asked soon, after one attempt more."""
    return lambda history: CallDeferred(
        now_ms() + in_ms,
        WaitReason.RATE_LIMIT,
        history._replace(attempts=history.attempts + 1, code="upstream_timeout"),
    )


def gone(history: History) -> CallOutcome:
    """Cannot be asked at all."""
    return CallFailed(UpstreamError(FailureReason.REFUSED, "no such model"), history._replace(attempts=4))


def test_all_votes_come_in_the_order_of_the_panel() -> None:
    """All are under way together; who is gone has a vote without a reply, and costs nothing."""
    votes = asked(passes, gone, passes)
    assert isinstance(votes, JudgeVotes)
    assert [(vote.judge, vote.verdict, vote.why) for vote in votes.votes] == [
        ("a", "pass", ""),
        ("b", None, "no such model"),
        ("c", "pass", ""),
    ]
    assert votes.replies == [PASS, PASS]


def test_a_case_is_sent_away_with_what_each_judge_has_been_through() -> None:
    """It comes back when the last one can be asked, and none of them begins anew."""
    before = now_ms()
    away = asked(parked(1_000), passes, parked(60_000))
    assert isinstance(away, JudgesDeferred)
    assert away.due_ms >= before + 60_000
    again = asked(parked(), gone, parked(), earlier=away.state.judges)
    assert isinstance(again, JudgesDeferred)
    assert again.state == ParkedState(
        WaitReason.RATE_LIMIT,
        judges=(
            History(2, code="upstream_timeout"),
            History(4),
            History(2, code="upstream_timeout"),
        ),
    )


def test_a_case_that_would_be_lost_waits_for_its_judges() -> None:
    """Where the answer is kept nowhere else, a judge is asked until it answers, with its own history."""
    seen = list[History]()

    def late(history: History) -> CallOutcome:
        """Answers the third time."""
        seen.append(history)
        return passes(history) if len(seen) == 3 else parked(1)(history)

    votes = asked(passes, late, earlier=(History(), History(5)), may_park=False)
    assert isinstance(votes, JudgeVotes)
    assert [history.attempts for history in seen] == [5, 6, 7]


def test_a_spent_budget_is_a_missing_vote() -> None:
    """Votes that came are paid for and kept; who would have to wait is not waited for."""
    votes = asked(passes, lambda _: OverBudget("spent"), parked())
    assert isinstance(votes, JudgeVotes)
    assert [(vote.verdict, vote.why) for vote in votes.votes] == [
        ("pass", ""),
        (None, "spent"),
        (None, "spent"),
    ]
    assert (votes.replies, votes.over) == ([PASS], "spent")


def test_a_failure_of_our_own_is_no_vote() -> None:
    """It is raised as it is, after the other judges have ended."""

    def fails(_: History) -> CallOutcome:
        """Has lost its Redis."""
        raise RedisUnreachableError("gone")

    with pytest.raises(RedisUnreachableError):
        asked(passes, fails, passes)


def test_a_stop_ends_every_judge() -> None:
    """A case that is left breaks off all calls that were made for it."""

    async def stop() -> int:
        """Cancels while all are asked."""
        ended, begun, everybody = list[str](), list[str](), asyncio.Event()

        async def ask(request: ModelRequest, _: History) -> CallOutcome:
            """Never answers."""
            begun.append(request.model)
            if len(begun) == len(REQUESTS):
                everybody.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(request.model)
            raise AssertionError

        asking: Awaitable[object] = ask_judges(REQUESTS, ask, (), may_park=True)
        task = asyncio.ensure_future(asking)
        await everybody.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(ended)

    assert asyncio.run(stop()) == len(REQUESTS)


def test_a_stop_at_the_cost_cap_keeps_the_votes_that_came() -> None:
    """A judge that waits for money learns that there is none, and the other has voted."""

    async def stop() -> JudgeVotes | JudgesDeferred:
        """Cancels while the second judge waits."""
        waiting = asyncio.Event()

        async def ask(request: ModelRequest, history: History) -> CallOutcome:
            """Answers at once, or waits until it is stopped."""
            if request.model == "a":
                return passes(history)
            waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return OverBudget("spent")
            raise AssertionError

        task = asyncio.ensure_future(ask_judges(REQUESTS[:2], ask, (), may_park=True))
        await waiting.wait()
        task.cancel()
        return await task

    votes = asyncio.run(stop())
    assert isinstance(votes, JudgeVotes)
    assert (votes.replies, votes.over) == ([PASS], "spent")


def test_an_item_is_called_for_until_the_last_call_ends() -> None:
    """A pause lets all calls of a panel end, not only the quickest."""
    item = PoolItem()
    with item.working():
        with item.working():
            assert item.is_working
        assert item.is_working
    assert not item.is_working
