"""The verdict of the pipeline on one output: each stage with its reason, the status, and what decided it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

from shared.contracts.case_vocabulary import STAGE_TABLE, CaseStatus, Stage
from shared.contracts.checks import Snippet
from worker.validation.display import escape_surrogates

FREEFORM: Final = "freeform"
"""Not decided: the case only shows outputs."""
CHECKS: Final = "checks"
"""Decided by the checks of the case."""
MAX_REASON_CHARS: Final = 4_000
"""Characters of a reason that are kept of a check, a function or a sandbox."""
NO_CHECK: Final = "no_check"
"""Not decided: the case only has a reference to be measured against."""


class StageOutcome(StrEnum):
    """Outcome of one stage."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    """It agreed."""
    FAIL = "fail"
    """It did not agree, or could not be carried out."""
    SKIPPED = "skipped"
    """It was not asked; the reason says why."""


class StageResult(NamedTuple):
    """One stage, as people and programs read it."""

    stage: Stage
    """Which one."""
    outcome: StageOutcome
    """Outcome of the stage."""
    reason: str = ""
    """In a sentence: what was expected, what was found, where; or why it was skipped."""
    detail: Mapping[str, Any] = {}
    """For programs: match and span, differences, the judge's reply, and the like."""

    @property
    def number(self) -> str:
        """Its number in the specification, such as `0.5`."""
        return STAGE_TABLE[self.stage].number

    def as_document(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "stage": str(self.stage),
            "outcome": str(self.outcome),
            "reason": self.reason,
            "detail": dict(self.detail),
        }


class CheckResult(NamedTuple):
    """The result of one check."""

    name: str
    """What people call it."""
    check: str
    """Its kind."""
    score: float | None
    """The score, from 0 to 1; None: not asked, or nothing to look at."""
    passed: bool | None
    """Whether it passed; None without a score."""
    reason: str
    """What was expected, and what was found."""
    cost_usd: float | None = None
    """What asking cost; None: nothing was asked, or the price is not known."""
    detail: Mapping[str, Any] = {}
    """For programs."""
    weight: float = 1.0
    """How much the score counts."""
    at_least: float | None = None
    """The score from which it passes; None: what the kind of check says."""
    is_open: bool = False
    """Whether it is a paid check that was not asked yet."""

    def as_document(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "name": self.name,
            "check": self.check,
            "score": self.score,
            "passed": self.passed,
            "reason": escape_surrogates(self.reason, MAX_REASON_CHARS),
            "cost_usd": self.cost_usd,
            "detail": dict(self.detail),
            "at_least": self.at_least,
            **({"is_open": True} if self.is_open else {}),
        }


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """The reply of the judge; a plain text will do where nothing else is known."""

    text: str
    """The reply, word for word."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Model, tokens, cost and the like, kept beside the verdict."""


class Judge(Protocol):
    """Asks a second model; raises any exception when there is no reply."""

    def __call__(self, expected: Any, actual: Any, /) -> str | JudgeReply:
        """Returns the reply to `worker.validation.checks.equivalent.judge_prompt(expected, actual)`."""
        ...


class Returned(NamedTuple):
    """What a script returned."""

    type: str
    """Of the value, in JavaScript's word."""
    value: Any
    """The value as far as JSON has it; else None."""


class UntrustedRunner(Protocol):
    """Runs what cannot be trusted where it can be stopped; raises when it had to be.

    What it raises fails the stage, except for a `CheckUnusableError`: then there is no verdict on the output.
    """

    def search(self, pattern: str, text: str) -> Any:
        """Searches with MULTILINE; None or False is no match, everything else is one, also an empty text."""
        ...

    def call(self, name: str, text: str) -> Any:
        """Calls a validator by name and hands back what it returned."""
        ...


@runtime_checkable
class CheckSandbox(UntrustedRunner, Protocol):
    """A sandbox that also calls functions of checks, and runs JavaScript."""

    def check(self, name: str, text: str, context: str) -> Any:
        """Calls a function with an output and, if it takes one, a context; returns what it returned.

        Args:
            name: the function.
            text: the output.
            context: a JSON object.
        """
        ...

    def transform(self, name: str, text: str, context: str) -> Any:
        """Calls a function as `check` does, and returns the JSON value that it made of the output."""
        ...

    def script(self, script: Snippet, request: str) -> Returned:
        """Runs JavaScript with a JSON object that holds `output` and `context`."""
        ...


class CheckedOutput(NamedTuple):
    """What a transform has made of an answer."""

    text: str
    """A text as it is, another value as JSON."""
    is_value: bool = False
    """Whether it is a JSON value that is no text."""


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The verdict on one output."""

    status: CaseStatus
    """One of the eight."""
    passed: bool
    """Whether the status is `passed`."""
    decided_by: Stage | Literal["freeform", "no_check", "checks"]
    """The stage whose word was the last."""
    message: str
    """For people; empty when there is nothing to say."""
    stages: tuple[StageResult, ...]
    """All six, in order."""
    raw_output: str
    """The answer of the model."""
    parsed_output: dict[str, Any] | None = None
    """The object in it, if one was looked for and found."""
    differences: Mapping[str, Any] | None = None
    """Changed, missing, unexpected, repetitions; None when stage 3 did not fail."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """`rouge_l` and its tokenizer, when the case has a reference."""
    used_fuzzy_match: bool = False
    """Whether it passed only because of the judge."""
    freeform: bool = False
    """Whether the case has no criteria at all."""
    awaits_judge: bool = False
    """Whether a judge was not asked yet and could still let it pass."""
    checks: tuple[CheckResult, ...] = ()
    """The checks of the case, in order; paid ones may not be asked yet."""
    score: float | None = None
    """The weighted mean of the scores of its checks; None without any."""
    checked: CheckedOutput | None = None
    """What was checked in place of the answer; None where it was not transformed."""

    def as_document(self) -> dict[str, Any]:
        """The part of an item's result that is about the verdict, as it is stored and printed."""
        return {
            "status": str(self.status),
            "passed": self.passed,
            "stages": [stage.as_document() for stage in self.stages],
            "decided_by": str(self.decided_by),
            "message": self.message,
            "differences": None if self.differences is None else dict(self.differences),
            "raw_output": escape_surrogates(self.raw_output),
            "parsed_output": self.parsed_output,
            "metrics": dict(self.metrics),
            "used_fuzzy_match": self.used_fuzzy_match,
            "freeform": self.freeform,
            "score": self.score,
            "checks": [check.as_document() for check in self.checks],
            **({} if self.checked is None else {"checked_output": escape_surrogates(self.checked.text)}),
        }
