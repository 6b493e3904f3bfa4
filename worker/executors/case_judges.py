"""Asks the judges of a case, all at once and each as every model is asked, and collects their votes.

What a judge has said is paid for: it is in the cache, or kept here until all votes are in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from shared.clock import now_ms
from shared.contracts.case_run import CasePayload, CaseRun
from worker.executors.case_results import judge_detail
from worker.upstream.model import ModelReply, ModelRequest
from worker.upstream.models import Answered, Asked, Gone, OverBudget, Parked
from worker.upstream.retry import History, is_count
from worker.validation.judge import judge_prompt
from worker.validation.panel import Vote
from worker.validation.verdict import JudgeReply, ValidationResult

Ask: TypeAlias = Callable[[ModelRequest, History], Awaitable[Asked]]
"""Asks one model on behalf of the run."""


JUDGE: Final = "judge "
"""What such a note begins with; then attempts and history of each judge."""
BETWEEN: Final = "|"
"""Stands between judges; no error code has it."""


class JudgeVotes(NamedTuple):
    """The votes of all judges."""

    votes: list[Vote]
    """In the order of the panel."""
    replies: list[ModelReply]
    """Of those that could be asked."""


class JudgesDeferred(NamedTuple):
    """At least one judge cannot be asked soon."""

    due_ms: int
    """When all of them can be."""
    note: str
    """What they have been through."""


def judge_requests(run: CaseRun, payload: CasePayload, result: ValidationResult) -> list[ModelRequest]:
    """Makes the request to each judge; all get the same prompt."""
    prompt = judge_prompt(payload.expected, result.parsed_output)
    return [
        ModelRequest(
            judge,
            prompt.system,
            prompt.user,
            temperature=0.0,
            api_base=place.api_base,
            api_key_env=place.api_key_env,
            timeout_s=run.timeout_s,
            repeat=payload.repeat,
        )
        for judge, place in run.judges.items()
    ]


async def ask_judges(
    requests: Sequence[ModelRequest], ask: Ask, note: str, *, may_park: bool
) -> JudgeVotes | JudgesDeferred | OverBudget:
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
        return JudgesDeferred(max(dues), judge_note([each.history for each in asked]))
    ended = [each for each in asked if not isinstance(each, Parked)]
    votes = [_vote(request.model, each) for request, each in zip(requests, ended, strict=True)]
    return JudgeVotes(votes, [each.reply for each in asked if isinstance(each, Answered)])


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


def judge_note(histories: Sequence[History]) -> str:
    """Writes down what the judges have been through, in the order of the panel.

    >>> judge_note([History(2, 0, 350, "upstream_timeout"), History()])
    'judge 2 upstream_timeout 0 350|0  0 0'
    """
    return JUDGE + BETWEEN.join(f"{history.attempts} {history.pack()}" for history in histories)


def waits_for_judge(note: str) -> bool:
    """Tells whether a note is about the judge, and not about the model under test.

    >>> waits_for_judge("judge 2 upstream_timeout 0 350"), waits_for_judge("upstream_timeout 0 350")
    (True, False)
    """
    return note.startswith(JUDGE)


def judge_histories(note: str, judges: int) -> list[History]:
    """Reads what each of the judges has been through; nothing where the note is about something else.

    >>> [history.attempts for history in judge_histories("judge 2 upstream_timeout 0 350|1  0 0", 3)]
    [2, 1, 0]
    >>> judge_histories("upstream_timeout 0 350", 1) == [History()]
    True
    """
    told = note.removeprefix(JUDGE).split(BETWEEN) if waits_for_judge(note) else []
    return [_history(each) for each in (told + [""] * judges)[:judges]]


def _history(text: str) -> History:
    """Reads what one judge has been through."""
    attempts, _, packed = text.partition(" ")
    return History.unpack(int(attempts), packed) if is_count(attempts) else History()
