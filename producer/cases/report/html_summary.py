"""Prepares what only the page of a cases run has: heads of its columns, charts, and who leads."""

from collections.abc import Sequence
from typing import Any, Final

from producer.aggregate.statistics import mcnemar
from producer.cases.documents import CasesRun, CasesSummary, GitState, ModelFigures, PromptModelFigures
from producer.cases.report.case_tables import PER_ANSWERS, cost_of, in_order, per_thousand
from producer.cases.report.html_rows import Column, Pairs
from producer.cases.report.html_settings import settings_of
from producer.cases.report.wording import NO_VERDICTS, dollars
from producer.report.cells import Size
from producer.report.figures import latency_s
from producer.report.html.charts import TONES, Point, Series, bars, scatter
from producer.report.html.rendering import markup
from producer.report.html.viewer import Fact, Metric
from producer.tables import cut_middle
from producer.text import plural
from shared.contracts.case_run import CaseRun
from shared.runs import RunInfo

COMMIT_CHARS: Final = 12
"""Of the hash of a commit."""
HEAD_CHARS: Final = 40
"""Of a model's name, in the head of a column."""
LEAST_CHARTED: Final = 3
"""Models that a chart says something about; a freeform run has nothing else to say, and a chart of each."""
SIGNIFICANT: Final = 0.05
"""Two-sided level of the test between the two best models."""


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
        facts.append(Fact("P95", latency_s(model.latency_ms.p95)))
    facts.append(Fact("cost", dollars(found.cost_usd)))
    if found.failed:
        facts.append(Fact(f"✗ {found.failed:,} failed", tone="f"))
    if found.errors:
        facts.append(Fact(f"! {plural(found.errors, 'error')}", tone="e"))
    metric = Metric(cut_middle(name, HEAD_CHARS), NO_VERDICTS, cut_middle(over, HEAD_CHARS), facts=facts)
    has_verdicts = found.passed + found.failed  # errors are no verdicts
    return metric.rated(rate, f"{found.passed:,} of {rate.n:,}") if has_verdicts else metric


def _counted(model: ModelFigures, metric: Metric) -> Metric:
    """Leaves out the verdicts, because the outputs were not checked."""
    facts = [fact for fact in metric.facts if fact.tone != "f"]
    return metric._replace(value=plural(model.answers, "output"), at=None, captions=("", ""), facts=facts)


def charts_of(summary: CasesSummary) -> list[tuple[str, Any, str]]:
    """Draws what the document names: latency against accuracy, speed against price, and what models cost.

    Returns:
        For each chart its name, the drawing, and what it leaves out.
    """
    models, is_freeform = in_order(summary), summary.is_freeform
    if len(models) < LEAST_CHARTED and not is_freeform:
        return []
    tones = {model.model: f"t{at % TONES}" for at, model in enumerate(models)}
    timed = [model for model in models if model.times]

    def point(model: ModelFigures, y: float, low: float | None = None, high: float | None = None) -> Point:
        times = model.times
        return Point(model.model, times.p50 / 1000, y, low, high, times.p95 / 1000, tones[model.model])

    priced = [point(model, price) for model in timed if (price := per_thousand(model)) is not None]
    left = [model.model for model in timed if per_thousand(model) is None]
    first = [model.model for model in timed if not model.latency_ms]
    unpriced = f"Not in the chart, price unknown: {', '.join(left)}." if left else ""
    cached = f"All answers cached, times of their first calls: {', '.join(first)}." if first else ""
    note = " ".join(filter(None, (unpriced, cached)))
    chart = scatter(priced, x_label="seconds, P50 to P95", y_label=f"US dollars per {PER_ANSWERS:,} answers")
    found = [("Speed vs. Price", markup(chart), note)]
    if not is_freeform:
        rates = [(model, model.rates.pass_rate) for model in timed]
        chart = scatter(
            [point(model, 100 * (model.pass_rate or 0.0), 100 * r.low, 100 * r.high) for model, r in rates],
            x_label="seconds, P50 to P95",
            y_label="pass rate in percent, with its 95% interval",
            top=100,
        )
        found.insert(0, ("Latency vs. accuracy", markup(chart), cached))
    if len(models) >= LEAST_CHARTED and any(model.known_cost_usd for model in models):
        found.append(("Cost by model", markup(_costs(models)), ""))
    return found


def settings_facts(document: CasesRun, info: RunInfo, limit: int) -> list[tuple[str, str]]:
    """Names what was run and with which settings.

    Args:
        document: the run's.
        info: the run.
        limit: characters of each template.
    """
    run, summary = CaseRun.from_snapshot(info.snapshot), document.summary
    return [
        ("bench", summary.name if info.name else ""),
        *settings_of(run, limit),
        ("cases, repeats", f"{run.cases:,}, {run.repeat:,}"),
        ("answers", "recorded" if run.recorded else "cached where equal" if run.cache else ""),
        ("JSON schema", "yes" if run.schema is not None else ""),
        ("validators", f"sha256 {run.validators.sha256}" if run.validators else ""),
        ("intervals", "Wilson, 95%, by case; errors and cases without an answer count as not passed"),
        ("percentiles", "nearest rank, of answers that were not cached"),
        ("commit", _commit(summary.git)),
    ]


def _costs(models: Sequence[ModelFigures]) -> str:
    """Draws what each model cost, the most expensive first."""
    by_cost = sorted(models, key=lambda model: -model.known_cost_usd)
    return bars(
        [model.model for model in by_cost],
        [Series("cost", [model.known_cost_usd for model in by_cost])],
        title="Cost by model in US dollars",
        ends=[str(cost_of(model)) for model in by_cost],
    )


def leader(summary: CasesSummary, pairs: Pairs, order: Sequence[Column]) -> list[str]:
    """Returns which model leads, and whether chance explains it; nothing of one model or without answers."""
    models = in_order(summary)
    if summary.is_freeform or len(models) < 2 or models[0].pass_rate is None:  # noqa: PLR2004 - a single model has no lead
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
