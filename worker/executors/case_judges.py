"""Asks the judges of a case, all at once and each as every model is asked, and collects their votes.

The verdict of a judge is paid for: it is in the cache, or kept here until all votes are in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from shared.clock import now_ms
from shared.codecs.parked_items import History, ParkedState
from shared.contracts.call_options import split_temperature
from shared.contracts.case_run import CasePayload, CaseRun
from shared.upstream.model_target import ModelTarget
from worker.executors.case_results import judge_detail
from worker.upstream.budget import OverBudget
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.model_caller import Answered, CallDeferred, CallFailed, CallOutcome
from worker.validation.case_verdict import JudgeReply, ValidationResult
from worker.validation.judge import JudgePrompt, judge_prompt
from worker.validation.panel import Vote

JUDGE_TEMPERATURE: Final = 0.0
"""What judges are asked with where `judge_params` says nothing."""
Ask: TypeAlias = Callable[[ModelRequest, History], Awaitable[CallOutcome]]
"""Asks one model on behalf of the run."""
T = TypeVar("T")


class JudgeVotes(NamedTuple):
    """The votes of all judges."""

    votes: list[Vote]
    """In the order of the panel."""
    replies: list[ModelReply]
    """Replies of the judges that could be asked."""
    over: str = ""
    """Why judges were not asked, where the cost cap has been reached; empty below it."""


class JudgesDeferred(NamedTuple):
    """At least one judge cannot be asked soon."""

    due_ms: int
    """Time when all judges can be asked, epoch milliseconds."""
    state: ParkedState
    """Why the last of them waits, and what each has been through."""


def judge_requests(run: CaseRun, payload: CasePayload, result: ValidationResult) -> list[ModelRequest]:
    """Makes the request to each judge; all get the same prompt."""
    prompt = judge_prompt(payload.expected, result.parsed_output)
    return requests_to(run.judges.values(), prompt, run, repeat=payload.repeat)


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
            judge, prompt.system, prompt.user, temperature=temperature, parameters=parameters, repeat=repeat
        )
        for judge in judges
    ]


async def ask_judges(
    requests: Sequence[ModelRequest], ask: Ask, earlier: Sequence[History], *, may_park: bool
) -> JudgeVotes | JudgesDeferred:
    """Asks every judge of a panel at the same time; at the cost cap those that have answered have voted.

    Args:
        requests: one for each judge.
        ask: asks one model.
        earlier: what each judge went through before the case was parked; nothing the first time.
        may_park: whether a judge that cannot be asked soon may park the case; else it is waited for.
    """
    histories = [*earlier, *[History()] * len(requests)][: len(requests)]
    ends = await _all_of(
        until_settled(partial(ask, request), history, may_park=may_park)
        for request, history in zip(requests, histories, strict=True)
    )
    over = next((end.message for end in ends if isinstance(end, OverBudget)), "")
    last = max((end for end in ends if isinstance(end, CallDeferred)), key=_due_ms, default=None)
    if last is not None and not over:
        # Those that have answered are in the cache, and will be found there.
        histories = [end.history for end in ends if not isinstance(end, OverBudget)]
        return JudgesDeferred(last.due_ms, ParkedState(last.reason, judges=tuple(histories)))
    votes = [_vote(request.model, end, over) for request, end in zip(requests, ends, strict=True)]
    return JudgeVotes(votes, [end.reply for end in ends if isinstance(end, Answered)], over)


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
        if not any(isinstance(end, OverBudget) for end in ends):
            raise
    return [task.result() for task in tasks]


def _due_ms(parked: CallDeferred) -> int:
    return parked.due_ms


async def until_settled(ask: Callable[[History], Awaitable[T]], history: History, *, may_park: bool) -> T:
    """Asks one model until there is an outcome, or a wait that the case need not be held for."""
    while True:
        called = await ask(history)
        if not isinstance(called, CallDeferred) or may_park:
            return called
        history = called.history
        await asyncio.sleep(max(0, called.due_ms - now_ms()) / 1000)


def _vote(judge: str, called: CallOutcome, over: str) -> Vote:
    """Makes a vote of how asking ended."""
    match called:
        case Answered(reply, _):
            return Vote(judge, JudgeReply(reply.words, judge_detail(judge, reply)))
        case CallFailed(error, _):
            return Vote(judge, None, error.message)
        case CallDeferred() | OverBudget():
            return Vote(judge, None, over)
