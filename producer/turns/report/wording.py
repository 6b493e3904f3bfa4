"""The words that people read about a turns run, the same on the screen and in Markdown."""

from collections.abc import Iterator, Mapping
from typing import Final

from producer.report.interfaces import RunOutcome
from producer.text import cost, duration, plural, share
from producer.turns.documents import TurnsRun
from producer.turns.totals import ranked

RULES: Final[Mapping[str, str]] = {
    "1": "summary changed",
    "2": "MUST signal",
    "3": "SHOULD signal",
    "4": "context pressure or drift",
    "5": "acknowledgment",
    "6": "default",
}
"""What each rule of the decision chain looks for."""


def headline(document: TurnsRun) -> str:
    """Returns a line with the run and how far it came."""
    counts, summary = document.counts, document.summary
    text = f"{document.state}: {plural(counts.total, 'turn')} of {plural(summary.threads, 'thread')}"
    if summary.duration_s is None:
        return f"{text}, {counts.done:,} done ({share(counts.done, counts.total)})"
    text += f" in {duration(summary.duration_s)}"
    return f"{text} ({summary.turns_per_s:,.0f} turns/s)" if summary.turns_per_s else text


def outcome(document: TurnsRun) -> RunOutcome:
    """Returns how many turns were decided and how, and what became of summaries and model calls."""
    counts, summary = document.counts, document.summary
    decided, total = counts.decided, counts.total
    decisions = ", ".join(f"{number:,} {name}" for name, number in summary.decisions.items() if number)
    if total and decided == total:
        text = f"{'all ' if total > 1 else ''}{plural(total, 'turn')} decided: {decisions}"
    else:
        text = f"{decided:,} of {plural(total, 'turn')} decided" if total else "no turns"
        if decisions:
            text += f" ({decisions})"
    return RunOutcome(text, why=list(_sentences(document)))


def _sentences(document: TurnsRun) -> Iterator[str]:
    """Yields what became of summaries, errors by their codes, and model calls."""
    summary = document.summary
    updated, freezes = summary.summaries_updated, summary.freezes
    if document.counts.decided:
        changed = f"Summaries changed on {plural(updated, 'turn')}" if updated else "No summary changed"
        held = f" and were held back on {freezes:,} (peak freeze)." if updated else ""
        held = held or f"; {plural(freezes, 'turn')} {'was' if freezes == 1 else 'were'} frozen at a peak."
        yield changed + (held if freezes else "; no peak freezes.")
    if summary.errors:
        yield f"Errors: {', '.join(f'{code} {number:,}' for code, number in ranked(summary.errors))}."
    if calls := summary.calls:
        yield f"{plural(calls.avoided, 'model call')} avoided, {calls.made:,} made."


def remarks(document: TurnsRun) -> list[tuple[str, str]]:
    """Returns further counts with their labels."""
    summary, counts = document.summary, document.counts
    labelled = [
        ("peak freezes", summary.freezes, True),
        ("summaries updated", summary.summaries_updated, True),
        ("repeated requests", summary.repeated_requests, False),
        ("retried", summary.retried, False),
        ("skipped", counts.skipped, False),
        ("errors", counts.error, True),
    ]
    return [(word, f"{number:,}") for word, number, is_always_shown in labelled if number or is_always_shown]


def call_remarks(document: TurnsRun) -> list[tuple[str, str]]:
    """Names what the model calls of a live run came to; nothing of other runs."""
    calls = document.summary.calls
    if not calls:
        return []
    counted = {
        "cached answers": calls.from_cache,
        "calls given up": calls.given_up,
        "replies without a JSON object": calls.unread or 0,
        "invalid summaries proposed": calls.invalid_shapes or 0,
    }
    remarked = [("calls made", f"{calls.made:,}"), ("calls avoided", f"{calls.avoided:,}")]
    remarked += [(word, f"{number:,}") for word, number in counted.items() if number]
    if calls.cost_usd is not None:
        unknown = f" and {plural(calls.cost_unknown, 'call')} of unknown price" if calls.cost_unknown else ""
        remarked.append(("paid", f"{cost(calls.cost_usd)}{unknown}"))
    elif calls.made:
        remarked.append(("paid", "unknown"))
    tokens = {"tokens in": calls.prompt_tokens, "tokens out": calls.completion_tokens}
    return remarked + [(word, f"{number:,}") for word, number in tokens.items() if number]
