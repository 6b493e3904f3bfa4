"""Streams of served turns as pages have them: a line among the runs, totals of a day by the hour, turns."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Final, NamedTuple

from producer import kinds
from producer.report.shown_item import ShownItem
from producer.row_filter import RowFilter
from producer.text import count, latency, percent, plural, rate
from producer.turns.code_counts import decisions_of, errors_of, latency_of, rules_of
from producer.turns.documents import RULES
from producer.view.row_finder import BUDGET_S
from shared.kinds import TURNS
from shared.runs import TurnRow
from shared.runs.served import HourTotals, ServedPage, ServedRow, ServedStream, StreamState

DAY_HOURS: Final = 24
"""Hours that the page of a stream lists."""
NOTHING: Final = ""
PAGE: Final = 50
"""Turns that meet a filter, from which on a page looks no further."""


class StreamLine(NamedTuple):
    """A stream among the runs."""

    name: str
    today: str
    rate: str
    decisions: str


class HourLine(NamedTuple):
    """An hour in the table of a stream."""

    hour: str
    """In UTC."""
    cells: Sequence[str]
    """As many as `HEADINGS`."""


HEADINGS: Final = (
    "Turns", "Must", "Should", "Skip", "Errors", *(f"Rule {rule}" for rule in RULES), "p50", "p95", "p99",
)  # fmt: skip
"""Columns of the table of hours."""


class StreamCard(NamedTuple):
    """The totals of a stream."""

    name: str
    rate: str
    facts: Sequence[tuple[str, str]]
    hours: Sequence[HourLine]
    """The newest first, without those in which nothing ended."""


class TurnsList(NamedTuple):
    """A page of the latest turns."""

    items: Sequence[tuple[ShownItem, str]]
    """Each with its latency."""
    older: str
    """Name of the next page; empty after the last one."""
    is_newest: bool
    kept: str
    """How many turns are kept."""


def stream_line(state: StreamState) -> StreamLine:
    """Makes the line of a stream."""
    parts = [f"{count(number)} {word}" for word, number in decisions_of(state.today.turns).items()]
    return StreamLine(
        state.name, f"{plural(state.today.total, 'turn')} today", rate(state.per_s), ", ".join(parts)
    )


def stream_card(state: StreamState, hours: Sequence[HourTotals]) -> StreamCard:
    """Makes the totals of a stream.

    Args:
        state: of the stream.
        hours: the last ones, oldest first.
    """
    today, times = state.today, latency_of(state.today)
    facts = [("today", count(today.total))]
    for word, number in (decisions_of(today.turns) | {"errors": errors_of(today.turns)}).items():
        facts.append((word, f"{count(number)} ({percent(number / today.total)})" if number else "0"))
    if times:
        facts += [("p50", latency(times.p50)), ("p95", latency(times.p95)), ("p99", latency(times.p99))]
    listed = [_hour_line(hour) for hour in reversed(hours) if hour.total]
    return StreamCard(state.name, rate(state.per_s), facts, listed)


def turns_page(stream: ServedStream, before: str, wanted: RowFilter | None) -> ServedPage:
    """Reads a page of turns that meet a filter; where few do, it ends early, and the next one goes on.

    Args:
        stream: reads the turns.
        before: name of the page that it begins with.
        wanted: which turns; None: all.
    """
    page = stream.page(before)
    if wanted is None:
        return page
    facts_of, until_s = kinds.of(TURNS).facts(wanted.fields), monotonic() + BUDGET_S

    def fits(each: ServedRow) -> bool:
        facts = facts_of(each.row)
        facts.latency_ms = each.latency_ms
        return wanted.matches(facts)

    found = list(filter(fits, page.rows))
    while page.older and len(found) < PAGE and monotonic() < until_s:
        page = stream.page(page.older)
        found += filter(fits, page.rows)
    return ServedPage(found, page.older)


def turns_list(
    page: ServedPage, shown: Callable[[TurnRow], ShownItem], state: StreamState, *, is_newest: bool
) -> TurnsList:
    """Makes a page of turns.

    Args:
        page: as it was read.
        shown: makes an item of a row with its input.
        state: of the stream.
        is_newest: whether it is the first page.
    """
    items = [(shown(each.row), latency(each.latency_ms)) for each in page.rows]
    return TurnsList(items, page.older, is_newest, plural(state.kept, "turn"))


def _hour_line(hour: HourTotals) -> HourLine:
    codes = hour.turns
    numbers = (hour.total, *decisions_of(codes).values(), errors_of(codes), *rules_of(codes).values())
    times = latency_of(hour)
    moment = datetime.fromtimestamp(hour.at_ms / 1000, UTC)
    cells = [count(number) if number else NOTHING for number in numbers]
    return HourLine(f"{moment:%b %d %H:00}", [*cells, *map(latency, (times.p50, times.p95, times.p99))])
