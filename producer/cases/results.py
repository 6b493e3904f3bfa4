"""The result of a test case as it is stored, printed and written: the verdict with its stages and checks.

Results are read as this and earlier releases stored them: they may have further keys, and bounds are only
part of their schemas.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, convert

from producer.documents import Line
from producer.report.transcript import answer_text
from shared.contracts.case_vocabulary import CaseStatus, Stage
from shared.contracts.unjudged_case import REASONING_CHARS
from worker.validation.case_verdict import StageOutcome

AnyCount = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
AnyScore = Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]


class JudgeVote(Struct, frozen=True):
    """The verdict of one judge, beside what is known of its call."""

    model: str = ""
    """Name of the judge."""
    verdict: str | None = None
    """`pass`, `fail` or `unclear`; None where it could not be asked."""
    reason: str | None = None
    """Its words on a rubric."""
    unreachable: str | bool | None = None
    """Why it could not be asked."""
    cost_usd: float | None = None
    """Cost of its call."""


class JudgedRubric(Struct, frozen=True):
    """The verdicts of judges on one rubric of a case."""

    votes: list[JudgeVote]
    """One of each judge."""
    passed: bool | None
    """What they decided together."""
    question: str = ""
    """Identifies what was asked, if a check asked several things."""
    negated: bool = False
    """Whether the case passes if the rubric does not."""


class SchemaViolation(Struct, frozen=True):
    """One way in which an output breaks the schema."""

    pointer: str = ""
    keyword: str = ""
    message: str = ""


class StageDetail(Struct, frozen=True):
    """What reports read of a stage's detail."""

    model: str | None = None
    verdict: str | None = None
    reply: str | None = None
    """What the judges said."""
    cost_usd: float | None = None
    unreachable: bool = False
    """Whether too few judges could be asked."""
    votes: list[JudgeVote] | None = None
    """Of a panel."""
    errors: list[SchemaViolation] = []

    @property
    def voices(self) -> Sequence[JudgeVote]:
        """The votes on record; a single judge's is the stage's own.

        >>> [vote.model for vote in StageDetail(model="a", verdict="pass", reply="PASS").voices]
        ['a']
        >>> StageDetail(unreachable=True).voices, StageDetail().voices
        ([], [])
        """
        if self.votes is not None:
            return self.votes
        is_single = self.verdict and self.model is not None
        return [JudgeVote(self.model or "", self.verdict, cost_usd=self.cost_usd)] if is_single else []


class StageEntry(Struct, frozen=True):
    """What one stage of the validation found."""

    stage: Stage
    outcome: StageOutcome
    reason: str
    detail: dict[str, Any]

    @property
    def known(self) -> StageDetail:
        """The part of the detail that reports read."""
        return convert(self.detail, StageDetail)


class CheckRow(Struct, frozen=True):
    """How one check fared."""

    name: str
    check: str
    score: Annotated[AnyScore | None, Meta(description="Null: not asked, or nothing to look at.")]
    passed: bool | None
    reason: str
    cost_usd: float | None
    detail: dict[str, Any]
    at_least: Annotated[
        AnyScore | None,
        Meta(description="The score from which it passes; null: what the kind of check says."),
    ] = None
    is_open: Annotated[
        bool,
        Meta(description="Whether it was still to be asked when the case ended; only there where it was."),
    ] = False

    @property
    def missed(self) -> float | None:
        """The score that it needed and did not reach; rows of earlier releases lack it."""
        return self.at_least if self.passed is False else None

    @property
    def rubrics(self) -> list[JudgedRubric]:
        """The verdicts of judges on it, or on the rubrics inside of it.

        >>> vote = {"model": "a", "verdict": "pass"}
        >>> [found] = CheckRow("", "rubric", 1.0, True, "", None, {"votes": [vote]}).rubrics
        >>> found.passed, found.question
        (True, '')
        >>> inner = {"votes": [vote], "passed": True, "question": "5f", "negated": True}
        >>> [found] = CheckRow("", "not", 0.0, False, "", None, {"judged": [inner]}).rubrics
        >>> found.passed, found.question
        (True, '5f')
        """
        if "judged" in self.detail:
            return convert(self.detail["judged"], list[JudgedRubric])
        votes = self.detail.get("votes")
        return [JudgedRubric(convert(votes, list[JudgeVote]), self.passed)] if votes else []


class Differing(Struct, frozen=True):
    """One place where an output is not the expected object."""

    path: str = ""
    expected: Any = None
    actual: Any = None
    type_changed: bool = False
    value: Any = None
    """What is there too often or too rarely."""
    expected_times: int = 0
    actual_times: int = 0


class DifferencesFound(Struct, frozen=True):
    """How an output differs from the expected object."""

    changed: list[Differing] = []
    missing: list[Differing] = []
    unexpected: list[Differing] = []
    repetitions: list[Differing] = []
    omitted: int = 0
    """Differences that are not kept."""
    note: str | None = None
    """How they were found, where that matters."""


class TokenUsage(Struct, frozen=True):
    """The tokens of a call, as far as the provider counts them."""

    prompt_tokens: AnyCount | None
    completion_tokens: AnyCount | None
    total_tokens: AnyCount | None
    cached_input_tokens: Annotated[
        AnyCount | None, Meta(description="Of those of the question: what the provider had in its cache.")
    ] = None
    cache_write_tokens: Annotated[
        AnyCount | None, Meta(description="Of those of the question: what the provider put into its cache.")
    ] = None
    reasoning_tokens: Annotated[
        AnyCount | None, Meta(description="Of those of the answer: what was thought and not said.")
    ] = None
    service_tier: Annotated[str, Meta(description="The tier that answered, in the provider's word.")] = ""


NO_USAGE: Final = TokenUsage(None, None, None)


class _Metrics(Struct, frozen=True):
    rouge_l: float | None = None
    first_token_ms: int | None = None


class RepeatOf(Struct, frozen=True, rename={"needed": "pass"}):
    """How many answers to a case were asked for at most, and how many must pass."""

    times: AnyCount
    needed: AnyCount


class CaseResult(Struct, frozen=True, kw_only=True):
    """How one output of a model fared."""

    model: str
    case_index: AnyCount
    case_id: str | None
    repeat_index: AnyCount
    status: CaseStatus | None
    passed: bool
    stages: list[StageEntry]
    decided_by: str | None
    message: str
    differences: dict[str, Any] | None
    raw_output: str | None
    parsed_output: Any
    metrics: dict[str, Any]
    used_fuzzy_match: bool
    freeform: bool
    token_usage: TokenUsage | None
    reasoning: Annotated[
        str,
        Meta(
            description="The model's reasoning before its answer, as far as it is shown; never judged.",
            extra_json_schema={"maxLength": REASONING_CHARS},
        ),
    ] = ""
    prompt_id: Annotated[
        str | None, Meta(description="The prompt that was rendered; null without prompts.")
    ] = None
    vars: dict[str, Any] = {}
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    weight: Annotated[
        float,
        Meta(
            description="How much the case counts in mean scores, where that is not 1.",
            extra_json_schema={"minimum": 0},
        ),
    ] = 1.0
    repeat: Annotated[
        RepeatOf | UnsetType,
        Meta(description="Of cases whose answers count together; only there where it was."),
    ] = UNSET
    score: Annotated[
        float | None, Meta(description="The weighted mean of the scores of the checks; null without any.")
    ] = None
    checks: list[CheckRow] = []
    tool_calls: Annotated[
        list[dict[str, Any]], Meta(description="What the model called, in OpenAI's form.")
    ] = []
    refusal: Annotated[
        str, Meta(description="Why the model does not answer, in the provider's field for that.")
    ] = ""
    finish_reason: str = ""
    is_json: Annotated[
        bool | UnsetType,
        Meta(description="Whether the answer was an object or a list, and no text; only there where it was."),
    ] = UNSET
    checked_output: Annotated[
        str | UnsetType,
        Meta(description="What was checked in place of the answer; only there where a transform made it."),
    ] = UNSET

    @property
    def failed_checks(self) -> list[CheckRow]:
        """The checks that did not pass."""
        return [row for row in self.checks if row.passed is False]

    @property
    def differing(self) -> DifferencesFound:
        """How the output differs from the expected object."""
        return convert(self.differences, DifferencesFound) if self.differences else NO_DIFFERENCES

    @property
    def measured(self) -> _Metrics:
        """What was measured of the output, with the names of the document."""
        return convert(self.metrics, _Metrics) if self.metrics else _NO_METRICS

    @property
    def usage(self) -> TokenUsage:
        """The tokens of its call."""
        return self.token_usage or NO_USAGE

    @property
    def text(self) -> str:
        """The calls of the answer and its text, or its refusal."""
        return answer_text(self.raw_output, self.refusal, self.tool_calls)


class CaseLine(Line, kw_only=True, frozen=True):
    """A line of a cases run as .jsonl, and of results --format jsonl.

    Of an item without a result (skipped), result is null.
    """

    item_id: Annotated[str, Meta(pattern="^case-[0-9]+$")]
    kind: Literal["cases"]
    outcome: Literal["passed", "failed", "error", "skipped"]
    reason: Annotated[
        str | UnsetType,
        Meta(
            description="Why it was not needed: the verdict on its case was certain. Only there where it was."
        ),
    ] = UNSET
    messages: Annotated[
        list[dict[str, Any]],
        Meta(
            description="What its model was sent, in OpenAI's form; images as `sha256:` and the hash of the"
            " file."
        ),
    ]
    input_hash: Annotated[
        str, Meta(description="Of what decides the answer to the case; empty in runs that did not store it.")
    ]
    expectation_hash: Annotated[str, Meta(description="Of what decides the verdict on an answer.")]
    result: CaseResult | None


NO_DIFFERENCES: Final = DifferencesFound()
_NO_METRICS: Final = _Metrics()
