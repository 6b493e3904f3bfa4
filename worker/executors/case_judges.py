"""Asks the judges of a case, all at once and each as every model is asked, and collects their votes.

What a judge has said is paid for: it is in the cache, or kept here until all votes are in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from shared.clock import now_ms
from worker.executors.case_lines import judge_detail
from worker.executors.case_notes import judge_histories, judge_note
from worker.upstream.model import ModelReply, ModelRequest
from worker.upstream.models import Answered, Asked, Gone, OverBudget, Parked
from worker.upstream.retry import History
from worker.validation.panel import Vote
from worker.validation.verdict import JudgeReply

Ask: TypeAlias = Callable[[ModelRequest, History], Awaitable[Asked]]
"""Asks one model on behalf of the run."""


class Heard(NamedTuple):
    """The votes of all judges."""

    votes: list[Vote]
    """In the order of the panel."""
    replies: list[ModelReply]
    """Of those that could be asked."""


class Adjourned(NamedTuple):
    """At least one judge cannot be asked soon."""

    due_ms: int
    """When all of them can be."""
    note: str
    """What they have been through."""


async def ask_judges(
    requests: Sequence[ModelRequest], ask: Ask, note: str, *, may_park: bool
) -> Heard | Adjourned | OverBudget:
    """Asks every judge of a panel at the same time.

    Args:
        requests: one for each judge.
        ask: asks one model.
        note: what is known of an earlier time.
        may_park: whether a judge that cannot be asked soon may send the case away; else it is waited for.
    """
    histories = judge_histories(note, len(requests))
    ends = await asyncio.gather(
        *(
            _ask(request, ask, history, may_park=may_park)
            for request, history in zip(requests, histories, strict=True)
        ),
        return_exceptions=True,  # else the others would go on by themselves after the first that fails
    )
    asked = list[Answered | Gone | Parked]()
    for end in ends:
        if isinstance(end, BaseException):
            raise end
        if isinstance(end, OverBudget):
            return end
        asked.append(end)
    dues = [each.due_ms for each in asked if isinstance(each, Parked)]
    if dues:
        # Those that have answered are in the cache, and will be found there.
        return Adjourned(max(dues), judge_note([each.history for each in asked]))
    ended = [each for each in asked if not isinstance(each, Parked)]
    votes = [_vote(request.model, each) for request, each in zip(requests, ended, strict=True)]
    return Heard(votes, [each.reply for each in asked if isinstance(each, Answered)])


async def _ask(request: ModelRequest, ask: Ask, history: History, *, may_park: bool) -> Asked:
    """Asks one judge until there is an answer, or a wait that the case need not be held for."""
    while True:
        asked = await ask(request, history)
        if not isinstance(asked, Parked) or may_park:
            return asked
        history = asked.history
        await asyncio.sleep(max(0, asked.due_ms - now_ms()) / 1000)


def _vote(judge: str, asked: Answered | Gone) -> Vote:
    """Makes a vote of how asking ended."""
    if isinstance(asked, Gone):
        return Vote(judge, None, asked.error.message)
    return Vote(judge, JudgeReply(asked.reply.text, judge_detail(judge, asked.reply)))
