"""Builds the report of a turns run: decisions, rules, freezes, summaries and model calls."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from producer.report.figures import Column, Figure, Labelled, Name, ShownIn, Table, Unit
from producer.report.run_report import FigureLine, RunReport, headline_of, latencies, names_of
from producer.report.run_verdict import RunOutcome, verdict_with
from producer.text import plural, ranked
from producer.turns.documents import TurnsRun

SHARE: Final = "Share"
RULES: Final[Mapping[str, str]] = {
    "1": "summary changed",
    "2": "MUST signal",
    "3": "SHOULD signal",
    "4": "context pressure or drift",
    "5": "acknowledgment",
    "6": "default",
}
"""What each rule of the decision chain looks for."""


def run_report(document: TurnsRun) -> RunReport:
    """Returns what is said of a run."""
    summary, counts = document.summary, document.counts
    decisions = [(Name(name, "decision"), number) for name, number in summary.decisions.items()]
    rules = [(_rule(rule, words), summary.rules[rule]) for rule, words in RULES.items()]
    outcomes = [("peak freezes", summary.freezes), ("summaries updated", summary.summaries_updated)]
    if counts.skipped:
        outcomes.append(("skipped", counts.skipped))
    outcomes.append(("errors", counts.error))
    further = [("repeated requests", summary.repeated_requests), ("retried", summary.retried)]
    what = f"{plural(counts.total, 'turn')} of {plural(summary.threads, 'thread')}"
    speed = f"{summary.turns_per_s:,.0f} turns/s" if summary.turns_per_s else ""
    return RunReport(
        run=document,
        names=names_of(document),
        headline=headline_of(document, what, per_s=speed),
        verdict=verdict_with(document, _outcome(document)),
        outcomes=[Labelled(word, Figure(number)) for word, number in outcomes],
        figures=[Labelled(word, Figure(number)) for word, number in further if number],
        lines=_calls(document),
        tables=[
            _shares("Decision", decisions, counts.decided),
            _shares("Rule", rules, counts.decided),
            _errors(document),
        ],
    )


def _outcome(document: TurnsRun) -> RunOutcome:
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


def _rule(rule: str, words: str) -> Name:
    """Names a rule, by which the page filters its turns."""
    return Name(f"{rule} {words}", "rule")


def _shares(noun: str, counts: Sequence[tuple[Name, int]], whole: int) -> Table:
    """Makes a table of counts with their shares."""
    columns: Sequence[Column[tuple[Name, int]]] = (
        Column(noun, lambda each: each[0]),
        Column("Turns", lambda each: Figure(each[1]), is_kept=True),
        Column(SHARE, lambda each: Figure(each[1] / whole if whole else 0.0, Unit.SHARE)),
    )
    return Table(
        title=f"{noun}s", link=f"{noun}s", columns=columns, places=ShownIn.EVERYWHERE, bars=SHARE
    ).filled(counts)


def _errors(document: TurnsRun) -> Table:
    """Makes a table of errors by their codes."""
    columns: Sequence[Column[tuple[str, int]]] = (
        Column("Error", lambda each: Name(each[0], "code")),
        Column("Turns", lambda each: Figure(each[1])),
    )
    return Table(title="Errors", columns=columns, places=ShownIn.FILES).filled(
        ranked(document.summary.errors)
    )


def _calls(document: TurnsRun) -> list[FigureLine]:
    """Returns what the model calls of a live run came to; nothing of other runs."""
    calls, summary = document.summary.calls, document.summary
    if not calls:
        return []
    counted = {
        "cached answers": calls.from_cache,
        "calls given up": calls.given_up,
        "replies without a JSON object": calls.unread or 0,
        "invalid summaries proposed": calls.invalid_shapes or 0,
    }
    figures = [
        Labelled("model", summary.model or ""),
        Labelled("asked for", summary.live or ""),
        Labelled("calls made", Figure(calls.made)),
        Labelled("calls avoided", Figure(calls.avoided)),
        *(Labelled(word, Figure(number)) for word, number in counted.items() if number),
    ]
    if calls.cost_usd is not None:
        unknown = f"and {plural(calls.cost_unknown, 'call')} of unknown price" if calls.cost_unknown else ""
        figures.append(Labelled("paid", Figure(calls.cost_usd, Unit.USD), unknown))
    elif calls.made:
        figures.append(Labelled("paid", Figure(missing="unknown")))
    tokens = {"tokens in": calls.prompt_tokens, "tokens out": calls.completion_tokens}
    figures += [Labelled(word, Figure(number)) for word, number in tokens.items() if number]
    times = latencies(calls.latency_ms) if calls.latency_ms else []
    return [FigureLine(figures), *times]
