"""Asks the judges of a case, all at once and each as every model is asked, and collects their votes.

The verdict of a judge is paid for: it is in the cache, or kept here until all votes are in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias, TypeVar

from shared.clock import now_ms
from shared.codecs.parked_items import History, ParkedState
from shared.contracts.call_options import split_temperature
from shared.contracts.case_run import CasePayload, CaseRun, Endpoint
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


class JudgesDeferred(NamedTuple):
    """At least one judge cannot be asked soon."""

    due_ms: int
    """Time when all judges can be asked, epoch milliseconds."""
    state: ParkedState
    """Why the last of them waits, and what each has been through."""


def judge_requests(run: CaseRun, payload: CasePayload, result: ValidationResult) -> list[ModelRequest]:
    """Makes the request to each judge; all get the same prompt."""
    prompt = judge_prompt(payload.expected, result.parsed_output)
    return requests_to(run.judges, prompt, run, repeat=payload.repeat)


def requests_to(
    judges: Mapping[str, Endpoint], prompt: JudgePrompt, run: CaseRun, *, repeat: int = 0
) -> list[ModelRequest]:
    """Makes the request to each of some judges, with what the run says of calls to judges.

    Args:
        judges: where each of them is.
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
            headers=run.model_headers.get(judge, {}),
            api_base=place.api_base,
            api_key_env=place.api_key_env,
            timeout_s=run.timeout_s,
            repeat=repeat,
        )
        for judge, place in judges.items()
    ]


async def ask_judges(
    requests: Sequence[ModelRequest], ask: Ask, earlier: Sequence[History], *, may_park: bool
) -> JudgeVotes | JudgesDeferred | OverBudget:
    """Asks every judge of a panel at the same time.

    Args:
        requests: one for each judge.
        ask: asks one model.
        earlier: what each judge went through before the case was parked; nothing the first time.
        may_park: whether a judge that cannot be asked soon may park the case; else it is waited for.
    """
    histories = [*earlier, *[History()] * len(requests)][: len(requests)]
    ends = await asyncio.gather(
        *(
            until_settled(partial(ask, request), history, may_park=may_park)
            for request, history in zip(requests, histories, strict=True)
        ),
        return_exceptions=True,  # else the others would go on by themselves after the first that fails
    )
    settled = list[Answered | CallFailed | CallDeferred]()
    for end in ends:
        if isinstance(end, BaseException):
            raise end
        if isinstance(end, OverBudget):
            return end
        settled.append(end)
    last = max((each for each in settled if isinstance(each, CallDeferred)), key=_due_ms, default=None)
    if last is not None:
        # Those that have answered are in the cache, and will be found there.
        state = ParkedState(last.reason, judges=tuple(each.history for each in settled))
        return JudgesDeferred(last.due_ms, state)
    ended = [each for each in settled if not isinstance(each, CallDeferred)]
    votes = [_vote(request.model, each) for request, each in zip(requests, ended, strict=True)]
    return JudgeVotes(votes, [each.reply for each in settled if isinstance(each, Answered)])


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


def _vote(judge: str, called: Answered | CallFailed) -> Vote:
    """Makes a vote of how asking ended."""
    if isinstance(called, CallFailed):
        return Vote(judge, None, called.error.message)
    return Vote(judge, JudgeReply(called.reply.words, judge_detail(judge, called.reply)))
