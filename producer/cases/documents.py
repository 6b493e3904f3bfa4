"""The types of the document of a cases run: its summary with models, groups, checks and judges."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, convert

from producer.documents import (
    Count,
    Counts,
    Fraction,
    OutcomeRates,
    Part,
    PercentileIntervals,
    Percentiles,
    Rate,
    RunDocument,
    tally_of,
)
from shared.contracts.case_run import FREEFORM, GIT_KEY
from shared.contracts.case_vocabulary import CaseStatus


class RepeatFigures(Part, frozen=True):
    """What asking each case more than once shows."""

    repeats: Annotated[int, Meta(ge=2)]
    cases: Count
    complete_cases: Count
    mean: Fraction
    standard_error: float | None
    pass_at_k: dict[str, Fraction]
    pass_hat_k: dict[str, Fraction]
    flaky: Count
    disagreement: Fraction


class CaseVerdicts(Part, frozen=True):
    """Cases by verdict, each as put to a model by a prompt; without a number of passes, by their answers."""

    counts: Counts
    pass_rate: Annotated[Rate, Meta(description="Of those that passed, failed or ended in error.")]
    not_needed: Annotated[
        Count, Meta(description="Answers that were not asked for, because the verdict was certain without.")
    ]


class ModelRates(Part, frozen=True):
    """Shares of one model's items."""

    pass_rate: Rate
    pass_rate_of_answered: Annotated[
        Rate,
        Meta(description="Of the items that passed or failed; those that ended in error have no answer."),
    ]


class CostPerCase(Part, frozen=True):
    """The mean cost in US dollars of all answers to a case, judges included, with its 95% interval."""

    value: float
    low: Annotated[float | None, Meta(description="Null where there is only one case.")]
    high: float | None
    n: Count


class MeanScore(Part, frozen=True):
    """A mean score with its 95% interval; scores of one case are taken as related."""

    value: Fraction
    low: Annotated[Fraction | None, Meta(description="Null where there is only one case.")]
    high: Fraction | None
    standard_error: float | None
    n: Count


class ModelFigures(Part, frozen=True):
    """The figures of one model."""

    model: str
    total: Count
    passed: Count
    failed: Count
    errors: Count
    skipped: Count
    pass_rate: Annotated[
        Fraction | None,
        Meta(description="Of the items that passed, failed or ended in error; null without an answer."),
    ]
    rates: ModelRates
    repeats: RepeatFigures | None
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
    score: Annotated[
        MeanScore | UnsetType, Meta(description="Only of models with cases that have checks.")
    ] = UNSET
    case_verdicts: Annotated[
        CaseVerdicts | UnsetType, Meta(description="Only of runs in which answers count together.")
    ] = UNSET
    cached_input_tokens: Annotated[
        Count | UnsetType,
        Meta(description="Prompt tokens that the provider had in its cache; only where it says how many."),
    ] = UNSET
    latency_intervals: PercentileIntervals = PercentileIntervals()
    first_token_ms: Annotated[
        Percentiles,
        Meta(description="Of answers that were streamed and came at the first call, never from the cache."),
    ] = Percentiles()
    first_token_n: Count = 0
    first_token_intervals: PercentileIntervals = PercentileIntervals()
    cost_per_case: CostPerCase | None = None

    @property
    def answers(self) -> int:
        """Items whose answer passed or failed."""
        return self.passed + self.failed

    @property
    def tokens(self) -> int:
        """Tokens of all calls."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def times(self) -> Percentiles:
        """Latencies of its answers; where all are cached, those of their first calls."""
        return self.latency_ms or self.cached_latency_ms


class Consistency(Part, frozen=True):
    """How often a judge repeats its verdict on the same question."""

    n: Count
    same: Rate


class LabelFigures(Part, kw_only=True, frozen=True):
    """How verdicts compare with labels that people gave."""

    n: Count
    answers: Count | UnsetType = UNSET
    few: bool | UnsetType = UNSET
    true_passed: Count
    false_passed: Count
    true_failed: Count
    false_failed: Count
    accuracy: Rate | None
    precision: Rate | None
    recall: Rate | None
    specificity: Rate | None
    balanced_accuracy: Rate | None


class JudgeFigures(Part, frozen=True):
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
    calibration: LabelFigures | None


class Agreement(Part, frozen=True):
    """How far the judges of a panel agree."""

    judges: Count
    n: Count
    unanimous: Rate | None
    krippendorff_alpha: float | None


class ReviewFigures(Part, frozen=True):
    """What people said in a review, and what that changed; see `proctor labels`."""

    reviewers: list[str]
    decided: Annotated[Count, Meta(description="Answers with the verdict of most of their reviewers.")]
    disputed: Annotated[Count, Meta(description="Answers on which reviewers are evenly divided.")]
    shared: Annotated[Count, Meta(description="Answers that at least two reviewers decided.")]
    kappa: float | None
    added: Annotated[Count, Meta(description="Decided answers to which the file gives no label.")]
    changed: Annotated[Count, Meta(description="Decided answers whose label in the file is another.")]
    calibration_before: Annotated[
        LabelFigures | None,
        Meta(description="How the judges compare with the labels of the file alone."),
    ]


class JudgingFigures(Part, frozen=True):
    """What the judges of a run found, and how far they can be trusted."""

    calls: Count
    cost_usd: float
    unreached: Count
    judged: Count
    pass_rate: Rate | None
    judges: list[JudgeFigures]
    agreement: Agreement | None
    consistency: Consistency | None
    labelled: Count
    calibration: LabelFigures | None
    corrected_pass_rate: Rate | None
    review: ReviewFigures | UnsetType = UNSET


class GitState(Struct, frozen=True, kw_only=True):
    """Where a git repository stands."""

    commit_hash: str
    commit_short: str | UnsetType = UNSET
    branch: str | None
    is_dirty: bool | UnsetType = UNSET
    tag: str | UnsetType | None = UNSET

    @classmethod
    def of(cls, snapshot: Mapping[str, Any]) -> "GitState | None":
        """Reads where the configuration of a run stood; None outside of a git repository."""
        return convert(snapshot.get(GIT_KEY), cls | None)


class GroupFigures(Part, kw_only=True, frozen=True):
    """The figures of some items."""

    total: Count
    passed: Count
    failed: Count
    errors: Count
    skipped: Count
    pass_rate: Rate
    score: MeanScore | None
    cost_usd: float | None
    known_cost_usd: float


class PromptFigures(GroupFigures, frozen=True):
    """The figures of one prompt."""

    prompt: str


class PromptModelFigures(GroupFigures, frozen=True):
    """The figures of one prompt with one model."""

    model: str
    prompt: str


class TagFigures(GroupFigures, frozen=True):
    """The figures of the cases with one tag."""

    tag: str


class CheckFigures(Part, frozen=True):
    """The figures of one check, over all cases that have it."""

    name: str
    check: str
    passed: Count
    failed: Count
    not_asked: Count
    pass_rate: Rate
    score: MeanScore | None
    known_cost_usd: float
    judge: Annotated[
        JudgingFigures | None, Meta(description="Of a rubric: how far its judges can be trusted.")
    ]


class CasesSummary(Part, kw_only=True, frozen=True):
    """The figures of a cases run."""

    models: list[ModelFigures]
    pass_rate: Annotated[
        Fraction | None,
        Meta(description="Of all items that were answered or ended in an error; null without an answer."),
    ]
    statuses: Annotated[
        dict[str, int],
        tally_of([status.value for status in CaseStatus]),
        Meta(description="Validated outputs by status."),
    ]
    cost_usd: float | None
    known_cost_usd: float
    judge: JudgingFigures
    retried: Count
    errors: dict[str, Count]
    prompts: Annotated[
        list[PromptFigures] | UnsetType, Meta(description="Only of runs with prompts, as the next.")
    ] = UNSET
    prompts_by_model: list[PromptModelFigures] | UnsetType = UNSET
    tags: Annotated[list[TagFigures] | UnsetType, Meta(description="Only of runs with tags.")] = UNSET
    checks: Annotated[list[CheckFigures] | UnsetType, Meta(description="Only of runs with checks.")] = UNSET
    not_reached: Annotated[
        dict[str, str] | UnsetType,
        Meta(
            description="The first error of each model or judge that could not be reached; of checks under an"
            " empty name."
        ),
    ] = UNSET
    case_verdicts: Annotated[
        CaseVerdicts | UnsetType,
        Meta(description="What verdict, exit code and gates count, where answers to a case count together."),
    ] = UNSET
    source: str
    duration_s: float | None
    name: str
    git: Annotated[
        GitState | None,
        Meta(
            description="Where the configuration stood when it was submitted; null outside of a git"
            " repository."
        ),
    ]
    mode: str
    cases: Count
    repeat: Count
    paid_usd: Annotated[
        float | None,
        Meta(
            description="Cost of the calls that the run made itself, whatever became of their cases; null"
            " without any."
        ),
    ]
    models_asked: list[str]
    prompts_asked: list[str] | UnsetType = UNSET
    judge_model: str | None
    judge_models: list[str]
    concurrency: Count
    cases_per_s: float | None
    rates: OutcomeRates

    @property
    def cached_input_share(self) -> float | None:
        """How much of the input providers had in their caches; None where none of them says."""
        known = [model for model in self.models if model.cached_input_tokens is not UNSET]
        asked = sum(model.prompt_tokens for model in known)
        return sum(model.cached_input_tokens or 0 for model in known) / asked if asked else None

    @property
    def not_needed(self) -> int:
        """Answers that were not asked for, because the verdict on their case was certain."""
        return 0 if self.case_verdicts is UNSET else self.case_verdicts.not_needed

    @property
    def is_freeform(self) -> bool:
        """Whether outputs are only shown: no case has a criterion."""
        return self.mode == FREEFORM


CasesRun = RunDocument[CasesSummary]
"""The document of a cases run."""
