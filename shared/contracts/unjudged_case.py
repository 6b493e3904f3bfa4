"""The result of a case without a verdict: for workers, and for readers of what no worker survived."""

from typing import Any, Final

from shared.contracts.case_run import CasePayload

REASONING_CHARS: Final = 20_000
"""Of a model's reasoning, what a result keeps; it is read by people and never judged."""
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
}
"""The part of a result that is about the verdict."""


def identity_of(payload: CasePayload) -> dict[str, Any]:
    """Names the item: the first keys of its result.

    >>> identity_of(CasePayload(2, "m", "Hi", id="greeting"))
    {'model': 'm', 'case_index': 2, 'case_id': 'greeting', 'repeat_index': 0}
    """
    return {
        "model": payload.model,
        "case_index": payload.case,
        "case_id": payload.id,
        "repeat_index": payload.repeat,
    }


def without_verdict(payload: CasePayload) -> dict[str, Any]:
    """Makes the result of an item that has no verdict.

    >>> without_verdict(CasePayload(2, "m", "Hi"))["status"] is None
    True
    """
    return {**identity_of(payload), **NO_VERDICT, "token_usage": None, "reasoning": ""}
