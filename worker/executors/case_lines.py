"""Writes what is stored of a case's result: its own figures around the verdict of the pipeline."""

from typing import Any, NamedTuple

import msgspec

from shared.contracts.case_results import NO_VERDICT, REASONING_CHARS, identity_of
from shared.contracts.case_run import CasePayload
from worker.upstream.model import ModelReply
from worker.validation.verdict import ValidationResult

_encode = msgspec.json.Encoder().encode


class Told(NamedTuple):
    """What a call tells beside its answer."""

    usage: dict[str, int | None] | None = None
    """Tokens, as the provider counts them."""
    first_token_ms: int | None = None
    """From sending to the first piece of text, of a streamed answer."""
    reasoning: str = ""
    """What the model thought before it answered."""


def usage_of(reply: ModelReply) -> dict[str, int | None] | None:
    """Returns the tokens of a call; None where the provider does not say.

    >>> usage_of(ModelReply("Hi", 5, prompt_tokens=3, completion_tokens=1))
    {'prompt_tokens': 3, 'completion_tokens': 1, 'total_tokens': 4}
    >>> usage_of(ModelReply("Hi", 5)) is None
    True
    """
    asked, said = reply.prompt_tokens, reply.completion_tokens
    if asked is None and said is None:
        return None
    total = None if asked is None or said is None else asked + said
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": total}


def judge_detail(model: str, reply: ModelReply) -> dict[str, Any]:
    """Returns what is kept of a judge's call beside its words."""
    return {
        "model": model,
        "token_usage": usage_of(reply),
        "cost_usd": reply.cost_usd,
        "latency_ms": reply.latency_ms,
        "cached": reply.is_cached,
    }


def case_document(payload: CasePayload, result: ValidationResult | None, told: Told) -> dict[str, Any]:
    """Puts together the result of a case.

    Args:
        payload: the item.
        result: the verdict; None where there is none.
        told: what the call told beside its answer.

    >>> document = case_document(CasePayload(2, "m", "Hi"), None, Told())
    >>> document["case_index"], document["status"], document["token_usage"]
    (2, None, None)
    """
    verdict = dict(NO_VERDICT) if result is None else result.as_document()
    if told.first_token_ms is not None:
        verdict["metrics"] = {**verdict["metrics"], "first_token_ms": told.first_token_ms}
    reasoning = told.reasoning[:REASONING_CHARS]
    return {**identity_of(payload), **verdict, "token_usage": told.usage, "reasoning": reasoning}


def case_line(document: dict[str, Any], code: str = "", message: str = "") -> bytes:
    """Writes what is stored: of an error with its code and message before it.

    >>> case_line({"model": "m"}), case_line({"model": "m"}, "poison", "no")
    (b'{"model":"m"}', b'{"error":{"code":"poison","message":"no"},"result":{"model":"m"}}')
    """
    if not code:
        return _encode(document)
    return _encode({"error": {"code": code, "message": message}, "result": document})
