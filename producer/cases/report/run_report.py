"""Builds the report of a cases run."""

from typing import Final

from producer.cases.documents import CasesRun, CasesSummary
from producer.cases.report.case_tables import (
    costs_table,
    group_tables,
    models_table,
    repeats_table,
    statuses_table,
)
from producer.cases.report.judge_trust import judge_table
from producer.cases.report.opened_rows import CHECK_UNAVAILABLE
from producer.cases.report.wording import NO_VERDICTS, UNKNOWN
from producer.report.figures import Figure, Labelled, Unit
from producer.report.run_report import RunReport, headline_of, names_of
from producer.report.run_verdict import RunOutcome, rated, verdict_with
from producer.text import plural

FREEFORM_MODE: Final = "Freeform Mode"
"""As in the document."""


def run_report(document: CasesRun) -> RunReport:
    """Returns what is said of a run."""
    summary, counts = document.summary, document.counts
    outcomes = [("passed", counts.passed), ("failed", counts.failed)]
    if summary.is_freeform:
        outcomes = [("not checked", counts.answered)]
    outcomes.append(("errors", counts.error))
    if skipped := counts.skipped - summary.not_needed:
        outcomes.append(("skipped", skipped))
    return RunReport(
        run=document,
        names=names_of(document, summary.name),
        headline=headline_of(document, _what(summary)),
        verdict=verdict_with(document, _outcome(document)),
        outcomes=[Labelled(word, Figure(number)) for word, number in outcomes],
        figures=_figures(summary),
        tables=[
            models_table(summary),
            repeats_table(summary),
            *(group_tables(summary) if counts.answered else ()),
            judge_table(summary.judge),
            statuses_table(document),
            costs_table(summary),
        ],
        badge=FREEFORM_MODE if summary.is_freeform else "",
        is_checked=not summary.is_freeform,
    )


def _what(summary: CasesSummary) -> str:
    """Says what a run consists of."""
    what = f"{plural(summary.cases, 'case')} by {plural(len(summary.models_asked), 'model')}"
    if summary.prompts_asked:
        what += f" and {plural(len(summary.prompts_asked), 'prompt')}"
    return f"{what}, {summary.repeat} times" if summary.repeat > 1 else what


def _outcome(document: CasesRun) -> RunOutcome:
    """Returns how many answers passed, or that nothing was checked."""
    answers, errors = document.counts.answered, document.counts.error
    if not answers and CHECK_UNAVAILABLE in document.summary.errors:
        return RunOutcome(NO_VERDICTS)
    if not document.summary.is_freeform or not answers:
        return rated(document)
    outputs = f"{answers:,} of {answers + errors:,} outputs" if errors else plural(answers, "output")
    return RunOutcome(f"{outputs}, not checked: the bench has no criteria")


def _figures(summary: CasesSummary) -> list[Labelled]:
    """Returns cost, tokens, and what the cache and the judges did, as far as they did something."""
    cached = sum(model.cached for model in summary.models)
    unknown = sum(model.cost_unknown for model in summary.models)
    known, paid = Figure(summary.known_cost_usd, Unit.USD), Figure(summary.paid_usd, Unit.USD)
    beside = list[str]()
    if unknown and summary.known_cost_usd:
        beside.append(f"and {plural(unknown, 'call')} of unknown price")
    if summary.paid_usd and str(paid) != str(known):
        beside.append(f"paid {paid}")
    spent = Figure(None, missing=UNKNOWN) if unknown and not summary.known_cost_usd else known
    figures = [
        Labelled("cost", spent, ", ".join(beside)),
        Labelled("tokens", Figure(sum(model.tokens for model in summary.models))),
    ]
    if summary.cached_input_share:
        share_cached = Figure(summary.cached_input_share, Unit.SHARE)
        figures.append(Labelled("", share_cached, "of input cached by the provider"))
    if cached:
        meaning = "from cache (cost and tokens of the original calls, latencies excluded)"
        figures.append(Labelled("", Figure(cached), meaning))
    if summary.not_needed:
        calls = "call" if summary.not_needed == 1 else "calls"
        meaning = f"{calls} saved: the verdict on the case was certain"
        figures.append(Labelled("", Figure(summary.not_needed), meaning))
    if summary.retried:
        figures.append(Labelled("retried", Figure(summary.retried)))
    judge = summary.judge
    if len(judge.judges) > 1 and judge.calls:
        figures.append(Labelled("judged", Figure(judge.judged), f"by {judge.calls:,} votes"))
    elif judge.calls:
        figures.append(Labelled("judged", Figure(judge.calls)))
    if judge.unreached:
        figures.append(Labelled("judge unreachable", Figure(judge.unreached)))
    return figures
