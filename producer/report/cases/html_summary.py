"""Prepares what the HTML report of a cases run has around its cases: verdict, figures, tables and charts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from producer.aggregate.statistics import mcnemar
from producer.documents import AnyRun
from producer.report.cases.html_rows import NAME_CHARS, Column, Pairs
from producer.report.cases.html_settings import settings_of
from producer.report.cases.opened_rows import SKIPPED
from producer.report.cases.wording import (
    NO_VERDICTS,
    by_latency,
    by_pass_rate,
    dollars,
    outcome,
    percent,
    remarks,
    seconds,
    times_of,
)
from producer.report.html.charts import TONES, Point, Series, bars, scatter
from producer.report.html.rendering import markup
from producer.report.html.viewer import Fact, Metric, Page
from producer.report.run_verdict import verdict_with
from producer.tables import cut_middle
from producer.text import bounds, duration, plural
from shared import __version__
from shared.contracts.case_run import GIT_KEY, CaseRun
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


def page_of(document: AnyRun, run: CaseRun, info: RunInfo, pairs: Pairs, order: Sequence[Column]) -> Page:
    """Returns the head of the page: verdict, reasons, figures.

    Args:
        document: the run's.
        run: its settings.
        info: the run.
        pairs: how the first two columns differ.
        order: the columns as they are shown.
    """
    is_freeform = document.summary.mode == "freeform"
    verdict = verdict_with(document, outcome(document))
    return Page(
        kind="cases",
        name=info.title,
        run=document.run_id,
        tone="n" if is_freeform and verdict.tone == "p" else verdict.tone,
        verdict=verdict.heading,
        why=[*verdict.clauses, *_leader(document, pairs, order) * (not is_freeform)],
        meta=_meta(document, run, info),
        badge="Freeform Mode" if is_freeform else "",
        links=[("Models", "#models"), ("Cost", "#cost"), ("About", "#about")],
        folder="cases",
    )


def ordered(document: AnyRun, columns: Sequence[Column], *, is_freeform: bool) -> list[Column]:
    """Puts columns in order: the best model first, in a freeform run the fastest; prompts as in the run."""
    models = by_latency(document) if is_freeform else by_pass_rate(document)
    ranks = {model["model"]: at for at, model in enumerate(models)}
    known = [column for column in columns if column[0] in ranks]
    return sorted(known, key=lambda column: ranks[column[0]])


def metrics_of(document: AnyRun, order: Sequence[Column], *, is_freeform: bool) -> list[Metric]:
    """Makes the head of each column: the rate with its interval, latency, cost, failures.

    Args:
        document: the run's.
        order: the columns as they are shown.
        is_freeform: whether nothing was checked.
    """
    summary = document.summary
    models = {model["model"]: model for model in summary.models}
    pairs = {(each["model"], each["prompt"]): each for each in summary.prompts_by_model or ()}
    pairs = pairs if has_prompts(order) else {}
    target = _target(document)
    metrics = [_rated(models[column[0]], pairs.get(column), column) for column in order]
    if is_freeform:
        metrics = [_counted(models[column[0]], metric) for column, metric in zip(order, metrics, strict=True)]
    return [metric if metric.at is None else metric._replace(target=target) for metric in metrics]


def has_prompts(order: Sequence[Column]) -> bool:
    """Returns whether columns differ in their prompts: the id of a single one says nothing."""
    return len({prompt for _, prompt in order}) > 1


def gate_of(document: AnyRun) -> str:
    """Returns the note on the line that a gate draws across the bars; empty without one."""
    target = _target(document)
    return "" if target is None else f"┊ gate {100 * target:g}%"


def _rated(model: Mapping[str, Any], group: Mapping[str, Any] | None, column: Column) -> Metric:
    """Makes the head of one column: of a model, or of a model with a prompt."""
    found = model if group is None else group
    rate = model["rates"]["pass_rate"] if group is None else group["pass_rate"]
    provider, _, name = column[0].rpartition("/")
    over, name = (provider, name) if group is None else column
    facts = []
    if group is None and model["latency_ms"]:
        facts.append(Fact("P95", seconds(model["latency_ms"]["p95"])))
    facts.append(Fact("cost", dollars(found["cost_usd"])))
    if found["failed"]:
        facts.append(Fact(f"✗ {found['failed']:,} failed", tone="f"))
    if found["errors"]:
        facts.append(Fact(f"! {plural(found['errors'], 'error')}", tone="e"))
    metric = Metric(cut_middle(name, HEAD_CHARS), NO_VERDICTS, cut_middle(over, HEAD_CHARS), facts=facts)
    if not found["passed"] + found["failed"]:  # errors are no verdicts
        return metric
    interval = f"95%: {' to '.join(bounds(rate, 0))}"
    return metric._replace(
        value=percent(rate["value"]),
        at=rate["value"],
        low=rate["low"],
        high=rate["high"],
        captions=(interval, f"{found['passed']:,} of {rate['n']:,}"),
    )


def _counted(found: Mapping[str, Any], metric: Metric) -> Metric:
    """Leaves out the verdicts, because the outputs were not checked."""
    outputs = plural(found["passed"] + found["failed"], "output")
    facts = [fact for fact in metric.facts if fact.tone != "f"]
    return metric._replace(value=outputs, at=None, captions=("", ""), facts=facts)


def models_of(document: AnyRun, *, is_freeform: bool) -> list[dict[str, Any]]:
    """Returns what the tables show of each model, in the order of the mode."""
    models = by_latency(document) if is_freeform else by_pass_rate(document)
    return [_model(model) | {"tone": f"t{at % TONES}"} for at, model in enumerate(models)]


def charts_of(models: Sequence[Mapping[str, Any]], *, is_freeform: bool) -> list[tuple[str, Any, str]]:
    """Draws what the document names: speed against price, and latency against accuracy.

    Returns:
        For each chart its name, the drawing, and what it leaves out.
    """
    timed = [model for model in models if times_of(model)]
    if len(models) < LEAST_CHARTED and not is_freeform:
        return []
    priced = [
        Point(model["model"], _p50_s(model), model["per_thousand"], right=_p95_s(model), tone=model["tone"])
        for model in timed
        if model["per_thousand"] is not None
    ]
    left = [model["model"] for model in timed if model["per_thousand"] is None]
    first = [model["model"] for model in timed if not model["latency_ms"]]
    notes = [f"Not in the chart, price unknown: {', '.join(left)}."] * bool(left)
    if first:
        notes.append(f"All answers cached, times of their first calls: {', '.join(first)}.")
    note = " ".join(notes)
    chart = scatter(priced, x_label="seconds, P50 to P95", y_label=f"US dollars per {PER_ANSWERS:,} answers")
    found = [("Speed vs. Price", markup(chart), note)]
    if not is_freeform:
        rated = [
            Point(
                model["model"],
                _p50_s(model),
                100 * (model["pass_rate"] or 0.0),
                *_bounds(model),
                _p95_s(model),
                model["tone"],
            )
            for model in timed
        ]
        chart = scatter(
            rated,
            x_label="seconds, P50 to P95",
            y_label="pass rate in percent, with its 95% interval",
            top=100,
        )
        found.insert(0, ("Latency vs. accuracy", markup(chart), " ".join(notes[bool(left) :])))
    return found


def judge_of(document: AnyRun) -> str:
    """Returns the judge's share of the cost; empty without a judge."""
    judge = document.summary.judge
    if not judge["calls"]:
        return ""
    return f"of it for the judge: {dollars(judge['cost_usd'])} in {plural(judge['calls'], 'call')}"


def costs_of(models: Sequence[Mapping[str, Any]]) -> Any:
    """Draws what each model cost."""
    if len(models) < LEAST_CHARTED or not any(model["known_cost_usd"] for model in models):
        return ""
    by_cost = sorted(models, key=lambda model: -model["known_cost_usd"])
    costs = Series("cost", [model["known_cost_usd"] for model in by_cost])
    return markup(
        bars(
            [model["model"] for model in by_cost],
            [costs],
            title="Cost by model in US dollars",
            ends=[model["cost"] for model in by_cost],
        )
    )


def statuses_of(document: AnyRun) -> list[tuple[str, int, str]]:
    """Lists why cases did not pass, with counts and meanings; the most frequent first, failed checks last."""
    summary, skipped = document.summary, document.counts.skipped
    found = [
        (status, number, MEANINGS.get(status, ""))
        for status, number in summary.statuses.items()
        if number and status != "passed"
    ]
    found += [(code, number, "no output") for code, number in summary.errors.items()]
    if skipped:
        found.append((SKIPPED, skipped, "the run ended first"))
    return sorted(found, key=lambda each: (each[0] == CaseStatus.FAILED_CHECKS, -each[1]))


def facts_of(document: AnyRun, info: RunInfo, limit: int) -> list[tuple[str, str]]:
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
        ("answers", "recorded" if run.recorded else "cached where equal" * run.cache),
        ("JSON schema", "yes" if run.schema is not None else ""),
        ("validators", f"sha256 {run.validators.sha256}" if run.validators else ""),
        ("intervals", "Wilson, 95%, by case; errors and cases without an answer count as not passed"),
        ("percentiles", "nearest rank, of answers that were not cached"),
        ("commit", _commit(info)),
        ("written by", f"Proctor {__version__}, document version {document.schema_version}"),
    ]
    return [(name, value) for name, value in facts if value]


def _leader(document: AnyRun, pairs: Pairs, order: Sequence[Column]) -> list[str]:
    """Returns which model leads, and whether chance explains it; nothing of one model or without answers."""
    models = by_pass_rate(document)
    if len(models) < 2 or models[0]["pass_rate"] is None:  # noqa: PLR2004 - a single model has no lead
        return []
    best, second = models[:2]
    names = [cut_middle(each["model"], NAME_CHARS) for each in (best, second)]
    scores = [f"{each['passed']:,} of {each['rates']['pass_rate']['n']:,}" for each in (best, second)]
    if best["pass_rate"] == second["pass_rate"]:
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


def _meta(document: AnyRun, run: CaseRun, info: RunInfo) -> list[str]:
    """Returns what was run, how long it took, and what it cost."""
    counts, summary = document.counts, document.summary
    sizes = [plural(summary.cases, "case"), plural(len(summary.models_asked), "model")]
    if run.prompts:
        sizes.append(plural(len(run.prompts), "prompt"))
    what = " × ".join(sizes)  # noqa: RUF001 - the sign for times
    if summary.repeat > 1:
        what += f", {summary.repeat} times"
    done = counts.passed + counts.failed + counts.error
    took = f"{done:,} of {counts.total:,} done"
    took = took if summary.duration_s is None else duration(summary.duration_s)
    further = [remark for remark in remarks(document) if not remark.startswith(IN_VERDICT)]
    created = datetime.fromtimestamp(info.created_ms / 1000, UTC)
    return [document.state, what, took, *further, f"{created:%Y-%m-%d %H:%M} UTC", summary.source]


def _target(document: AnyRun) -> float | None:
    """The pass rate that a gate asks for."""
    gates = [gate for gate in document.gates or () if gate.metric == "pass_rate"]
    return gates[0].bound if gates else None


def _model(model: Mapping[str, Any]) -> dict[str, Any]:
    """What the tables show of a model."""
    times, answers = model["latency_ms"], model["passed"] + model["failed"]
    per = PER_ANSWERS * model["cost_usd"] / answers if model["cost_usd"] is not None and answers else None
    low, high = _bounds(model)
    return {
        **model,
        "rate": model["rates"]["pass_rate"],
        "pass_rate": model["pass_rate"] or 0.0,
        "pass_rate_text": percent(model["pass_rate"]),
        "bounds": f"{low:.1f} to {high:.1f}",
        "is_answered": answers > 0,
        "mean_score": model.get("score"),
        "times": [(times.get(name, ""), seconds(times.get(name))) for name in ("p50", "p95", "p99")],
        "tokens": model["prompt_tokens"] + model["completion_tokens"],
        "cost": dollars(model["cost_usd"]),
        "known": _known(model) if model["cost_usd"] is None else "",
        "per_thousand": per,
        "per_thousand_text": dollars(per),
        "speed": model["throughput_tokens_per_s"],
    }


def _known(costs: Mapping[str, Any]) -> str:
    """What is known of a cost that is not known whole."""
    return f"at least {dollars(costs['known_cost_usd'])}" if costs["known_cost_usd"] else ""


def _bounds(model: Mapping[str, Any]) -> tuple[float, float]:
    """The interval of a pass rate, in percent."""
    rate = model["rates"]["pass_rate"]
    return 100 * rate["low"], 100 * rate["high"]


def _p50_s(model: Mapping[str, Any]) -> float:
    """The usual latency in seconds."""
    return float(times_of(model)["p50"]) / 1000


def _p95_s(model: Mapping[str, Any]) -> float:
    """The latency that few answers exceed, in seconds."""
    return float(times_of(model)["p95"]) / 1000


def _commit(info: RunInfo) -> str:
    """The commit of the bench, with its tag, its branch, and whether files were changed."""
    git = info.snapshot.get(GIT_KEY) or {}
    if not git.get("commit_hash"):
        return ""
    tag = f" ({git['tag']})" if git.get("tag") else ""
    branch = f" on {git['branch']}" if git.get("branch") else ""
    changed = ", with uncommitted changes" if git.get("is_dirty") else ""
    return f"{str(git['commit_hash'])[:COMMIT_CHARS]}{tag}{branch}{changed}"
