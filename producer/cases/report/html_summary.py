"""Prepares what the HTML report of a cases run has around its cases: verdict, figures, tables and charts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from producer.aggregate.statistics import mcnemar
from producer.cases.documents import (
    CasesRun,
    CasesSummary,
    GitState,
    JudgingFigures,
    ModelFigures,
    PromptModelFigures,
)
from producer.cases.report.html_rows import Column, Pairs
from producer.cases.report.html_settings import settings_of
from producer.cases.report.opened_rows import SKIPPED
from producer.cases.report.wording import (
    NO_VERDICTS,
    NONE,
    by_pass_rate,
    dollars,
    in_order,
    outcome,
    p95,
    percent,
    remarks,
    seconds,
)
from producer.report.cells import Size
from producer.report.html.charts import TONES, Point, Series, bars, scatter
from producer.report.html.rendering import markup
from producer.report.html.viewer import Fact, Metric, Page
from producer.report.run_verdict import verdict_with
from producer.tables import cut_middle
from producer.text import bounds, duration, plural
from shared import __version__
from shared.contracts.case_run import CaseRun
from shared.contracts.case_vocabulary import STAGE_TABLE, CaseStatus
from shared.runs import RunInfo

PER_ANSWERS: Final = 1_000
"""Answers that a price is given for: the price of one has too many zeros."""
MEANINGS: Final[Mapping[str, str]] = {
    **{row.failure: row.meaning for row in STAGE_TABLE.values()},
    CaseStatus.FAILED_CHECKS: "the stages passed, and a check did not",
}
COMMIT_CHARS: Final = 12
"""Of the hash of a commit."""
HEAD_CHARS: Final = 40
"""Of a model's name, in the head of a column."""
LEAST_CHARTED: Final = 3
"""Models that a chart says something about; a freeform run has nothing else to say, and a chart of each."""
SIGNIFICANT: Final = 0.05
"""Two-sided level of the test between the two best models."""
IN_VERDICT: Final = ("passed ", "failed ", "not checked ", "errors ", "skipped ")
"""Beginnings of remarks that the verdict has already."""


def page_of(document: CasesRun, info: RunInfo, pairs: Pairs, order: Sequence[Column]) -> Page:
    """Returns the head of the page: verdict, reasons, figures.

    Args:
        document: the run's.
        info: the run.
        pairs: how the first two columns differ.
        order: the columns as they are shown.
    """
    summary, verdict = document.summary, verdict_with(document, outcome(document))
    is_unchecked = summary.is_freeform and verdict.tone == "p"
    return Page(
        kind="cases",
        name=info.title,
        run=document.run_id,
        tone="n" if is_unchecked else verdict.tone,
        verdict=verdict.heading,
        why=[*verdict.clauses, *([] if summary.is_freeform else _leader(summary, pairs, order))],
        meta=_meta(document, info),
        badge="Freeform Mode" if summary.is_freeform else "",
        links=[("Models", "#models"), ("Cost", "#cost"), ("About", "#about")],
        folder="cases/report",
    )


def ordered(summary: CasesSummary, columns: Sequence[Column]) -> list[Column]:
    """Puts columns in order: the best model first, in a freeform run the fastest; prompts as in the run."""
    ranks = {model.model: at for at, model in enumerate(in_order(summary))}
    known = [column for column in columns if column[0] in ranks]
    return sorted(known, key=lambda column: ranks[column[0]])


def metrics_of(document: CasesRun, order: Sequence[Column]) -> list[Metric]:
    """Makes the head of each column: the rate with its interval, latency, cost, failures.

    Args:
        document: the run's.
        order: the columns as they are shown.
    """
    summary, target = document.summary, _target(document)
    models = {model.model: model for model in summary.models}
    by_model = summary.prompts_by_model or () if has_prompts(order) else ()
    pairs = {(each.model, each.prompt): each for each in by_model}
    metrics = [_rated(models[column[0]], pairs.get(column), column) for column in order]
    if summary.is_freeform:
        return [_counted(models[column[0]], metric) for column, metric in zip(order, metrics, strict=True)]
    return [metric if metric.at is None else metric._replace(target=target) for metric in metrics]


def has_prompts(order: Sequence[Column]) -> bool:
    """Returns whether columns differ in their prompts: the id of a single one says nothing."""
    return len({prompt for _, prompt in order}) > 1


def gate_of(document: CasesRun) -> str:
    """Returns the note on the line that a gate draws across the bars; empty without one."""
    target = _target(document)
    return "" if target is None else f"┊ gate {100 * target:g}%"


def _rated(model: ModelFigures, group: PromptModelFigures | None, column: Column) -> Metric:
    """Makes the head of one column: of a model, or of a model with a prompt."""
    found = group or model
    rate = group.pass_rate if group else model.rates.pass_rate
    provider, _, name = column[0].rpartition("/")
    over, name = column if group else (provider, name)
    facts = []
    if not group and model.latency_ms:
        facts.append(Fact("P95", p95(model.latency_ms)))
    facts.append(Fact("cost", dollars(found.cost_usd)))
    if found.failed:
        facts.append(Fact(f"✗ {found.failed:,} failed", tone="f"))
    if found.errors:
        facts.append(Fact(f"! {plural(found.errors, 'error')}", tone="e"))
    metric = Metric(cut_middle(name, HEAD_CHARS), NO_VERDICTS, cut_middle(over, HEAD_CHARS), facts=facts)
    if not found.passed + found.failed:  # errors are no verdicts
        return metric
    interval = f"95%: {' to '.join(bounds(rate, 0))}"
    return metric._replace(
        value=percent(rate.value),
        at=rate.value,
        low=rate.low,
        high=rate.high,
        captions=(interval, f"{found.passed:,} of {rate.n:,}"),
    )


def _counted(model: ModelFigures, metric: Metric) -> Metric:
    """Leaves out the verdicts, because the outputs were not checked."""
    facts = [fact for fact in metric.facts if fact.tone != "f"]
    return metric._replace(value=plural(model.answers, "output"), at=None, captions=("", ""), facts=facts)


class ShownModel(NamedTuple):
    """What the tables show of a model beside its figures."""

    of: ModelFigures
    tone: str
    """Its colour in charts."""

    @property
    def rate(self) -> str:
        """The pass rate."""
        return percent(self.of.pass_rate)

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of the pass rate, in percent."""
        return 100 * self.of.rates.pass_rate.low, 100 * self.of.rates.pass_rate.high

    @property
    def times(self) -> Sequence[tuple[int | str, str]]:
        """Latencies as numbers and as texts."""
        found = self.of.latency_ms
        known = (found.p50, found.p95, found.p99)
        return [(time, seconds(time)) for time in known] if found else [("", NONE)] * len(known)

    @property
    def cost(self) -> str:
        """All of its cost, or that it is unknown."""
        return dollars(self.of.cost_usd)

    @property
    def known(self) -> str:
        """The part that is known of a cost that is not known whole."""
        has_known = self.of.cost_usd is None and self.of.known_cost_usd
        return f"at least {dollars(self.of.known_cost_usd)}" if has_known else ""

    @property
    def per_thousand(self) -> float | None:
        """Price of `PER_ANSWERS` answers."""
        if self.of.cost_usd is None or not self.of.answers:
            return None
        return PER_ANSWERS * self.of.cost_usd / self.of.answers

    @property
    def per_thousand_text(self) -> str:
        """The same as a text."""
        return dollars(self.per_thousand)

    def point(self, y: float, low: float | None = None, high: float | None = None) -> Point:
        """Makes its point in a chart of latencies, from P50 to P95."""
        times = self.of.times
        return Point(self.of.model, times.p50 / 1000, y, low, high, times.p95 / 1000, self.tone)


def models_of(summary: CasesSummary) -> list[ShownModel]:
    """Returns what the tables show of each model, in the order of the mode."""
    return [ShownModel(model, f"t{at % TONES}") for at, model in enumerate(in_order(summary))]


def charts_of(models: Sequence[ShownModel], *, is_freeform: bool) -> list[tuple[str, Any, str]]:
    """Draws what the document names: speed against price, and latency against accuracy.

    Returns:
        For each chart its name, the drawing, and what it leaves out.
    """
    timed = [model for model in models if model.of.times]
    if len(models) < LEAST_CHARTED and not is_freeform:
        return []
    priced = [model.point(price) for model in timed if (price := model.per_thousand) is not None]
    left = [model.of.model for model in timed if model.per_thousand is None]
    first = [model.of.model for model in timed if not model.of.latency_ms]
    unpriced = f"Not in the chart, price unknown: {', '.join(left)}." if left else ""
    cached = f"All answers cached, times of their first calls: {', '.join(first)}." if first else ""
    note = " ".join(filter(None, (unpriced, cached)))
    chart = scatter(priced, x_label="seconds, P50 to P95", y_label=f"US dollars per {PER_ANSWERS:,} answers")
    found = [("Speed vs. Price", markup(chart), note)]
    if not is_freeform:
        rated = [model.point(100 * (model.of.pass_rate or 0.0), *model.bounds) for model in timed]
        chart = scatter(
            rated,
            x_label="seconds, P50 to P95",
            y_label="pass rate in percent, with its 95% interval",
            top=100,
        )
        found.insert(0, ("Latency vs. accuracy", markup(chart), cached))
    return found


def judge_of(judge: JudgingFigures) -> str:
    """Returns the judge's share of the cost; empty without a judge."""
    if not judge.calls:
        return ""
    return f"of it for the judge: {dollars(judge.cost_usd)} in {plural(judge.calls, 'call')}"


def costs_of(models: Sequence[ShownModel]) -> Any:
    """Draws what each model cost."""
    if len(models) < LEAST_CHARTED or not any(model.of.known_cost_usd for model in models):
        return ""
    by_cost = sorted(models, key=lambda model: -model.of.known_cost_usd)
    costs = Series("cost", [model.of.known_cost_usd for model in by_cost])
    return markup(
        bars(
            [model.of.model for model in by_cost],
            [costs],
            title="Cost by model in US dollars",
            ends=[model.cost for model in by_cost],
        )
    )


def statuses_of(document: CasesRun) -> list[tuple[str, int, str]]:
    """Lists why cases did not pass, with counts and meanings; the most frequent first, failed checks last."""
    summary, skipped = document.summary, document.counts.skipped
    found = [
        (status, number, MEANINGS.get(status, ""))
        for status, number in summary.statuses.items()
        if number and status != CaseStatus.PASSED
    ]
    found += [(code, number, "no output") for code, number in summary.errors.items()]
    if skipped:
        found.append((SKIPPED, skipped, "the run ended first"))
    return sorted(found, key=lambda each: (each[0] == CaseStatus.FAILED_CHECKS, -each[1]))


def facts_of(document: CasesRun, info: RunInfo, limit: int) -> list[tuple[str, str]]:
    """Lists what was run and with which settings, to reproduce or check it.

    Args:
        document: the run's.
        info: the run.
        limit: characters of each template.
    """
    run = CaseRun.from_snapshot(info.snapshot)
    created = datetime.fromtimestamp(info.created_ms / 1000, UTC)
    facts = [
        ("run", f"{document.run_id} ({document.state})"),
        ("description", info.description),
        ("bench", document.summary.name if info.name else ""),
        ("input", document.summary.source),
        ("submitted", f"{created:%Y-%m-%d %H:%M:%S} UTC"),
        *settings_of(run, limit),
        ("cases, repeats", f"{run.cases:,}, {run.repeat:,}"),
        ("answers", "recorded" if run.recorded else "cached where equal" if run.cache else ""),
        ("JSON schema", "yes" if run.schema is not None else ""),
        ("validators", f"sha256 {run.validators.sha256}" if run.validators else ""),
        ("intervals", "Wilson, 95%, by case; errors and cases without an answer count as not passed"),
        ("percentiles", "nearest rank, of answers that were not cached"),
        ("commit", _commit(document.summary.git)),
        ("written by", f"Proctor {__version__}, document version {document.schema_version}"),
    ]
    return [(name, value) for name, value in facts if value]


def _leader(summary: CasesSummary, pairs: Pairs, order: Sequence[Column]) -> list[str]:
    """Returns which model leads, and whether chance explains it; nothing of one model or without answers."""
    models = by_pass_rate(summary)
    if len(models) < 2 or models[0].pass_rate is None:  # noqa: PLR2004 - a single model has no lead
        return []
    best, second = models[:2]
    names = [cut_middle(each.model, Size.NAME) for each in (best, second)]
    scores = [f"{each.passed:,} of {each.rates.pass_rate.n:,}" for each in (best, second)]
    if best.pass_rate == second.pass_rate:
        return [f"{names[0]} and {names[1]} passed equally many: {scores[0]}."]
    lead = f"{names[0]} leads with {scores[0]}, ahead of {names[1]} with {scores[1]}"
    if len(order) != len(models):
        return [f"{lead}; not tested, because answers to several prompts are not independent."]
    if not pairs.both:
        return [f"{lead}."]
    p_value = mcnemar(pairs.first, pairs.second).p_value
    if p_value < SIGNIFICANT:
        return [f"{lead}, more than chance explains (p = {max(p_value, 0.001):.3f})."]
    return [f"{lead}, but {plural(pairs.both, 'case')} cannot tell them apart (p = {p_value:.2f})."]


def _meta(document: CasesRun, info: RunInfo) -> list[str]:
    """Returns what was run, how long it took, and what it cost."""
    counts, summary = document.counts, document.summary
    sizes = [plural(summary.cases, "case"), plural(len(summary.models_asked), "model")]
    if summary.prompts_asked:
        sizes.append(plural(len(summary.prompts_asked), "prompt"))
    what = " × ".join(sizes)  # noqa: RUF001 - the sign for times
    if summary.repeat > 1:
        what += f", {summary.repeat} times"
    took = f"{counts.done:,} of {counts.total:,} done"
    took = took if summary.duration_s is None else duration(summary.duration_s)
    further = [remark for remark in remarks(document) if not remark.startswith(IN_VERDICT)]
    created = datetime.fromtimestamp(info.created_ms / 1000, UTC)
    return [document.state, what, took, *further, f"{created:%Y-%m-%d %H:%M} UTC", summary.source]


def _target(document: CasesRun) -> float | None:
    """The pass rate that a gate asks for."""
    return next((gate.bound for gate in document.gates or () if gate.metric == "pass_rate"), None)


def _commit(git: GitState | None) -> str:
    """The commit of the bench, with its tag, its branch, and whether files were changed."""
    if git is None:
        return ""
    tag = f" ({git.tag})" if git.tag else ""
    branch = f" on {git.branch}" if git.branch else ""
    changed = ", with uncommitted changes" if git.is_dirty else ""
    return f"{git.commit_hash[:COMMIT_CHARS]}{tag}{branch}{changed}"
