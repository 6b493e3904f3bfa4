"""Asks the judges of a case, all at once and each as every model is asked, and collects their votes.

The verdict of a judge is paid for: it is in the cache, or kept here until all votes are in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from shared.clock import now_ms
from shared.codecs.parked_items import History, ParkedState
from shared.contracts.case_run import CaseRun
from shared.contracts.merged_options import split_temperature
from shared.upstream.model_target import ModelTarget
from worker.executors.case_results import judge_detail
from worker.outcomes import Deferred, EndRun
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply
from worker.upstream.failures import UpstreamError
from worker.upstream.request_forms import RESPONSE_FORMAT
from worker.validation.panel import JudgePrompt, Opinion, Vote

JUDGE_TEMPERATURE: Final = 0.0
"""What judges are asked with where `judge_params` says nothing."""
Ask: TypeAlias = Callable[[ModelRequest, CallsMade], Awaitable[ModelReply]]
"""Asks one model on behalf of the run."""
Read: TypeAlias = Callable[[str], Opinion]
"""Reads the reply of a judge."""
T = TypeVar("T")
Reply = TypeVar("Reply", ModelReply, EmbeddingReply)


class NoReply(NamedTuple):
    """A model has not answered, and will not."""

    why: str
    """Why not."""


class Asked(NamedTuple, Generic[Reply]):
    """What some models said that were asked together."""

    ends: list[Reply | NoReply]
    """Of each, in their order."""
    over: str
    """Why some were not asked, where the cost cap has been reached; empty below it."""


class JudgeVotes(NamedTuple):
    """The votes of all judges."""

    votes: list[Vote]
    """In the order of the panel."""
    replies: list[ModelReply]
    """Replies of the judges that could be asked."""
    over: str = ""
    """Why judges were not asked, where the cost cap has been reached; empty below it."""


def requests_to(
    judges: Iterable[ModelTarget], prompt: JudgePrompt, run: CaseRun, *, repeat: int = 0
) -> list[ModelRequest]:
    """Makes the request to each of some judges, with what the run says of calls to judges.

    Args:
        judges: whom.
        prompt: what all of them are asked.
        run: the settings.
        repeat: which repetition has an answer of its own.
    """
    temperature, parameters = split_temperature(run.judge_params, JUDGE_TEMPERATURE)
    return [
        ModelRequest(
            judge,
            prompt.system,
            prompt.user,
            temperature=temperature,
            parameters=parameters,
            repeat=repeat,
            form=None if RESPONSE_FORMAT in parameters else prompt.form,
            shared_chars=prompt.shared_chars,
        )
        for judge in judges
    ]


async def ask_judges(
    requests: Sequence[ModelRequest],
    read: Read,
    ask: Ask,
    earlier: Sequence[History],
    *,
    may_park: bool,
    check: str = "",
) -> JudgeVotes:
    """Asks every judge of a panel at the same time; at the cost cap those that have answered have voted.

    Args:
        requests: one for each judge.
        read: reads a reply.
        ask: asks one model.
        earlier: what each judge went through before the case was parked; nothing the first time.
        may_park: whether a judge that cannot be asked soon may park the case; else it is waited for.
        check: digest of the question of a check; empty: they are the judges of stage 4.

    Raises:
        Deferred: at least one judge cannot be asked soon.
    """
    asks = [partial(ask, request) for request in requests]
    asked = await ask_together(asks, earlier, may_park=may_park, check=check)
    votes = [_vote(request.model, end, read) for request, end in zip(requests, asked.ends, strict=True)]
    return JudgeVotes(votes, [end for end in asked.ends if not isinstance(end, NoReply)], asked.over)


async def ask_together(
    asks: Sequence[Callable[[CallsMade], Awaitable[Reply]]],
    earlier: Sequence[History],
    *,
    may_park: bool,
    check: str = "",
) -> Asked[Reply]:
    """Asks some models about an answer in hand, all at the same time.

    Args:
        asks: each asks one of them.
        earlier: what each went through before the case was parked; nothing the first time.
        may_park: whether one that cannot be asked soon may park the case; else it is waited for.
        check: digest of the question of a check; empty: they are the judges of stage 4.

    Raises:
        Deferred: at least one of them cannot be asked soon.
    """
    calls = [CallsMade(history) for history in (*earlier, *[History()] * len(asks))][: len(asks)]
    works = (_settled(ask, each, may_park=may_park) for ask, each in zip(asks, calls, strict=True))
    ends = await _all_of(works)
    over = next((end.why for end in ends if isinstance(end, EndRun)), "")
    waits = [end for end in ends if isinstance(end, Deferred)]
    if waits and not over:
        # Those that have answered are in the cache, and will be found there.
        last = max(waits, key=attrgetter("due_ms"))
        histories = tuple(each.history for each in calls)
        raise Deferred(last.due_ms, ParkedState(last.reason, judges=histories, check=check))
    return Asked([NoReply(over) if isinstance(end, Deferred | EndRun) else end for end in ends], over)


async def _settled(
    ask: Callable[[CallsMade], Awaitable[Reply]], calls: CallsMade, *, may_park: bool
) -> Reply | NoReply | Deferred | EndRun:
    """Asks one model until there is an outcome, or a wait that the case need not be held for."""
    while True:
        try:
            return await ask(calls)
        except UpstreamError as error:
            return NoReply(error.message)
        except EndRun as end:
            return end
        except Deferred as later:
            if may_park:
                return later
            due_ms = later.due_ms
        await asyncio.sleep(max(0, due_ms - now_ms()) / 1000)


async def _all_of(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Waits for all, also where one of them fails: the others would go on by themselves.

    Being stopped stops them, except where the cost cap is the reason, so that what has come is kept.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        if not any(isinstance(end, EndRun) for end in ends):
            raise
    return [task.result() for task in tasks]


def _vote(judge: str, end: ModelReply | NoReply, read: Read) -> Vote:
    """Makes a vote of how asking ended."""
    if isinstance(end, NoReply):
        return Vote(judge, unreachable=end.why)
    return Vote(judge, read(end.words), end.words, judge_detail(judge, end))
