"""Texts that the reports of a cases run share: documented figures, the headline, intervals and repeats."""

from collections.abc import Mapping
from typing import Any, Final

from producer.cases.results import CheckRow
from producer.documents import AnyRun
from producer.report.cases.opened_rows import CHECK_UNAVAILABLE, OpenedCase
from producer.report.interfaces import RunOutcome
from producer.report.run_verdict import rated
from producer.text import bounds, cost, duration, plural, share
from producer.text import percent as in_percent
from shared.codecs.item_rows import CACHED, ItemRow
from shared.contracts.case_run import CasePayload
from shared.contracts.checks import example_finding, finding

FREEFORM: Final = "freeform"
NONE: Final = "-"
TIMED: Final = "Timed"
"""Heading of how many answers the latencies are of; those from the cache have none."""
NO_VERDICTS: Final = "no verdicts"
"""In the place of a rate: the models did not answer, or the checks of their answers could not be asked."""
FROM_CACHE: Final = "cached"
"""Beside a latency: that of the call whose answer was taken."""


def seconds(latency_ms: float | None) -> str:
    """Writes a latency as the document does.

    >>> seconds(450), seconds(12_345), seconds(None)
    ('0.45s', '12.35s', '-')
    """
    return NONE if latency_ms is None else f"{latency_ms / 1000:.2f}s"


def latency(row: ItemRow) -> str:
    """Writes the latency of an answer; one from the cache has that of its first call."""
    time = seconds(row.latency_ms)
    return f"{time}, {FROM_CACHE}" if CACHED in row.code else time


def dollars(cost_usd: float | None) -> str:
    """Writes a cost; small ones with four decimals.

    >>> dollars(0.0002), dollars(0.00001), dollars(1.5), dollars(0.0), dollars(None)
    ('$0.0002', '<$0.0001', '$1.50', '$0.00', 'unknown')
    """
    return "unknown" if cost_usd is None else cost(cost_usd)


def percent(rate: float | None) -> str:
    """Writes a pass rate, which does not exist without a verdict.

    >>> percent(0.666666), percent(None)
    ('66.7%', 'no verdicts')
    """
    return NO_VERDICTS if rate is None else in_percent(rate)


def case_name(item: CasePayload) -> str:
    """Names a case by its id, or as people count, with its prompt and repeat.

    >>> case_name(CasePayload(2, "m", "Hi", id="fr", prompt_id="terse", repeat=1))
    'fr · terse #2'
    >>> case_name(CasePayload(2, "m", "Hi"))
    'case 3'
    """
    name = item.name + (f" · {item.prompt_id}" if item.prompt_id is not None else "")
    return name + (f" #{item.repeat + 1}" if item.repeat else "")


def model_and_prompt(item: CasePayload) -> str:
    """Names the model of an item, and its prompt.

    >>> model_and_prompt(CasePayload(2, "m", "Hi", prompt_id="terse"))
    'm · terse'
    """
    return item.model if item.prompt_id is None else f"{item.model} · {item.prompt_id}"


def check_line(row: CheckRow) -> str:
    """Writes a check and what it found, not made safe.

    >>> check_line(CheckRow("rubric: Brief.", "rubric", 0.25, False, "Long.", None, {}, at_least=0.7))
    '✗ rubric: Brief: 0.25, at least 0.70 needed; Long.'
    >>> check_line(CheckRow("rubric: Brief.", "rubric", 0.25, True, "Long.", None, {}))
    '✓ rubric: Brief (0.25): Long.'
    """
    mark = "·" if row.passed is None else "✓" if row.passed else "✗"
    return f"{mark} {check_finding(row)}"


def untold_checks(case: OpenedCase) -> list[str]:
    """Writes the failed checks that the message of a case does not name, one a line, not made safe."""
    failed = case.result.failed_checks if case.result else ()
    return [check_line(row) for row in failed if check_finding(row) not in case.message]


def check_finding(row: CheckRow) -> str:
    """Writes what a check found, given its row."""
    return finding(row.name, row.reason, row.score, row.missed)


def check_example(row: CheckRow) -> str:
    """Writes what a check found in one of many answers, given its row."""
    return example_finding(row.name, row.reason, row.score, row.missed)


def headline(document: AnyRun) -> str:
    """Returns a line with the run and how far it came."""
    counts, summary = document.counts, document.summary
    what = f"{plural(summary.cases, 'case')} by {plural(len(summary.models_asked), 'model')}"
    if summary.prompts_asked:
        what += f" and {plural(len(summary.prompts_asked), 'prompt')}"
    if summary.repeat > 1:
        what += f", {summary.repeat} times"
    text = f"{document.state}: {what}"
    if summary.duration_s is None:
        done = counts.passed + counts.failed + counts.error
        return f"{text}, {done:,} of {counts.total:,} done ({share(done, counts.total)})"
    return f"{text} in {duration(summary.duration_s)}"


def outcome(document: AnyRun) -> RunOutcome:
    """Returns how many answers passed, or that nothing was checked."""
    counts = document.counts
    answers, errors = counts.passed + counts.failed, counts.error
    if not answers and CHECK_UNAVAILABLE in document.summary.errors:
        return RunOutcome(NO_VERDICTS)
    if document.summary.mode != FREEFORM or not answers:
        return rated(document)
    outputs = f"{answers:,} of {answers + errors:,} outputs" if errors else plural(answers, "output")
    return RunOutcome(f"{outputs}, not checked: the bench has no criteria")


def by_pass_rate(document: AnyRun) -> list[dict[str, Any]]:
    """Sorts the models of a summary: the best first, then by name; those without an answer last."""
    models = document.summary.models
    return sorted(models, key=lambda model: (-_rate(model), model["model"]))


def _rate(model: Mapping[str, Any]) -> float:
    """Returns the pass rate of a model, which is below all others where there is none."""
    return -1.0 if model["pass_rate"] is None else float(model["pass_rate"])


def by_latency(document: AnyRun) -> list[dict[str, Any]]:
    """Sorts the models of a summary: the fastest first, by the 95th percentile; those without one last."""
    models = document.summary.models
    return sorted(models, key=lambda model: (times_of(model).get("p95", float("inf")), model["model"]))


def times_of(model: Mapping[str, Any]) -> Mapping[str, float]:
    """Returns the latencies of a model's answers; where all are cached, those of their first calls."""
    times: Mapping[str, float] = model["latency_ms"] or model["cached_latency_ms"]
    return times


def remarks(document: AnyRun) -> list[str]:
    """Names outcomes, cost, tokens and the judge, as far as there are any."""
    counts, summary = document.counts, document.summary
    tokens = sum(model["prompt_tokens"] + model["completion_tokens"] for model in summary.models)
    cached = sum(model["cached"] for model in summary.models)
    unknown = sum(model["cost_unknown"] for model in summary.models)
    spent = f"cost {dollars(summary.known_cost_usd)}"
    if unknown:
        spent = (
            f"{spent} and {plural(unknown, 'call')} of unknown price"
            if summary.known_cost_usd
            else "cost unknown"
        )
    parts = [f"passed {counts.passed:,}", f"failed {counts.failed:,}"]
    if summary.mode == FREEFORM:
        parts = [f"not checked {counts.passed + counts.failed:,}"]
    parts += [f"errors {counts.error:,}"]
    if counts.skipped:
        parts.append(f"skipped {counts.skipped:,}")
    paid = summary.paid_usd
    if paid and dollars(paid) != dollars(summary.known_cost_usd):
        spent = f"{spent}, paid {dollars(paid)}"
    parts += [spent, f"tokens {tokens:,}"]
    if cached:
        parts.append(f"{cached:,} from cache (cost and tokens of the original calls, latencies excluded)")
    if summary.retried:
        parts.append(f"retried {summary.retried:,}")
    judge = summary.judge
    votes = f" by {judge['calls']:,} votes" if len(judge["judges"]) > 1 else ""
    if judge["calls"]:
        parts.append(f"judged {judge['judged'] if votes else judge['calls']:,}{votes}")
    if judge["unreached"]:
        parts.append(f"judge unreachable {judge['unreached']:,}")
    return parts


EXTRA_COLUMNS: Final = ("95% interval", "P50", TIMED)
"""Behind the documented columns: of the pass rate, of the latency, and of how many answers that is."""
REPEATS: Final = ("Model", "k", "Mean ± SE", "pass@k", "pass^k", "Flaky")
"""Of the table of repeats; the standard error takes repeats of a case as related, so it is by case."""


def extra_cells(model: Mapping[str, Any]) -> list[str]:
    """Writes the cells of `EXTRA_COLUMNS` of one model of a summary.

    >>> rate = {"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4}
    >>> extra_cells({"rates": {"pass_rate": rate}, "latency_ms": {"p50": 450}, "latency_n": 4})
    ['30.1-95.4%', '0.45s', '4']
    """
    rate = model["rates"]["pass_rate"]
    interval = f"{'-'.join(bounds(rate))}%" if rate["n"] else NONE
    return [interval, seconds(model["latency_ms"].get("p50")), f"{model['latency_n']:,}"]


def repeat_rows(document: AnyRun) -> list[list[str]]:
    """Writes a row for each model with repeated answers: its name, not made safe, and its figures.

    A run without criteria has none: there is nothing to be flaky about.
    """
    return [
        [model["model"], *_repeat_cells(model["repeats"])]
        for model in _models(document)
        if model["repeats"] and document.summary.mode != FREEFORM
    ]


def _repeat_cells(repeats: Mapping[str, Any]) -> list[str]:
    """Writes the figures of one model's repeats.

    >>> _repeat_cells({"repeats": 2, "cases": 2, "complete_cases": 2, "mean": 0.75, "standard_error": 0.25,
    ...     "pass_at_k": {"1": 0.75, "2": 1.0}, "pass_hat_k": {"1": 0.75, "2": 0.5}, "flaky": 1})
    ['2', '75.0% ± 25.0', '100.0%', '50.0%', '1 of 2']
    """
    error, k = repeats["standard_error"], repeats["repeats"]
    return [
        str(k),
        f"{100 * repeats['mean']:.1f}%" + ("" if error is None else f" ± {100 * error:.1f}"),
        *(f"{100 * repeats[name][str(k)]:.1f}%" for name in ("pass_at_k", "pass_hat_k")),
        f"{repeats['flaky']:,} of {repeats['cases']:,}",
    ]


def _models(document: AnyRun) -> list[dict[str, Any]]:
    """Sorts the models as the table above does."""
    return (by_latency if document.summary.mode == FREEFORM else by_pass_rate)(document)
