"""Writes the summary of a turns run for a terminal: plain text, made from the document alone."""

from collections.abc import Mapping, Sequence
from typing import Final

from producer.report.cells import Size, plain
from producer.report.interfaces import Paint, Screen, unpainted
from producer.report.run_title import head_of, last_lines
from producer.turns.documents import TurnsRun
from producer.turns.report.opened_rows import opened
from producer.turns.report.wording import RULES, call_remarks, headline, outcome, remarks
from producer.turns.totals import share
from shared.runs import TurnRow

BAR_CHARS: Final = 30
"""A bar of a whole run."""
COLUMNS: Final = ("item", "thread", "message", "outcome", "decision", "rule", "freeze", "summary", "why")
"""Of the table of results."""


def summary_text(document: TurnsRun, paint: Paint = unpainted) -> str:
    """Writes decisions, rules, freezes, summaries and errors of a run.

    Args:
        document: as `producer.document` makes it.
        paint: colours the name of the run and the bars.
    """
    summary, counts = document.summary, document.counts
    lines = [paint(head_of(document), "bold"), ""]
    lines += _bars(summary.decisions, counts.decided, paint)
    rules = {f"{rule} {words}": summary.rules[rule] for rule, words in RULES.items()}
    lines += ["", *_bars(rules, counts.decided, paint), ""]
    lines.append(" · ".join(f"{word} {number}" for word, number in remarks(document)))
    if calls := call_remarks(document):
        model = plain(summary.model or "", Size.CELL)
        lines.append(" · ".join([f"model {model}", *(f"{word} {number}" for word, number in calls)]))
    return "\n".join([*lines, *last_lines(document)])


def table_rows(rows: Sequence[TurnRow]) -> list[list[str]]:
    """Returns results as cells of a table with `COLUMNS`, safe to print."""
    return [
        [
            row.item_id,
            *(plain(text, Size.CELL) for text in (result.thread_id, result.message_id)),
            row.outcome.value,
            result.decision or "",
            str(result.rule or ""),
            "frozen" if result.peak_guardrail_active else "",
            "updated" if result.summary_updated else "",
            plain(f"{row.error.code}: {row.error.message}" if row.error else result.reason, Size.CELL),
        ]
        if (result := row.result)
        else [row.item_id, "", "", row.outcome.value, "", "", "", "", ""]
        for row in opened(rows)
    ]


def _bars(counts: Mapping[str, int], whole: int, paint: Paint) -> list[str]:
    """Writes counts one under the other, with their share and a bar."""
    names = max(len(name) for name in counts)
    digits = max(len(f"{count:,}") for count in counts.values())
    lines = []
    for name, count in counts.items():
        part = share(count, whole)
        bar = "█" * round(BAR_CHARS * part / 100)
        text = f"  {name:<{names}}  {count:>{digits},}  {part:5.1f}%"
        lines.append(f"{text}  {paint(bar, 'cyan')}" if bar else text)
    return lines


SCREEN: Final = Screen(
    summary_text,
    headline,
    outcome,
    COLUMNS,
    table_rows,
    spare=("message", "outcome", "item"),
    names=("thread", "message"),
    right=("rule",),
)
"""What a terminal shows of a turns run."""
