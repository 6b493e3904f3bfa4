"""The words that people read about a turns run, the same on the screen and in Markdown."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from producer.aggregate.turns import ranked
from producer.report.interfaces import Outcome
from producer.text import cost, duration, plural, share

RULES: Final[Mapping[str, str]] = {
    "1": "summary changed",
    "2": "MUST signal",
    "3": "SHOULD signal",
    "4": "context pressure or drift",
    "5": "acknowledgment",
    "6": "default",
}
"""What each rule of the decision chain looks for."""


def headline(document: Mapping[str, Any]) -> str:
    """Returns a line with the run and how far it came.

    >>> headline({"state": "finished", "counts": {"total": 2, "decided": 2, "error": 0, "skipped": 0},
    ...           "summary": {"threads": 1, "duration_s": 0.5, "turns_per_s": 4.0}})
    'finished: 2 turns of 1 thread in 0.5 s (4 turns/s)'
    """
    counts, summary = document["counts"], document["summary"]
    text = f"{document['state']}: {plural(counts['total'], 'turn')} of {plural(summary['threads'], 'thread')}"
    if summary["duration_s"] is None:
        done = counts["decided"] + counts["error"]
        return f"{text}, {done:,} done ({share(done, counts['total'])})"
    text += f" in {duration(summary['duration_s'])}"
    return f"{text} ({summary['turns_per_s']:,.0f} turns/s)" if summary["turns_per_s"] else text


def outcome(document: Mapping[str, Any]) -> Outcome:
    """Returns how many turns were decided and how, and what became of summaries and model calls.

    >>> counts = {"total": 3, "decided": 3, "error": 0, "skipped": 0}
    >>> summary = {"decisions": {"must": 1, "should": 2, "skip": 0}, "freezes": 1, "summaries_updated": 2,
    ...     "errors": {}}
    >>> found = outcome({"counts": counts, "summary": summary})
    >>> found.text
    'all 3 turns decided: 1 must, 2 should'
    >>> found.why
    ['Summaries changed on 2 turns and were held back on 1 (peak freeze).']
    """
    counts, summary = document["counts"], document["summary"]
    decided, total = counts["decided"], counts["total"]
    decisions = ", ".join(f"{number:,} {name}" for name, number in summary["decisions"].items() if number)
    if total and decided == total:
        text = f"{'all ' * (total > 1)}{plural(total, 'turn')} decided: {decisions}"
    else:
        text = f"{decided:,} of {plural(total, 'turn')} decided" if total else "no turns"
        if decisions:
            text += f" ({decisions})"
    return Outcome(text, why=list(_sentences(document)))


def _sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields what became of summaries, errors by their codes, and model calls."""
    summary = document["summary"]
    updated, freezes = summary["summaries_updated"], summary["freezes"]
    if document["counts"]["decided"]:
        changed = f"Summaries changed on {plural(updated, 'turn')}" if updated else "No summary changed"
        held = f" and were held back on {freezes:,} (peak freeze)." if updated else ""
        held = held or f"; {plural(freezes, 'turn')} {'was' if freezes == 1 else 'were'} frozen at a peak."
        yield changed + (held if freezes else "; no peak freezes.")
    if summary["errors"]:
        yield f"Errors: {', '.join(f'{code} {number:,}' for code, number in ranked(summary['errors']))}."
    if calls := summary.get("calls"):
        yield f"{plural(calls['avoided'], 'model call')} avoided, {calls['made']:,} made."


def remarks(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns further counts with their labels."""
    summary, counts = document["summary"], document["counts"]
    labelled = [
        ("peak freezes", summary["freezes"], True),
        ("summaries updated", summary["summaries_updated"], True),
        ("repeated requests", summary["repeated_requests"], False),
        ("retried", summary["retried"], False),
        ("skipped", counts["skipped"], False),
        ("errors", counts["error"], True),
    ]
    return [(word, f"{number:,}") for word, number, is_always_shown in labelled if number or is_always_shown]


def call_remarks(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names what the model calls of a live run came to; nothing of other runs.

    >>> summary = {"calls": {"made": 3, "from_cache": 0, "avoided": 2, "given_up": 0, "cost_usd": 0.0125,
    ...     "cost_unknown": 0, "prompt_tokens": 900, "completion_tokens": 60}}
    >>> [word for word, _ in call_remarks({"summary": summary})]
    ['calls made', 'calls avoided', 'paid', 'tokens in', 'tokens out']
    """
    calls = document["summary"].get("calls")
    if not calls:
        return []
    counted = [("calls made", calls["made"]), ("calls avoided", calls["avoided"])]
    if calls["from_cache"]:
        counted.append(("cached answers", calls["from_cache"]))
    if calls["given_up"]:
        counted.append(("calls given up", calls["given_up"]))
    if calls.get("unread"):
        counted.append(("replies without a JSON object", calls.get("unread")))
    counted += [("invalid summaries proposed", calls.get("invalid_shapes"))] * bool(
        calls.get("invalid_shapes")
    )
    remarked = [(word, f"{number:,}") for word, number in counted]
    if calls["cost_usd"] is not None:
        unknown = f" and {plural(calls['cost_unknown'], 'call')} of unknown price" * bool(
            calls["cost_unknown"]
        )
        remarked.append(("paid", f"{cost(calls['cost_usd'])}{unknown}"))
    elif calls["made"]:
        remarked.append(("paid", "unknown"))
    tokens = [("tokens in", calls["prompt_tokens"]), ("tokens out", calls["completion_tokens"])]
    return remarked + [(word, f"{number:,}") for word, number in tokens if number]
