"""What the HTML report of a cases run says above its cases: verdict, figures, tables and charts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from producer.aggregate.gates import gate_line
from producer.report.cases.html_case import SKIPPED
from producer.report.cases.wording import (
    by_latency,
    by_pass_rate,
    dollars,
    headline,
    percent,
    remarks,
    seconds,
)
from producer.report.cells import plain
from producer.report.html.charts import TONES, Point, Series, bars, scatter
from producer.report.html.page import Tile, begin, markup
from producer.report.turns.wording import verdict_line
from producer.text import plural
from shared import __version__
from shared.contracts.case_run import CaseRun
from shared.contracts.case_vocabulary import CaseStatus
from shared.names import RunState
from shared.runs import RunInfo

PER: Final = 1_000
"""Answers that a price is given for: the price of one has too many zeros."""
NAME_CHARS: Final = 60
"""Of a model's name in a tile."""
MEANINGS: Final[Mapping[str, str]] = {
    "failed_regex": "the pattern was not found",
    "failed_custom": "the validator did not accept it",
    "failed_json_parse": "no JSON object in the output",
    "failed_schema": "the object violates the schema",
    "failed_equality": "not the expected object",
    "failed_fuzzy": "not the expected object, and the judge did not accept it",
    "failed_checks": "the stages passed, and a check did not",
}
GOING_ON: Final = frozenset(state.value for state in RunState) - {
    "finished",
    "cancelled",
    "aborted",
    "incomplete",
}


def opening(document: Mapping[str, Any], *, is_freeform: bool) -> bytes:
    """Writes the first screen."""
    counts, summary = document["counts"], document["summary"]
    is_good = None if is_freeform and not document["exit"] else not document["exit"]
    if document["state"] in GOING_ON:
        is_good = None
    said = remarks(document)[3 + bool(counts["skipped"]) :]  # verdict and tiles have these counts
    if not summary["known_cost_usd"] or summary["cost_usd"] is not None:
        said = said[1:]  # and this cost
    return begin(
        summary["name"],
        _verdict(document, is_freeform=is_freeform),
        is_good=is_good,
        remarks=[*said, *(gate_line(gate) for gate in document.get("gates", ()))],
        tiles=_tiles(document, is_freeform=is_freeform),
        badge="Freeform Mode" if is_freeform else "",
        about=f"{headline(document)} · run {document['run_id']} · {summary['source']}",
    )


def models_of(document: Mapping[str, Any], *, is_freeform: bool) -> list[dict[str, Any]]:
    """Returns what the tables show of each model, in the order of the mode."""
    models = by_latency(document) if is_freeform else by_pass_rate(document)
    return [_model(model) | {"tone": f"t{at % TONES}"} for at, model in enumerate(models)]


def charts_of(models: Sequence[Mapping[str, Any]], *, is_freeform: bool) -> list[tuple[str, Any, str]]:
    """Draws what the document names: speed against price, and latency against accuracy.

    Returns:
        For each chart its name, the drawing, and what it leaves out.
    """
    timed = [model for model in models if model["latency_ms"]]
    priced = [
        Point(model["model"], _p50_s(model), model["per_thousand"], right=_p95_s(model), tone=model["tone"])
        for model in timed
        if model["per_thousand"] is not None
    ]
    left = [model["model"] for model in timed if model["per_thousand"] is None]
    note = f"not in the chart, price unknown: {', '.join(left)}" if left else ""
    chart = scatter(priced, x_label="seconds, P50 to P95", y_label=f"US dollars per {PER:,} answers")
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
            y_label="pass rate in percent, with its 95 % interval",
            top=100,
        )
        found.insert(0, ("Latency vs. Accuracy", markup(chart), ""))
    return found


def judge_of(document: Mapping[str, Any]) -> str:
    """Says what the judge took of the cost; empty without one.

    >>> judge_of({"summary": {"judge": {"calls": 2, "cost_usd": 0.5}}})
    'of it for the judge: $0.50 in 2 calls'
    """
    judge = document["summary"]["judge"]
    if not judge["calls"]:
        return ""
    return f"of it for the judge: {dollars(judge['cost_usd'])} in {plural(judge['calls'], 'call')}"


def costs_of(models: Sequence[Mapping[str, Any]]) -> Any:
    """Draws what each model cost."""
    if not any(model["known_cost_usd"] for model in models):
        return ""
    by_cost = sorted(models, key=lambda model: -model["known_cost_usd"])
    costs = Series("cost", [model["known_cost_usd"] for model in by_cost])
    return markup(
        bars(
            [model["model"] for model in by_cost],
            [costs],
            title="Cost by model in US dollars",
            told=[model["cost"] for model in by_cost],
        )
    )


def statuses_of(document: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Lists why cases did not pass, with counts and meanings; the most frequent first, failed checks last."""
    summary, skipped = document["summary"], document["counts"]["skipped"]
    found = [
        (status, number, MEANINGS.get(status, ""))
        for status, number in summary["statuses"].items()
        if number and status != "passed"
    ]
    found += [(code, number, "no output") for code, number in summary["errors"].items()]
    found += [(SKIPPED, skipped, "the run ended first")] * bool(skipped)
    return sorted(found, key=lambda each: (each[0] == CaseStatus.FAILED_CHECKS, -each[1]))


def facts_of(document: Mapping[str, Any], info: RunInfo) -> list[tuple[str, str]]:
    """Says what was run, for those who want to run it again or doubt it."""
    run = CaseRun.from_snapshot(info.snapshot)
    created = datetime.fromtimestamp(info.created_ms / 1000, UTC)
    facts = [
        ("run", f"{document['run_id']} ({document['state']})"),
        ("input", document["summary"]["source"]),
        ("submitted", f"{created:%Y-%m-%d %H:%M:%S} UTC"),
        ("models", ", ".join(run.models)),
        ("judges" if run.panel else "judge", ", ".join(run.judges) or "none"),
        ("prompts", ", ".join(run.prompts)),
        ("temperature", f"{run.temperature:g}"),
        ("cases, repeats", f"{run.cases:,}, {run.repeat:,}"),
        ("answers", "recorded" if run.recorded else "cached where equal" * run.cache),
        ("system prompt", run.system_prompt),
        ("JSON schema", "yes" if run.schema is not None else ""),
        ("validators", f"sha256 {run.validators.sha256}" if run.validators else ""),
        ("intervals", "Wilson, 95 %; errors and cases without an answer count as not passed"),
        ("percentiles", "nearest rank, of answers that were not cached"),
        ("written by", f"Proctor {__version__}, document version {document['schema_version']}"),
    ]
    return [(name, value) for name, value in facts if value]


def _verdict(document: Mapping[str, Any], *, is_freeform: bool) -> str:
    """Says in one line what counts."""
    counts = document["counts"]
    if is_freeform:
        answers = counts["passed"] + counts["failed"]
        told = [f"{plural(answers, 'output')} for manual inspection, nothing was checked"]
    else:
        judged = counts["passed"] + counts["failed"] + counts["error"]
        told = [f"{counts['passed']:,} of {judged:,} passed"]
        told += [f"{counts['failed']:,} failed"] * bool(counts["failed"])
    return verdict_line(document, told)


def _tiles(document: Mapping[str, Any], *, is_freeform: bool) -> list[Tile]:
    """Returns the figures of the first screen."""
    counts, summary = document["counts"], document["summary"]
    models, answers = summary["models"], counts["passed"] + counts["failed"]
    if is_freeform:
        tiles = [Tile("outputs", f"{answers:,}"), Tile("models", f"{len(models):,}")]
    else:
        judged = answers + counts["error"]
        rate = counts["passed"] / judged if answers else None
        tiles = [Tile("pass rate", percent(rate), f"{counts['passed']:,} of {judged:,}")]
        best = by_pass_rate(document)[0] if len(models) > 1 else None
        if best and best["pass_rate"]:
            tiles.append(Tile("best model", percent(best["pass_rate"]), plain(best["model"], NAME_CHARS)))
        tone, link = ("bad", "#failures") if counts["failed"] else ("", "")
        tiles.append(Tile("failed", f"{counts['failed']:,}", tone=tone, link=link))
    if counts["error"] or not is_freeform:
        tiles.append(Tile("errors", f"{counts['error']:,}", tone="bad" if counts["error"] else ""))
    known = _known(summary) if summary["cost_usd"] is None else ""
    tiles.append(Tile("cost", dollars(summary["cost_usd"]), known))
    for model in by_latency(document)[:1]:
        if model["latency_ms"]:
            name = plain(model["model"], NAME_CHARS)
            tiles.append(Tile("fastest, P95", seconds(model["latency_ms"]["p95"]), name))
    return tiles


def _model(model: Mapping[str, Any]) -> dict[str, Any]:
    """What the tables show of a model."""
    times, answers = model["latency_ms"], model["passed"] + model["failed"]
    per = PER * model["cost_usd"] / answers if model["cost_usd"] is not None and answers else None
    low, high = _bounds(model)
    return {
        **model,
        "rate": model["rates"]["pass_rate"],
        "pass_rate": model["pass_rate"] or 0.0,
        "pass_rate_text": percent(model["pass_rate"]),
        "bounds": f"{low:.1f} to {high:.1f}",
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
    return float(model["latency_ms"]["p50"]) / 1000


def _p95_s(model: Mapping[str, Any]) -> float:
    """The latency that few answers exceed, in seconds."""
    return float(model["latency_ms"]["p95"]) / 1000
