"""Totals a cases run from its rows: statuses, and for each model verdicts, latency, tokens and cost."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from producer.aggregate.queries import percentile_intervals, percentiles
from producer.aggregate.related import ByCase, counts_of, outcome_effects, outcome_rates
from producer.aggregate.statistics import Z_95, wilson
from producer.cases.case_groups import CaseGroups, ScoreMean, add_score
from producer.cases.documents import CasesSummary, CostPerCase, GitState, ModelFigures, ModelRates
from producer.cases.judging import Judging
from producer.cases.repeats import Repeats, Verdicts
from producer.cases.report.opened_rows import CHECK_UNAVAILABLE, OpenedCase, opened
from producer.cases.reviewed import ReviewTotals
from producer.documents import Counts
from producer.review.answer_labels import NO_REVIEW, Review
from shared.codecs.item_rows import CACHED, ItemRow
from shared.contracts.case_run import CaseRun
from shared.contracts.case_vocabulary import CaseStatus
from shared.names import Outcome
from shared.runs import RunInfo
from shared.upstream.failure_reasons import FailureReason

NOT_REACHED: Final = frozenset({FailureReason.ABSENT.model_code, FailureReason.UNREACHABLE.model_code})
"""Error codes that suggest a wrong address of a model."""


class CaseCosts:
    """Mean cost of all answers to a case; the answers to one case have to be added consecutively."""

    def __init__(self) -> None:
        self._case: Hashable = None
        self._case_sum = self._sum = self._squares = 0.0
        self._n = 0

    def add(self, case: Hashable, cost_usd: float) -> None:
        """Counts what an answer to a case has cost."""
        if case != self._case:
            self._close()
            self._case = case
        self._case_sum += cost_usd

    def summary(self) -> CostPerCase | None:
        """Returns the mean with its interval by normal approximation; None without cases.

        >>> costs = CaseCosts()
        >>> for case, usd in ((0, 1.0), (0, 1.0), (1, 4.0), (2, 3.0)):
        ...     costs.add(case, usd)
        >>> found = costs.summary()
        >>> found.value, round(found.low, 3), round(found.high, 3), found.n
        (3.0, 1.868, 4.132, 3)
        """
        self._close()
        if not self._n:
            return None
        mean = self._sum / self._n
        if self._n == 1:
            return CostPerCase(mean, None, None, 1)
        error = sqrt(max(0.0, self._squares / self._n - mean**2) / (self._n - 1))
        return CostPerCase(mean, max(0.0, mean - Z_95 * error), mean + Z_95 * error, self._n)

    def _close(self) -> None:
        """Adds the current case to the sums."""
        if self._case is not None:
            self._n += 1
            self._sum += self._case_sum
            self._squares += self._case_sum**2
        self._case, self._case_sum = None, 0.0


@dataclass(slots=True)
class ModelTotals:
    """Totals of one model."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    """Items by outcome."""
    times_ms: Counter[int] = field(default_factory=Counter)
    """Latencies of answers that were not cached."""
    first_times_ms: Counter[int] = field(default_factory=Counter)
    """Latencies of cached answers, when they were first given."""
    first_tokens_ms: Counter[int] = field(default_factory=Counter)
    """Times to the first token of answers that were not cached."""
    case_costs: CaseCosts = field(default_factory=CaseCosts)
    """Costs of cases."""
    cost_usd: float = 0.0
    """The known part of its cost, including judges and cached answers."""
    cost_unknown: int = 0
    """Items with an answer whose cost is unknown."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_input_tokens: int | None = None
    """None: no provider stated how much of the input came from its cache."""
    timed_tokens: int = 0
    """Tokens of the answers in `times_ms`."""
    cached: int = 0
    """Answers from the cache."""
    fuzzy: int = 0
    """Cases that passed only because of the judge."""
    rouge: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Sum and number of ROUGE-L scores."""
    by_case: ByCase = field(default_factory=ByCase)
    """Outcomes by case, which several prompts and repeats have in common."""
    repeats: Repeats = field(default_factory=Repeats)
    """Verdicts on repeated answers to the same case."""
    verdicts: Verdicts = field(default_factory=Verdicts)
    """Cases by the verdict on their answers."""
    scores: ScoreMean = field(default_factory=ScoreMean)
    """Scores of cases with checks."""

    def add(self, case: OpenedCase) -> None:
        """Counts one row."""
        row, result = case.row, case.result
        self.outcomes[row.outcome] += 1
        self.by_case.add(case.item.case, counts_of(row.outcome))
        self.verdicts.add(case.item, row.outcome, is_needed=not case.is_not_needed)
        if case.is_not_needed:
            self.repeats.leave_out()
        if row.outcome is not Outcome.SKIPPED:
            self.repeats.add((case.item.prompt_id, case.item.case), passed=row.outcome is Outcome.PASSED)
        if result is None or not case.is_answered:
            return
        if row.cost_usd is None:
            self.cost_unknown += 1
        else:
            self.cost_usd += row.cost_usd
            self.case_costs.add((case.item.prompt_id, case.item.case), row.cost_usd)
        prompt, completion = result.usage.prompt_tokens or 0, result.usage.completion_tokens or 0
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        if result.usage.cached_input_tokens is not None:
            self.cached_input_tokens = (self.cached_input_tokens or 0) + result.usage.cached_input_tokens
        if row.outcome is Outcome.ERROR:
            return
        add_score(self.scores, case)
        is_cached = CACHED in row.code
        self.cached += is_cached
        if row.latency_ms is not None:
            (self.first_times_ms if is_cached else self.times_ms)[row.latency_ms] += 1
            self.timed_tokens += 0 if is_cached else prompt + completion
        self.fuzzy += result.used_fuzzy_match
        score, first_ms = result.measured.rouge_l, result.measured.first_token_ms
        if first_ms is not None and not is_cached:
            self.first_tokens_ms[first_ms] += 1
        if score is not None:
            self.rouge[0] += score
            self.rouge[1] += 1

    def summary(self, model: str, *, has_quorums: bool) -> ModelFigures:
        """Returns the figures of the model for the summary.

        Args:
            model: its name.
            has_quorums: whether answers to a case count together.
        """
        passed, failed = self.outcomes[Outcome.PASSED], self.outcomes[Outcome.FAILED]
        judged = passed + failed + self.outcomes[Outcome.ERROR]
        seconds = self._seconds()
        effects = outcome_effects(self.by_case)
        return ModelFigures(
            model=model,
            total=self.outcomes.total(),
            passed=passed,
            failed=failed,
            errors=self.outcomes[Outcome.ERROR],
            skipped=self.outcomes[Outcome.SKIPPED],
            pass_rate=passed / judged if passed + failed else None,
            rates=ModelRates(
                wilson(passed, judged, effect=effects.pass_rate_of_judged).rounded(),
                wilson(passed, passed + failed, effect=effects.pass_rate_of_answered).rounded(),
            ),
            repeats=self.repeats.summary(),
            latency_ms=percentiles(self.times_ms),
            latency_n=self.times_ms.total(),
            cached_latency_ms=percentiles(self.first_times_ms),
            throughput_tokens_per_s=self.timed_tokens / seconds if seconds else None,
            cost_usd=None if self.cost_unknown else self.cost_usd,
            known_cost_usd=self.cost_usd,
            cost_unknown=self.cost_unknown,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cached_input_tokens=UNSET if self.cached_input_tokens is None else self.cached_input_tokens,
            cached=self.cached,
            fuzzy_matches=self.fuzzy,
            rouge_l_mean=self.rouge[0] / self.rouge[1] if self.rouge[1] else None,
            score=self.scores.summary() or UNSET,
            case_verdicts=self.verdicts.summary() if has_quorums else UNSET,
            latency_intervals=percentile_intervals(self.times_ms),
            first_token_ms=percentiles(self.first_tokens_ms),
            first_token_n=self.first_tokens_ms.total(),
            first_token_intervals=percentile_intervals(self.first_tokens_ms),
            cost_per_case=None if self.cost_unknown else self.case_costs.summary(),
        )

    def _seconds(self) -> float:
        """Returns the sum of all latencies."""
        return sum(time * number for time, number in self.times_ms.items()) / 1000


class CaseTotals:
    """Counts rows; memory grows with the number of models, of cases and of different latencies only."""

    def __init__(self, review: Review = NO_REVIEW) -> None:
        self._reviewed = ReviewTotals(review)
        self._models: dict[str, ModelTotals] = {}
        self._statuses = Counter[str]()
        self._errors = Counter[str]()
        self._judging = Judging()
        self._groups = CaseGroups()
        self._by_case = ByCase()
        self._verdicts = Verdicts()
        self._retried = 0
        self._not_reached: dict[str, str] = {}

    def add(self, page: Sequence[ItemRow]) -> None:
        """Counts some rows."""
        for case in map(self._reviewed.add, opened(page)):
            self._models.setdefault(case.item.model, ModelTotals()).add(case)
            self._groups.add(case)
            self._verdicts.add(case.item, case.row.outcome, is_needed=not case.is_not_needed)
            self._by_case.add(case.item.case, counts_of(case.row.outcome))
            self._retried += case.row.attempts > 1
            if case.code:
                self._errors[case.code] += 1
                self._add_unreached(case)
            elif case.result is not None:
                self._statuses[case.status] += 1
                self._judging.add(case, case.result)

    def counts(self, total: int) -> Counts:
        """Returns rows by outcome, and the size of the run.

        >>> CaseTotals().counts(3).total
        3
        """
        return Counts.of(sum((each.outcomes for each in self._models.values()), Counter[Outcome]()), total)

    def summary(self, info: RunInfo) -> CasesSummary:
        """Returns the figures with the settings of the run, and the models as the run names them."""
        run = CaseRun.from_snapshot(info.snapshot)
        counts, groups = self.counts(info.total), self._groups
        has_quorums = run.has_quorums
        models = [totals.summary(model, has_quorums=has_quorums) for model, totals in self._models.items()]
        known_usd = sum(model.known_cost_usd for model in models)
        return CasesSummary(
            models=models,
            pass_rate=counts.passed / (counts.answered + counts.error) if counts.answered else None,
            statuses={status.value: self._statuses[status.value] for status in CaseStatus},
            cost_usd=None if any(model.cost_unknown for model in models) else known_usd,
            known_cost_usd=known_usd,
            judge=replace(self._judging.summary(), review=self._reviewed.summary()),
            retried=self._retried,
            errors=dict(self._errors.most_common()),
            prompts=groups.prompts() or UNSET,
            prompts_by_model=groups.prompts_by_model() or UNSET,
            tags=groups.tags() or UNSET,
            checks=groups.checks() or UNSET,
            not_reached=self._unreached() or UNSET,
            case_verdicts=self._verdicts.summary() if has_quorums else UNSET,
            source=info.source,
            duration_s=info.duration_s,
            name=run.name,
            git=GitState.of(info.snapshot),
            mode=run.mode,
            cases=run.cases,
            repeat=run.repeat,
            paid_usd=info.paid_usd,
            models_asked=list(run.models),
            prompts_asked=list(run.prompts) or UNSET,
            judge_model=run.judge_model,
            judge_models=list(run.judges),
            concurrency=run.concurrency,
            cases_per_s=info.per_s,
            rates=outcome_rates(counts, outcome_effects(self._by_case)),
        )

    def _add_unreached(self, case: OpenedCase) -> None:
        """Keeps the first error of each model that was not reached, and of the checks."""
        if case.code in NOT_REACHED:
            self._not_reached.setdefault(case.item.model, case.message)
        elif case.code == CHECK_UNAVAILABLE:
            self._not_reached.setdefault("", case.message)

    def _unreached(self) -> dict[str, str]:
        """Returns the first error of each model or judge that was not reached."""
        judges = self._judging.not_reached.items()
        return {name: f"judge {name} could not be asked: {why}" for name, why in judges} | self._not_reached

    def misses(self) -> bool:
        """Returns whether a case failed."""
        return self._verdicts.has_failed
