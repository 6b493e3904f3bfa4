"""What a terminal shows of a run of single items: how it ended, counts, latencies and errors."""

import json
from collections.abc import Sequence
from typing import Final

from producer.items.documents import ItemsRun
from producer.items.report.opened_rows import opened
from producer.report.cells import Size, plain
from producer.report.interfaces import Paint, RunOutcome, Screen, unpainted
from producer.report.run_title import head_of, last_lines
from producer.report.run_verdict import rated
from producer.text import duration, latency, plural, share
from shared.codecs.item_rows import ItemRow

COLUMNS: Final = ("item", "outcome", "attempts", "latency", "result")
"""Of the table of results."""


def headline(document: ItemsRun) -> str:
    """Writes in one line what the run is and how far it came."""
    counts, summary = document.counts, document.summary
    text = f"{document.state}: {plural(counts.total, 'item')}"
    if summary.duration_s is None:
        done = counts.done + counts.skipped
        return f"{text}, {done:,} done ({share(done, counts.total)})"
    return f"{text} in {duration(summary.duration_s)}"


def outcome(document: ItemsRun) -> RunOutcome:
    """Returns how many items passed, or have a result where nothing is checked."""
    return rated(document)


def summary_text(document: ItemsRun, paint: Paint = unpainted) -> str:
    """Writes counts, latencies and errors of a run.

    Args:
        document: as `producer.document` makes it.
        paint: colours the name of the run.
    """
    summary, counts = document.summary, document.counts
    lines = [paint(head_of(document), "bold"), ""]
    lines.append(" · ".join(f"{word} {number:,}" for word, number in counts.named().items()))
    if summary.latency_ms:
        latencies = summary.latency_ms.named().items()
        lines.append(f"latency: {', '.join(f'{name} {latency(time)}' for name, time in latencies)}")
    return "\n".join([*lines, *last_lines(document)])


def table_rows(rows: Sequence[ItemRow]) -> list[list[str]]:
    """Returns results as cells of a table with `COLUMNS`, safe to print."""
    return [
        [
            str(item.row.index),
            item.row.outcome.value,
            f"{item.row.attempts:,}",
            "" if item.row.latency_ms is None else latency(item.row.latency_ms),
            plain(
                f"{item.code}: {item.message}" if item.code else json.dumps(item.result, ensure_ascii=False),
                Size.CELL,
            ),
        ]
        for item in opened(rows)
    ]


SCREEN: Final = Screen(summary_text, headline, outcome, COLUMNS, table_rows, right=("attempts", "latency"))
"""What a terminal shows of a run."""
