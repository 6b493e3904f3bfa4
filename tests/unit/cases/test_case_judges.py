"""Judges are asked at the same time; for who must wait the case is sent away, or held."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import pytest

from shared.clock import now_ms
from shared.codecs.parked_items import History, ParkedState, WaitReason
from shared.errors import RedisUnreachableError
from shared.names import RunState
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from tests.support.checking import JUDGE
from worker.executors.case_judges import JudgeVotes, ask_judges
from worker.executors.claim_loop import PoolItem
from worker.outcomes import Deferred, EndRun
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.failures import UpstreamError
from worker.validation.checks.equivalent import EQUIVALENT

REQUESTS: Final = [ModelRequest(ModelTarget(name), "system", "user") for name in ("a", "b", "c")]
PASS: Final = ModelReply("PASS", 5, cost_usd=0.1)
READ: Final = partial(EQUIVALENT.read, JUDGE)
Judge = Callable[[CallsMade], ModelReply]


def asked(*judges: Judge, earlier: Sequence[History] = (), may_park: bool = True) -> JudgeVotes:
    """Asks judges that give fixed answers; all of them must be under way before the first answers."""

    async def together() -> JudgeVotes:
        """Asks on a loop."""
        under_way, everybody = set[str](), asyncio.Event()

        async def ask(request: ModelRequest, calls: CallsMade) -> ModelReply:
            """Answers when all are asked."""
            under_way.add(request.model)
            if len(under_way) == len(judges):
                everybody.set()
            await asyncio.wait_for(everybody.wait(), 10)
            return judges["abc".index(request.model)](calls)

        return await ask_judges(REQUESTS[: len(judges)], READ, ask, earlier, may_park=may_park)

    return asyncio.run(together())


def passes(_: CallsMade) -> ModelReply:
    """Says PASS."""
    return PASS


def parked(in_ms: int = 60_000) -> Judge:
    """Cannot be asked soon, after one attempt more."""

    def judge(calls: CallsMade) -> ModelReply:
        calls.history = calls.history._replace(attempts=calls.history.attempts + 1, code="upstream_timeout")
        raise Deferred(now_ms() + in_ms, ParkedState(WaitReason.RATE_LIMIT))

    return judge


def gone(calls: CallsMade) -> ModelReply:
    """Cannot be asked at all."""
    calls.history = calls.history._replace(attempts=4)
    raise UpstreamError(FailureReason.REFUSED, "no such model")


def spent(_: CallsMade) -> ModelReply:
    """Has no money left."""
    raise EndRun(RunState.INCOMPLETE, "spent")


def test_all_votes_come_in_the_order_of_the_panel() -> None:
    """All are under way together; who is gone has a vote without a reply, and costs nothing."""
    votes = asked(passes, gone, passes)
    assert [(vote.model, vote.verdict, vote.unreachable) for vote in votes.votes] == [
        ("a", "pass", ""),
        ("b", None, "no such model"),
        ("c", "pass", ""),
    ]
    assert votes.replies == [PASS, PASS]


def test_a_case_is_sent_away_with_what_each_judge_has_been_through() -> None:
    """It comes back when the last one can be asked, and none of them begins anew."""
    before = now_ms()
    with pytest.raises(Deferred) as away:
        asked(parked(1_000), passes, parked(60_000))
    assert away.value.due_ms >= before + 60_000
    with pytest.raises(Deferred) as again:
        asked(parked(), gone, parked(), earlier=away.value.state.judges)
    assert again.value.state == ParkedState(
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

    def late(calls: CallsMade) -> ModelReply:
        """Answers the third time."""
        seen.append(calls.history)
        return passes(calls) if len(seen) == 3 else parked(1)(calls)

    assert asked(passes, late, earlier=(History(), History(5)), may_park=False).replies == [PASS, PASS]
    assert [history.attempts for history in seen] == [5, 6, 7]


def test_a_spent_budget_is_a_missing_vote() -> None:
    """Votes that came are paid for and kept; who would have to wait is not waited for."""
    votes = asked(passes, spent, parked())
    assert [(vote.verdict, vote.unreachable) for vote in votes.votes] == [
        ("pass", ""),
        (None, "spent"),
        (None, "spent"),
    ]
    assert (votes.replies, votes.over) == ([PASS], "spent")


def test_a_failure_of_our_own_is_no_vote() -> None:
    """It is raised as it is, after the other judges have ended."""

    def fails(_: CallsMade) -> ModelReply:
        """Has lost its Redis."""
        raise RedisUnreachableError("gone")

    with pytest.raises(RedisUnreachableError):
        asked(passes, fails, passes)


def test_a_stop_ends_every_judge() -> None:
    """A case that is left breaks off all calls that were made for it."""

    async def stop() -> int:
        """Cancels while all are asked."""
        ended, begun, everybody = list[str](), list[str](), asyncio.Event()

        async def ask(request: ModelRequest, _: CallsMade) -> ModelReply:
            """Never answers."""
            begun.append(request.model)
            if len(begun) == len(REQUESTS):
                everybody.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(request.model)
            raise AssertionError

        asking: Awaitable[object] = ask_judges(REQUESTS, READ, ask, (), may_park=True)
        task = asyncio.ensure_future(asking)
        await everybody.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(ended)

    assert asyncio.run(stop()) == len(REQUESTS)


def test_a_stop_at_the_cost_cap_keeps_the_votes_that_came() -> None:
    """A judge that waits for money learns that there is none, and the other has voted."""

    async def stop() -> JudgeVotes:
        """Cancels while the second judge waits."""
        waiting = asyncio.Event()

        async def ask(request: ModelRequest, calls: CallsMade) -> ModelReply:
            """Answers at once, or waits until it is stopped."""
            if request.model == "a":
                return PASS
            waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return spent(calls)
            raise AssertionError

        task = asyncio.ensure_future(ask_judges(REQUESTS[:2], READ, ask, (), may_park=True))
        await waiting.wait()
        task.cancel()
        return await task

    votes = asyncio.run(stop())
    assert (votes.replies, votes.over) == ([PASS], "spent")


def test_an_item_is_called_for_until_the_last_call_ends() -> None:
    """A pause lets all calls of a panel end, not only the quickest."""
    item = PoolItem(CallsMade())
    with item.working():
        with item.working():
            assert item.is_working
        assert item.is_working
    assert not item.is_working
