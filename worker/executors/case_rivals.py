"""The answers to a case that a check compares: who gives them, and what is shown of each to a judge."""

import json
from typing import Any, NamedTuple

from msgspec.structs import replace

from shared.contracts.case_run import CasePayload
from worker.executors.case_results import JudgedCase


class AnswerKey(NamedTuple):
    """What identifies an answer within a run."""

    case: int
    model: str
    prompt: str | None
    repeat: int


def answer_key(payload: CasePayload) -> AnswerKey:
    """Identifies the answer to an item."""
    return AnswerKey(payload.case, payload.model, payload.prompt_id, payload.repeat)


def rivals_of(payload: CasePayload) -> list[CasePayload]:
    """Makes the items of the other answers to a case; of its criteria they only have the transform."""
    transform = {key: value for key, value in payload.criteria.items() if key == "transform"}
    own = {"images": payload.images, "vars": payload.vars, "repeat": payload.repeat, "criteria": transform}
    return [replace(rival, **own) for rival in payload.rivals]


def shown_answer(judged: JudgedCase) -> str:
    """An answer as it is compared: as transforms made it, or its words, or its calls of tools."""
    checked, reply = judged.result.checked, judged.reply
    if checked is not None:
        return checked.text
    return reply.words or (json.dumps(reply.tool_calls, ensure_ascii=False) if reply.tool_calls else "")


def asked_of_all(payload: CasePayload) -> Any:
    """What all answers to a case answer: the input, or all of them where prompts use words of their own.

    >>> rival = CasePayload(0, "m", "Which is the capital of France?", prompt_id="long")
    >>> asked_of_all(CasePayload(0, "m", "Capital of France?", rivals=[rival]))
    ['Capital of France?', 'Which is the capital of France?']
    """
    inputs = sorted({payload.input, *(rival.input for rival in payload.rivals)})
    return inputs if len(inputs) > 1 else payload.input
