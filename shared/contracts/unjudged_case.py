"""The result of a case without a verdict: for workers, and for readers of what no worker survived."""

from typing import Any, Final

from shared.contracts.case_run import CasePayload

REASONING_CHARS: Final = 20_000
"""Characters that a result keeps of a model's reasoning; it is read by people and never judged."""
NO_VERDICT: Final[dict[str, Any]] = {
    "status": None,
    "passed": False,
    "stages": [],
    "decided_by": None,
    "message": "",
    "differences": None,
    "raw_output": None,
    "parsed_output": None,
    "metrics": {},
    "used_fuzzy_match": False,
    "freeform": False,
    "score": None,
    "checks": [],
}
"""The part of a result that is about the verdict."""
NO_CALL: Final[dict[str, Any]] = {
    "token_usage": None,
    "reasoning": "",
    "tool_calls": [],
    "refusal": "",
    "finish_reason": "",
}
"""The part of a result that is about the call."""


def identity_of(payload: CasePayload) -> dict[str, Any]:
    """Names the item: the first keys of its result; `weight` and `repeat` only where they say something.

    >>> identity_of(CasePayload(2, "m", "Hi", id="greeting", tags=["a"]))["tags"]
    ['a']
    """
    return {
        "model": payload.model,
        "case_index": payload.case,
        "case_id": payload.id,
        "repeat_index": payload.repeat,
        "prompt_id": payload.prompt_id,
        "vars": payload.vars,
        "tags": payload.tags,
        "metadata": payload.metadata,
        **({} if payload.weight == 1 else {"weight": payload.weight}),
        **({} if payload.quorum is None else {"repeat": payload.quorum.written}),
    }


def without_verdict(payload: CasePayload) -> dict[str, Any]:
    """Makes the result of an item that has no verdict.

    >>> without_verdict(CasePayload(2, "m", "Hi"))["status"] is None
    True
    """
    return {**identity_of(payload), **NO_VERDICT, **NO_CALL}
