"""Writes what the HTML report of a turns run has beside its rows: verdict, decisions, rules, calls."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from producer.report.cells import plain
from producer.report.html.rendering import fill
from producer.report.html.viewer import Page, begin
from producer.report.run_verdict import verdict_with
from producer.text import latency, plural
from producer.turns.documents import DECISIONS, TurnsRun
from producer.turns.report.html_rows import TEMPLATE
from producer.turns.report.wording import RULES, call_remarks, headline, outcome, remarks
from producer.turns.totals import share
from shared import __version__
from shared.runs import RunInfo

FOLDER: Final = "turns/report"
_IN_VERDICT: Final = frozenset({"peak freezes", "summaries updated", "errors", "skipped"})


def opening(document: TurnsRun, info: RunInfo, looks: Sequence[str], *, frozen_threads: int) -> bytes:
    """Writes a page up to its verdict.

    Args:
        document: the run's.
        info: the run.
        looks: sentences on what to look at.
        frozen_threads: threads with a freeze.
    """
    verdict = verdict_with(document, outcome(document))
    threads = plural(document.summary.threads, "thread")
    peaks = [f"Peaks froze turns in {frozen_threads:,} of {threads}."] if frozen_threads else []
    left = [f"{word} {number}" for word, number in remarks(document) if word not in _IN_VERDICT]
    page = Page(
        "turns",
        plain(info.title) or info.run,
        info.run,
        verdict.tone,
        verdict.heading,
        [*verdict.clauses, *peaks, *filter(None, looks)],
        [headline(document), *left],
        links=[("Decisions and rules", "#decisions"), ("About", "#about")],
        folder=FOLDER,
    )
    return begin(page)


def summary_of(document: TurnsRun) -> bytes:
    """Writes decisions, rules and model calls."""
    summary, decided = document.summary, document.counts.decided
    decisions = [(name, number, _share(number, decided)) for name, number in _decisions(document)]
    rules = [
        (rule, words, summary.rules[rule], _share(summary.rules[rule], decided))
        for rule, words in RULES.items()
    ]
    return fill(TEMPLATE, "summary", decisions, rules, _calls(document))


def facts_of(document: TurnsRun, info: RunInfo) -> list[tuple[str, str]]:
    """Lists what was run and with which settings, to reproduce or check it."""
    summary = document.summary
    created = datetime.fromtimestamp(info.created_ms / 1000, UTC)
    facts = [
        ("run", f"{info.run} ({document.state})"),
        ("input", info.source),
        ("submitted", f"{created:%Y-%m-%d %H:%M:%S} UTC"),
        ("threads belong to", "this run alone" if info.namespace == info.run else info.namespace),
        ("summary policy", summary.summary_policy),
        ("model", summary.model or ""),
        ("asked for", summary.live or ""),
        ("all results", f"proctor results {info.run} --format jsonl"),
        ("written by", f"Proctor {__version__}, document version {document.schema_version}"),
    ]
    return [(name, value) for name, value in facts if value]


def _decisions(document: TurnsRun) -> list[tuple[str, int]]:
    """Turns by decision."""
    return [(name, document.summary.decisions[name]) for name in DECISIONS]


def _calls(document: TurnsRun) -> list[tuple[str, str]]:
    """Returns what the model calls of a live run came to; nothing of other runs."""
    calls, summary = call_remarks(document), document.summary
    if not calls:
        return []
    found = [("model", summary.model or ""), ("asked for", summary.live or ""), *calls]
    if summary.calls and summary.calls.latency_ms:
        times = ", ".join(
            f"{name} {latency(time)}" for name, time in summary.calls.latency_ms.named().items()
        )
        found.append(("latency", f"{times} (n = {summary.calls.latency_n:,})"))
    return found


def _share(part: int, whole: int) -> str:
    """Writes a share in percent."""
    return f"{share(part, whole):.1f}%"
