"""What Proctor prints and writes of test cases: the summary with its judges, result lines, the report."""

from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, RootModel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from producer.schemas.parts import (
    Count,
    Fraction,
    Line,
    OutcomeRates,
    Part,
    Percentiles,
    Rate,
    RunFigures,
    RunHead,
)
from shared.contracts.case_vocabulary import CaseStatus, Stage
from shared.contracts.mementos import OptionalKey
from shared.names import Outcome, RunState
from worker.validation.case_verdict import StageOutcome


class Repeats(Part):
    """What asking each case more than once shows."""

    repeats: Annotated[int, Field(ge=2)]
    cases: Count
    complete_cases: Count
    mean: Fraction
    standard_error: float | None
    pass_at_k: dict[str, Fraction]
    pass_hat_k: dict[str, Fraction]
    flaky: Count
    disagreement: Fraction


class ModelRates(Part):
    """Shares of one model's items."""

    pass_rate: Rate
    pass_rate_of_answered: Rate
    """Of the items that passed or failed; those that ended in error have no answer."""


class ScoreMean(Part):
    """A mean score with its 95% interval; scores of one case are taken as related."""

    value: Fraction
    low: Fraction | None
    """Null where there is only one case."""
    high: Fraction | None
    standard_error: float | None
    n: Count


class ModelFigures(Part):
    """The figures of one model."""

    model: str
    total: Count
    passed: Count
    failed: Count
    errors: Count
    skipped: Count
    pass_rate: Fraction | None
    """Of the items that passed, failed or ended in error; null without an answer."""
    rates: ModelRates
    repeats: Repeats | None
    latency_ms: Percentiles
    latency_n: Count
    cached_latency_ms: Percentiles
    throughput_tokens_per_s: float | None
    cost_usd: float | None
    known_cost_usd: float
    cost_unknown: Count
    prompt_tokens: Count
    completion_tokens: Count
    cached: Count
    fuzzy_matches: Count
    rouge_l_mean: float | None
    score: OptionalKey[ScoreMean] = None
    """Only of models with cases that have checks."""


class Consistency(Part):
    """How often a judge repeats its verdict on the same question."""

    n: Count
    same: Rate


class Calibration(Part):
    """How verdicts compare with labels that people gave."""

    answers: OptionalKey[Count] = None
    few: OptionalKey[bool] = None
    n: Count
    true_passed: Count
    false_passed: Count
    true_failed: Count
    false_failed: Count
    accuracy: Rate | None
    precision: Rate | None
    recall: Rate | None
    specificity: Rate | None
    balanced_accuracy: Rate | None


class JudgeFigures(Part):
    """The figures of one judge."""

    model: str
    votes: Count
    passed: Count
    failed: Count
    unclear: Count
    unreached: Count
    cost_usd: float
    with_panel: Rate | None
    consistency: Consistency | None
    calibration: Calibration | None


class Agreement(Part):
    """How far the judges of a panel agree."""

    judges: Count
    n: Count
    unanimous: Rate | None
    krippendorff_alpha: float | None


class Judging(Part):
    """What the judges of a run found, and how far they can be trusted."""

    calls: Count
    cost_usd: float
    unreached: Count
    judged: Count
    pass_rate: Rate | None
    judges: tuple[JudgeFigures, ...]
    agreement: Agreement | None
    consistency: Consistency | None
    labelled: Count
    calibration: Calibration | None
    corrected_pass_rate: Rate | None


class GitState(Part):
    """Where a git repository stands."""

    commit_hash: str
    commit_short: OptionalKey[str] = None
    branch: str | None
    is_dirty: OptionalKey[bool] = None
    tag: str | None = None


class Statuses(RootModel[dict[str, Count]]):
    """Validated outputs by status."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Returns an object with a required key for each status, so that a new one is declared once."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        count = schema["additionalProperties"]
        return {
            "type": "object",
            "properties": {str(status): dict(count) for status in CaseStatus},
            "required": [str(status) for status in CaseStatus],
            "title": schema["title"],
            "description": schema["description"],
            "additionalProperties": False,
        }


class GroupFigures(Part):
    """The figures of some items."""

    total: Count
    passed: Count
    failed: Count
    errors: Count
    skipped: Count
    pass_rate: Rate
    score: ScoreMean | None
    cost_usd: float | None
    known_cost_usd: float


class PromptFigures(GroupFigures):
    """The figures of one prompt."""

    prompt: str


class PromptModelFigures(PromptFigures):
    """The figures of one prompt with one model."""

    model: str


class TagFigures(GroupFigures):
    """The figures of the cases with one tag."""

    tag: str


class CheckFigures(Part):
    """The figures of one check, over all cases that have it."""

    name: str
    check: str
    passed: Count
    failed: Count
    not_asked: Count
    pass_rate: Rate
    score: ScoreMean | None
    known_cost_usd: float
    judge: Judging | None
    """Of a rubric: how far its judges can be trusted."""


class CasesSummary(RunFigures):
    """The figures of a cases run."""

    git: GitState | None
    """Where the configuration stood when it was submitted; null outside of a git repository."""
    judge_models: tuple[str, ...]
    models: tuple[ModelFigures, ...]
    pass_rate: Fraction | None
    """Of all items that were answered or ended in an error; null without an answer."""
    statuses: Statuses
    cost_usd: float | None
    known_cost_usd: float
    paid_usd: float | None
    """Cost of the calls that the run made itself, whatever became of their cases; null without any."""
    judge: Judging
    name: str
    mode: str
    cases: Count
    repeat: Count
    models_asked: tuple[str, ...]
    prompts_asked: OptionalKey[tuple[str, ...]] = None
    judge_model: str | None
    concurrency: Count
    cases_per_s: float | None
    rates: OutcomeRates
    prompts: OptionalKey[tuple[PromptFigures, ...]] = None
    """Only of runs with prompts, as the next."""
    prompts_by_model: OptionalKey[tuple[PromptModelFigures, ...]] = None
    tags: OptionalKey[tuple[TagFigures, ...]] = None
    """Only of runs with tags."""
    checks: OptionalKey[tuple[CheckFigures, ...]] = None
    """Only of runs with checks."""
    not_reached: OptionalKey[dict[str, str]] = None
    """The first error of each model or judge that could not be reached; of checks under an empty name."""


class CasesRun(RunHead):
    """The document of a cases run."""

    kind: Literal["cases"]
    state: RunState
    summary: CasesSummary


class StageResult(Part):
    """What one stage of the validation found."""

    stage: Stage
    outcome: StageOutcome
    reason: str
    detail: dict[str, Any]


class TokenUsage(Part):
    """The tokens of a call, as far as the provider counts them."""

    prompt_tokens: Count | None
    completion_tokens: Count | None
    total_tokens: Count | None


class CheckRow(Part):
    """How one check fared."""

    name: str
    check: str
    score: Annotated[float, Field(ge=0, le=1)] | None
    """Null: not asked, or nothing to look at."""
    passed: bool | None
    reason: str
    cost_usd: float | None
    detail: dict[str, Any]
    at_least: Annotated[float, Field(ge=0, le=1)] | None = None
    """The score from which it passes; null: what the kind of check says."""
    is_open: bool = False
    """Whether it was still to be asked when the case ended; only there where it was."""


class CaseResult(Part):
    """How one output of a model fared."""

    model: str
    case_index: Count
    case_id: str | None
    repeat_index: Count
    status: CaseStatus | None
    passed: bool
    stages: tuple[StageResult, ...]
    decided_by: str | None
    message: str
    differences: dict[str, Any] | None
    raw_output: str | None
    parsed_output: Any
    metrics: dict[str, Any]
    used_fuzzy_match: bool
    freeform: bool
    token_usage: TokenUsage | None
    reasoning: OptionalKey[Annotated[str, Field(max_length=20_000)]] = None
    """The model's reasoning before its answer, as far as it is shown; never judged."""
    prompt_id: str | None = None
    """The prompt that was rendered; null without prompts."""
    vars: OptionalKey[dict[str, Any]] = None
    tags: OptionalKey[tuple[str, ...]] = None
    metadata: OptionalKey[dict[str, Any]] = None
    weight: OptionalKey[Annotated[float, Field(ge=0)]] = None
    """How much the case counts in mean scores, where that is not 1."""
    score: float | None = None
    """The weighted mean of the scores of the checks; null without any."""
    checks: OptionalKey[tuple[CheckRow, ...]] = None
    tool_calls: OptionalKey[tuple[dict[str, Any], ...]] = None
    """What the model called, in OpenAI's form."""
    refusal: OptionalKey[str] = None
    """Why the model does not answer, in the provider's field for that."""
    finish_reason: OptionalKey[str] = None


class CaseLine(Line):
    """A line of a cases run as .jsonl, and of results --format jsonl.

    Of an item without a result (skipped), result is null.
    """

    item_id: Annotated[str, Field(pattern="^case-[0-9]+$")]
    kind: Literal["cases"]
    outcome: Literal[Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED]
    messages: tuple[dict[str, Any], ...]
    """What its model was sent, in OpenAI's form; images as `sha256:` and the hash of the file."""
    result: CaseResult | None


class CasesReport(CasesRun):
    """A cases run as .json: the document of run, and every result."""

    results: tuple[CaseLine, ...]
