"""Draws a run as HTML for a notebook: verdict, rate with its interval, figures, and the first failures."""

from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Final

from proctor.errors import ProctorError

if TYPE_CHECKING:
    from proctor.runs import Row, Run

FAILURES: Final = 3
"""Failures that are shown."""
CHARS: Final = 300
"""Longest text of a cell."""


def html_of(run: "Run") -> str:
    """Draws a run as it was last read, with failures as they are in the ledger."""
    name = run.document.get("name") or run.summary.get("name") or run.id
    head = f"<b>{_text(name)}: {_text(run.verdict or run.state)}</b>"
    figures = "".join(
        f"<tr><td>{_text(of)}</td><td>{_text(figure)}</td></tr>" for of, figure in _figures(run)
    )
    failures = "".join(_failure(row) for row in _failed(run))
    if failures:
        columns = "".join(f"<th>{column}</th>" for column in ("failed", "model", "answer", "reason"))
        failures = f"<table><tr>{columns}</tr>{failures}</table>"
    return f"{head}<table>{figures}</table>{failures}<code>proctor open {_text(run.id)}</code>"


def _figures(run: "Run") -> Iterator[tuple[str, str]]:
    """Yields what is known of the run, each with its name."""
    rates = run.summary.get("rates", {})
    rate = rates.get("pass_rate")
    if rate and rate.get("value") is not None:
        low, high = rate.get("low"), rate.get("high")
        interval = "" if low is None else f" ({low:.1%} to {high:.1%})"
        yield "pass rate", f"{rate['value']:.1%}{interval}"
    yield from ((name, f"{count:,}") for name, count in run.counts.items() if count)
    if (duration := run.summary.get("duration_s")) is not None:
        yield "duration", f"{duration:,.1f} s"
    if run.cost_usd is not None:
        yield "cost", f"${run.cost_usd:,.4f}"


def _failed(run: "Run") -> "list[Row]":
    """Returns the first rows that did not pass; none where they cannot be read."""
    if not run.counts.get("failed") and not run.counts.get("error"):
        return []
    try:
        return list(islice(run.select(failed=True), FAILURES))
    except ProctorError:
        return []


def _failure(row: "Row") -> str:
    cells = (row.case_id or row.item_id, row.model or "", row.output or "", row.reason)
    return "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"


def _text(value: object) -> str:
    """Writes a value as text of a page, shortened."""
    text = str(value)
    return escape(text if len(text) <= CHARS else f"{text[:CHARS]}…")
