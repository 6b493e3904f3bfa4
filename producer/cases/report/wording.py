"""Texts that the reports of a cases run share: documented figures, the headline, intervals and repeats."""

from typing import Final

from producer.cases.documents import CasesRun, CasesSummary, ModelFigures, RepeatFigures
from producer.cases.report.opened_rows import CHECK_UNAVAILABLE, OpenedCase
from producer.cases.results import CheckRow
from producer.documents import Percentiles, Rate
from producer.report.cells import ReportTable
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


def p50(times: Percentiles) -> str:
    """Writes the median of latencies."""
    return seconds(times.p50 if times else None)


def p95(times: Percentiles) -> str:
    """Writes the 95th percentile of latencies."""
    return seconds(times.p95 if times else None)


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


def headline(document: CasesRun) -> str:
    """Returns a line with the run and how far it came."""
    counts, summary = document.counts, document.summary
    what = f"{plural(summary.cases, 'case')} by {plural(len(summary.models_asked), 'model')}"
    if summary.prompts_asked:
        what += f" and {plural(len(summary.prompts_asked), 'prompt')}"
    if summary.repeat > 1:
        what += f", {summary.repeat} times"
    text = f"{document.state}: {what}"
    if summary.duration_s is None:
        return f"{text}, {counts.done:,} of {counts.total:,} done ({share(counts.done, counts.total)})"
    return f"{text} in {duration(summary.duration_s)}"


def outcome(document: CasesRun) -> RunOutcome:
    """Returns how many answers passed, or that nothing was checked."""
    answers, errors = document.counts.answered, document.counts.error
    if not answers and CHECK_UNAVAILABLE in document.summary.errors:
        return RunOutcome(NO_VERDICTS)
    if not document.summary.is_freeform or not answers:
        return rated(document)
    outputs = f"{answers:,} of {answers + errors:,} outputs" if errors else plural(answers, "output")
    return RunOutcome(f"{outputs}, not checked: the bench has no criteria")


def in_order(summary: CasesSummary) -> list[ModelFigures]:
    """Sorts the models of a summary as all tables do: by pass rate; of a freeform run by latency."""
    return by_latency(summary) if summary.is_freeform else by_pass_rate(summary)


def by_pass_rate(summary: CasesSummary) -> list[ModelFigures]:
    """Sorts the models of a summary: the best first, then by name; those without an answer last."""
    return sorted(
        summary.models, key=lambda model: (model.pass_rate is None, -(model.pass_rate or 0.0), model.model)
    )


def by_latency(summary: CasesSummary) -> list[ModelFigures]:
    """Sorts the models of a summary: the fastest first, by the 95th percentile; those without one last."""
    return sorted(summary.models, key=lambda model: (not model.times, model.times.p95, model.model))


def remarks(document: CasesRun) -> list[str]:
    """Names outcomes, cost, tokens and the judge, as far as there are any."""
    counts, summary = document.counts, document.summary
    cached = sum(model.cached for model in summary.models)
    unknown = sum(model.cost_unknown for model in summary.models)
    spent = f"cost {dollars(summary.known_cost_usd)}"
    if unknown:
        calls = f"{plural(unknown, 'call')} of unknown price"
        spent = f"{spent} and {calls}" if summary.known_cost_usd else "cost unknown"
    if summary.paid_usd and dollars(summary.paid_usd) != dollars(summary.known_cost_usd):
        spent = f"{spent}, paid {dollars(summary.paid_usd)}"
    parts = [f"passed {counts.passed:,}", f"failed {counts.failed:,}"]
    if summary.is_freeform:
        parts = [f"not checked {counts.answered:,}"]
    parts += [f"errors {counts.error:,}"]
    if counts.skipped:
        parts.append(f"skipped {counts.skipped:,}")
    parts += [spent, f"tokens {sum(model.tokens for model in summary.models):,}"]
    if cached:
        parts.append(f"{cached:,} from cache (cost and tokens of the original calls, latencies excluded)")
    if summary.retried:
        parts.append(f"retried {summary.retried:,}")
    judge = summary.judge
    if len(judge.judges) > 1 and judge.calls:
        parts.append(f"judged {judge.judged:,} by {judge.calls:,} votes")
    elif judge.calls:
        parts.append(f"judged {judge.calls:,}")
    if judge.unreached:
        parts.append(f"judge unreachable {judge.unreached:,}")
    return parts


EXTRA_COLUMNS: Final = ("95% interval", "P50", TIMED)
"""Behind the documented columns: of the pass rate, of the latency, and of how many answers that is."""
REPEATS: Final = ("Model", "k", "Mean ± SE", "pass@k", "pass^k", "Flaky")
"""Of the table of repeats; the standard error takes repeats of a case as related, so it is by case."""


def extra_cells(model: ModelFigures) -> list[str]:
    """Writes the cells of `EXTRA_COLUMNS` of one model of a summary."""
    rate = model.rates.pass_rate
    return [interval(rate) if rate.n else NONE, p50(model.latency_ms), f"{model.latency_n:,}"]


def interval(rate: Rate) -> str:
    """Writes the interval of a rate.

    >>> interval(Rate(0.75, 0.3006, 0.9544, 4))
    '30.1-95.4%'
    """
    return f"{'-'.join(bounds(rate))}%"


def repeat_table(summary: CasesSummary) -> ReportTable:
    """Returns a row for each model with repeated answers.

    A run without criteria has none: there is nothing to be flaky about.
    """
    models = () if summary.is_freeform else by_pass_rate(summary)
    rows = [[model.model, *_repeat_cells(model.repeats)] for model in models if model.repeats]
    return ReportTable("Repeats", 1, REPEATS, rows)


def _repeat_cells(repeats: RepeatFigures) -> list[str]:
    """Writes the figures of one model's repeats.

    >>> at_k, hat_k = {"1": 0.75, "2": 1.0}, {"1": 0.75, "2": 0.5}
    >>> _repeat_cells(RepeatFigures(2, 2, 2, 0.75, 0.25, at_k, hat_k, 1, 0.5))
    ['2', '75.0% ± 25.0', '100.0%', '50.0%', '1 of 2']
    """
    error, k = repeats.standard_error, str(repeats.repeats)
    return [
        k,
        in_percent(repeats.mean) + ("" if error is None else f" ± {100 * error:.1f}"),
        *(in_percent(found[k]) if k in found else "-" for found in (repeats.pass_at_k, repeats.pass_hat_k)),
        f"{repeats.flaky:,} of {repeats.cases:,}",
    ]
