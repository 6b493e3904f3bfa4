"""Tables of a cases run by model, repeat, prompt, tag, check, status and cost; empty where a run has none.

A column is one line: its heading, and the figure of a row. Every format shows it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from msgspec import UnsetType

from producer.cases.documents import (
    CasesRun,
    CasesSummary,
    CheckFigures,
    GroupFigures,
    JudgingFigures,
    MeanScore,
    ModelFigures,
    RepeatFigures,
)
from producer.cases.report.judge_trust import share_of
from producer.cases.report.opened_rows import SKIPPED
from producer.cases.report.wording import NO_VERDICTS, UNKNOWN
from producer.documents import PercentileIntervals, Percentiles, Rate
from producer.report.figures import (
    NONE,
    Cell,
    Column,
    ConfidenceInterval,
    Figure,
    Name,
    ShownIn,
    Table,
    Unit,
    interval_of,
)
from producer.text import plural
from shared.contracts.case_vocabulary import STAGE_TABLE, CaseStatus

PER_ANSWERS: Final = 1_000
"""Answers that a price is given for: the price of one has too many zeros."""
MEANINGS: Final[Mapping[str, str]] = {
    **{row.failure: row.meaning for row in STAGE_TABLE.values()},
    CaseStatus.FAILED_CHECKS: "the stages passed, and a check did not",
}
"""What each status means."""
ONCE: Final = "1"
"""Key of what one try of each case came to."""
SCORE_INTERVAL: Final = "95% interval of the mean score; answers to the same case count as related"


def in_order(summary: CasesSummary) -> list[ModelFigures]:
    """Sorts models: the best first; of a freeform run the fastest, by the 95th percentile.

    Those without an answer come last, equal ones by their names.
    """
    if summary.is_freeform:
        return sorted(summary.models, key=lambda model: (not model.times, model.times.p95, model.model))
    return sorted(
        summary.models, key=lambda model: (model.pass_rate is None, -(model.pass_rate or 0.0), model.model)
    )


def cost_of(model: ModelFigures) -> Figure:
    """Returns what the calls of a model cost, as far as that is known."""
    known = Figure(model.known_cost_usd, Unit.USD) if model.cost_usd is None and model.known_cost_usd else ""
    return Figure(model.cost_usd, Unit.USD, missing=UNKNOWN, note=known and f"at least {known}")


def per_thousand(model: ModelFigures) -> float | None:
    """Returns the price of `PER_ANSWERS` answers."""
    if model.cost_usd is None or not model.answers:
        return None
    return PER_ANSWERS * model.cost_usd / model.answers


def _of_answered(model: ModelFigures) -> Cell:
    """Returns the pass rate of the items with an answer."""
    return Figure(model.rates.pass_rate_of_answered.value if model.answers else None, Unit.SHARE)


def _time(model: ModelFigures, ms: int) -> Figure:
    """Returns a percentile of latencies."""
    return Figure(ms if model.latency_ms else None, Unit.LATENCY_S)


def _first_token(model: ModelFigures, ms: int) -> Figure:
    """Returns a percentile of the times to the first token."""
    return Figure(ms if model.first_token_ms else None, Unit.LATENCY_S)


def _time_interval(intervals: PercentileIntervals, times: Percentiles, n: int) -> Cell:
    """Returns the interval of the 95th percentile of some times."""
    found = intervals.p95
    if isinstance(found, UnsetType) or found.low is None or found.high is None:
        return Figure()
    return ConfidenceInterval(found.low, times.p95, found.high, n, Unit.LATENCY_S)


def _named(word: str) -> Column[Any]:
    """Makes the column of a name."""
    return Column(word.capitalize(), attrgetter(word))


def _rate(rate: Rate, answers: int) -> Figure:
    """Returns a pass rate; of errors alone there is none.

    >>> rate = Rate(0.75, 0.3006, 0.9544, 4)
    >>> str(_rate(rate, 4)), str(_rate(rate, 0)), str(_rate(Rate(0, 0, 0, 0), 0))
    ('75.0%', 'no verdicts', '-')
    """
    if answers:
        return Figure(rate.value, Unit.SHARE)
    return Figure(missing=NO_VERDICTS if rate.n else NONE)


def _mean(score: MeanScore | None) -> Figure:
    """Returns a mean score."""
    return Figure(score.value if score else None, Unit.SCORE)


def _around(score: MeanScore | None) -> Cell:
    """Returns the interval of a mean score; there is none of one case."""
    if score is None or score.low is None or score.high is None:
        return Figure()
    return ConfidenceInterval(score.low, score.value, score.high, score.n, Unit.SCORE)


def _trust(check: CheckFigures, rate_of: Callable[[JudgingFigures], Rate | None]) -> Figure:
    """Returns how far the judges of a check can be trusted, with its number of answers."""
    return share_of(rate_of(check.judge) if check.judge else None)


BESIDE: Final = ShownIn.VERBOSE | ShownIn.MARKDOWN
"""Of tables that a page does not need: it has their figures in other tables, or above its columns."""
Scored = Callable[[Any], MeanScore | None]


def _scores(score_of: Scored) -> Sequence[Column[Any]]:
    """Makes the columns of a mean score."""
    return (
        Column("Mean score", lambda group: _mean(score_of(group))),
        Column("Score interval", lambda group: _around(score_of(group)), spare=7, meaning=SCORE_INTERVAL),
    )


def _rates(answers_of: Callable[[Any], int], errors_of: Callable[[Any], int]) -> Sequence[Column[Any]]:
    """Makes the columns of a pass rate; errors are no verdicts."""

    def passed(group: GroupFigures | CheckFigures) -> Figure:
        whole = answers_of(group) + errors_of(group)
        return Figure(group.passed if whole else None, of=whole)

    return (
        Column("Pass rate", lambda group: _rate(group.pass_rate, answers_of(group))),
        Column(
            "95% interval",
            lambda group: interval_of(group.pass_rate) if answers_of(group) else Figure(),
            spare=12,
        ),
        Column("Passed", passed),
    )


MODEL: Final[Column[ModelFigures]] = Column("Model", lambda model: model.model)
CALLS: Final[Sequence[Column[ModelFigures]]] = (
    Column("Errors", lambda model: Figure(model.errors)),
    Column("Skipped", lambda model: Figure(model.skipped), spare=10),
    Column("P50", lambda model: _time(model, model.latency_ms.p50), spare=8),
    Column("P95", lambda model: _time(model, model.latency_ms.p95)),
    Column(
        "P95 interval",
        lambda model: _time_interval(model.latency_intervals, model.latency_ms, model.latency_n),
        places=ShownIn.MORE,
        meaning="where the 95th percentile lies with 95% confidence; too few answers give no bounds",
    ),
    Column("P99", lambda model: _time(model, model.latency_ms.p99), places=ShownIn.FILES),
    Column("First token P50", lambda model: _first_token(model, model.first_token_ms.p50), spare=9),
    Column("First token P95", lambda model: _first_token(model, model.first_token_ms.p95), spare=1),
    Column(
        "Timed",
        lambda model: Figure(model.latency_n),
        spare=2,
        meaning="answers whose latency is counted; those from the cache have none",
    ),
    Column("Tokens/s", lambda model: Figure(model.throughput_tokens_per_s, Unit.PER_S), spare=11),
    Column("Cost", cost_of),
)
"""Of models in every run."""
RATES: Final[Sequence[Column[ModelFigures]]] = (
    Column("Pass rate", lambda model: Figure(model.pass_rate, Unit.SHARE, missing=NO_VERDICTS)),
    Column(
        "95% interval",
        lambda model: Figure() if model.pass_rate is None else interval_of(model.rates.pass_rate),
        spare=12,
    ),
    Column("Passed", lambda model: Figure(model.passed, of=model.rates.pass_rate.n)),
    *(replace(column, places=ShownIn.PAGE) for column in _scores(lambda model: model.score or None)),
)
"""Of models whose answers are checked."""
OF_ANSWERED: Final[Column[ModelFigures]] = Column("Of answered", _of_answered)
OUTPUTS: Final[Column[ModelFigures]] = Column(
    "Outputs", lambda model: Figure(model.answers), places=ShownIn.FILES
)
"""Of models whose answers are not."""
REPEATS: Final[Sequence[Column[tuple[str, RepeatFigures]]]] = (
    Column("Model", lambda of: of[0]),
    Column("k", lambda of: Figure(of[1].repeats)),
    Column("Mean ± SE", lambda of: Figure(of[1].mean, Unit.SHARE, error=of[1].standard_error)),
    Column("pass@1", lambda of: Figure(of[1].pass_at_k.get(ONCE), Unit.SHARE), places=ShownIn.PAGE),
    Column("pass@k", lambda of: Figure(of[1].pass_at_k.get(str(of[1].repeats)), Unit.SHARE)),
    Column("pass^k", lambda of: Figure(of[1].pass_hat_k.get(str(of[1].repeats)), Unit.SHARE)),
    Column("Flaky", lambda of: Figure(of[1].flaky, of=of[1].cases)),
    Column("Disagreement", lambda of: Figure(of[1].disagreement, Unit.SHARE), places=ShownIn.PAGE),
)
"""The standard error takes repeats of a case as related, so it is by case."""
COSTS: Final[Sequence[Column[ModelFigures]]] = (
    MODEL,
    Column("Cost", cost_of),
    Column(
        "Per case",
        lambda model: Figure(model.cost_per_case.value if model.cost_per_case else None, Unit.USD),
        meaning="all answers to a case, judges included",
    ),
    Column(
        f"Per {PER_ANSWERS:,} answers", lambda model: Figure(per_thousand(model), Unit.USD, missing=UNKNOWN)
    ),
    Column("Prompt tokens", lambda model: Figure(model.prompt_tokens)),
    Column("Completion tokens", lambda model: Figure(model.completion_tokens)),
    Column("Cached", lambda model: Figure(model.cached)),
)
OUTCOMES: Final[Sequence[Column[GroupFigures]]] = (
    *_rates(lambda group: group.passed + group.failed, lambda group: group.errors),
    Column("Errors", lambda group: Figure(group.errors)),
    *_scores(lambda group: group.score),
    Column("Cost", lambda group: Figure(group.cost_usd, Unit.USD, missing=UNKNOWN)),
)
"""Of groups of items."""
SCORED: Final[Column[Any]] = Column(
    "Scored", lambda model: Figure(model.score.n), spare=2, meaning="answers with a score"
)
CHECKS: Final[Sequence[Column[CheckFigures]]] = (
    Column("Check", lambda check: check.name),
    *_rates(lambda check: check.passed + check.failed, lambda _: 0),
    Column(
        "Not asked",
        lambda check: Figure(check.not_asked),
        spare=9,
        meaning="checks that call a model are not asked once another check has failed the case",
    ),
    *_scores(lambda check: check.score),
    Column(
        "Judged",
        lambda check: Figure(check.judge.judged if check.judge else None),
        spare=6,
        meaning="answers that the judges of the check scored",
    ),
    Column(
        "Consistent",
        lambda check: _trust(check, lambda judge: judge.consistency.same if judge.consistency else None),
        spare=3,
        meaning="cases answered more than once whose answers the judges decided alike",
    ),
    Column(
        "Unanimous",
        lambda check: _trust(check, lambda judge: judge.agreement.unanimous if judge.agreement else None),
        spare=4,
        meaning="answers on which all judges of the panel agreed",
    ),
    Column(
        "Agrees with labels",
        lambda check: _trust(check, lambda judge: judge.calibration.accuracy if judge.calibration else None),
        spare=5,
        meaning="answers with a label on which the judges decided as people did",
    ),
)
"""Of checks, with how far the judges of a rubric can be trusted, beside the rate that they made."""


def models_table(summary: CasesSummary) -> Table:
    """Makes a row for each model; where items ended in error, also with the rate of the others."""
    columns = [MODEL, OUTPUTS] if summary.is_freeform else [MODEL, *RATES]
    if not summary.is_freeform and any(model.errors and model.answers for model in summary.models):
        columns.insert(2, OF_ANSWERED)
    cached = sum(model.cached for model in summary.models)
    note = f"{plural(cached, 'answer')} from the cache: the latency beside one is that of its first call,"
    table = Table(
        title="Models by latency" if summary.is_freeform else "Models by pass rate",
        columns=[*columns, *CALLS],
        places=ShownIn.EVERYWHERE,
        link="Models",
        note=f"{note} and in no percentile." if cached else "",
    )
    return table.filled(in_order(summary))


def repeats_table(summary: CasesSummary) -> Table:
    """Makes a row for each model with repeated answers; without criteria nothing can be flaky."""
    models = () if summary.is_freeform else in_order(summary)
    note = "pass@k: probability that at least one of k repeats passes; pass^k: that all pass."
    table = Table(
        title="Repeats",
        columns=REPEATS,
        places=ShownIn.EVERYWHERE,
        note=f"{note} The standard error is clustered by case.",
    )
    return table.filled((model.model, model.repeats) for model in models if model.repeats)


def group_tables(summary: CasesSummary) -> list[Table]:
    """Returns the tables of groups, those without rows among them; none of a run without criteria."""
    if summary.is_freeform:
        return []
    by_model = summary.prompts_by_model or () if len(summary.models) > 1 else ()
    model, prompt, tag = (_named(word) for word in ("model", "prompt", "tag"))
    scored = [each for each in in_order(summary) if each.score]
    scores = (model, *_scores(lambda each: each.score), SCORED)
    return [
        Table(title="Scores by model", columns=scores, places=BESIDE).filled(scored),
        Table(title="Prompts", columns=(prompt, *OUTCOMES), places=ShownIn.EVERYWHERE).filled(
            summary.prompts or ()
        ),
        Table(title="Prompts by model", columns=(model, prompt, *OUTCOMES), names=2, places=BESIDE).filled(
            by_model
        ),
        Table(title="Tags", columns=(tag, *OUTCOMES), places=ShownIn.EVERYWHERE).filled(summary.tags or ()),
        Table(title="Checks", columns=CHECKS).filled(summary.checks or ()),
    ]


def statuses_table(document: CasesRun) -> Table:
    """Lists why cases did not pass, with what that means; the most frequent first, failed checks last."""
    summary = document.summary
    skipped = document.counts.skipped - summary.not_needed
    found = [
        (status, number, MEANINGS.get(status, ""))
        for status, number in summary.statuses.items()
        if number and status != CaseStatus.PASSED
    ]
    found += [(code, number, "no output") for code, number in summary.errors.items()]
    if skipped:
        found.append((SKIPPED, skipped, "the run ended first"))
    if summary.is_freeform:
        found = []
    columns: Sequence[Column[tuple[str, int, str]]] = (
        Column("Status", lambda each: Name(each[0], "status")),
        Column("Answers", lambda each: Figure(each[1])),
        Column("Meaning", lambda each: each[2]),
    )
    table = Table(title="Why cases did not pass", columns=columns, places=ShownIn.FILES)
    return table.filled(sorted(found, key=lambda each: (each[0] == CaseStatus.FAILED_CHECKS, -each[1])))


def costs_table(summary: CasesSummary) -> Table:
    """Makes a row for each model, with what it used."""
    judge, note = summary.judge, ""
    if judge.calls:
        spent = Figure(judge.cost_usd, Unit.USD, missing=UNKNOWN)
        note = f"of it for the judge: {spent} in {plural(judge.calls, 'call')}"
    table = Table(title="Cost breakdown", columns=COSTS, places=ShownIn.FILES, link="Cost", note=note)
    return table.filled(in_order(summary))
