"""The check `verdict`: a function of code beside the bench judges the output, in a process of its own.

It may import packages and read files, which functions in the sandbox may not. What it may return, and when
that passes, is as promptfoo has it.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from pydantic import Field

from shared.contracts.checks import Check
from shared.thresholds import reaches
from worker.validation.case_verdict import Returned
from worker.validation.checks.javascript import javascript_context, score_of
from worker.validation.checks.kind import AsksJudges, Label, Score, Subject, no, titled, unavailable
from worker.validation.checks.rubric import UNREADABLE
from worker.validation.checks.similar import ModelName
from worker.validation.display import cut
from worker.validation.panel import REPLY_CHARS, JudgePrompt, Opinion, Vote

VERDICT_OPTIONS: Final = {"model": ModelName, "config": dict[str, Any]}
FunctionOfCode = Annotated[str, Field(strict=True, pattern=r"^[^\W\d][\w.$]*$", max_length=200)]
_WORDS: Final = {"true": True, "false": False}
"""Texts that count as what they say."""


class _Returned(msgspec.Struct):
    """What a function returned."""

    language: str
    """Its language: in Python, `at_least` holds for `{pass, score, reason}` too."""
    value: Any


def verdict_title(check: Check, _label: Label) -> str:
    """Names a check after its function, or after its file."""
    return titled(check, check.argument or check.models[0])


def _question(check: Check, subject: Subject) -> JudgePrompt:
    """Writes what a function is called with, as JSON."""
    question = {
        "function": check.argument or "",
        "output": subject.given,
        "context": javascript_context(subject, check.options.get("config")),
    }
    return JudgePrompt("", msgspec.json.encode(question, order="deterministic").decode())


def _opinion(check: Check, reply: str) -> Opinion:
    """Reads what a function returned.

    >>> reply = '{"language": "python", "value": {"pass": true, "score": 0.5, "reason": "brief"}}'
    >>> _opinion(Check("verdict"), reply), _opinion(Check("verdict", at_least=0.8), reply).verdict
    (Opinion(verdict='pass', score=0.5, reason='brief'), 'fail')
    """
    returned = msgspec.json.decode(reply, type=_Returned)
    value = returned.value
    if isinstance(value, str):
        value = _WORDS.get(value.lower(), value)
    elif isinstance(value, dict):
        value = {"score": float(value.get("pass") is True), "reason": "", **value}
    kind = "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "object"
    found = score_of(Returned(kind, value), check.at_least)
    reason = found.reason.replace("JavaScript", "the function", 1)
    if found.error:
        return Opinion("unclear", None, reason)
    is_low = returned.language == "python" and not reaches(found.value or 0, check.at_least or 0)
    return Opinion("pass" if found.passed and not is_low else "fail", found.value, reason)


def _score(_: Check, votes: Sequence[Vote]) -> Score:
    """The score that its only function gives."""
    [vote] = votes
    if vote.opinion is None:
        return unavailable(cut(vote.unreachable, REPLY_CHARS))
    if vote.opinion.score is None:
        return no(vote.opinion.reason, error=UNREADABLE)
    return Score(vote.opinion.score, vote.opinion.reason, {}, vote.verdict == "pass", is_final=True)


VERDICT: Final = AsksJudges(_question, _opinion, _score, 60, says_verdict=True)
