"""Writes what the two sides of a comparison are and had: names, times, sizes, rates, latencies and costs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from producer.report.comparison.contents import Contents, Side, SideFacts
from producer.report.comparison.wording import amount_of
from producer.text import bounds, cost, latency, many, percent, plural

LEAST_MS: Final = 10.0
"""Latency from which a change of it in percent is more than rounding."""


class SideFigures(NamedTuple):
    """One side, as all reports write it."""

    letter: str
    title: str
    """Its name, else the run's id or the file; of two parts of one run, the name of the model or prompt."""
    heading: str
    """What people call it: its name, else that of its bench, its input, or the file."""
    run_id: str
    """The run's id where the title is a name; else empty."""
    source: str
    """Its input."""
    run: str
    """The run's id or the file."""
    began: str
    """In UTC, to the minute."""
    later: str
    """How long after A it began; empty of A, and where that is not known."""
    size: str
    """How many items it has."""
    rate: str
    """Share of good items, with its 95% interval."""
    p95: str
    cost: str


def side_figures(contents: Contents) -> Sequence[SideFigures]:
    """Returns the figures of A and of B.

    Changes in percent are only written where both runs have the same items: totals and percentiles of runs
    of other sizes cannot be compared.
    """
    is_same, first = contents.found.counts.are_all_paired, contents.facts[0]
    return [
        _figures(contents, letter, side, facts, first if is_same and letter == "b" else None)
        for letter, side, facts in zip("ab", contents.sides, contents.facts, strict=True)
    ]


def _figures(
    contents: Contents, letter: str, side: Side, facts: SideFacts, before: SideFacts | None
) -> SideFigures:
    """Writes one side; `before` is what its figures may be compared with."""
    item, rates = contents.found.comparing.item, contents.found.pass_rate
    rate = rates.a if letter == "a" else rates.b
    return SideFigures(
        letter=letter.upper(),
        title=side.title,
        heading=side.part or side.label or (side.bench or side.source if side.is_stored else "") or side.name,
        run_id=side.run if side.title != side.name else "",
        source=side.source,
        run=side.run,
        began=_minute(side.began),
        later=_later(contents.sides[0].began, side.began) if letter == "b" else "",
        size=f"{facts.total:,}",
        rate=f"{percent(rate.value)} ({'-'.join(bounds(rate))})" if rate.n else f"no {many(item)}",
        p95=_p95(facts, before),
        cost=_cost(facts, before, item),
    )


def _p95(facts: SideFacts, before: SideFacts | None) -> str:
    """Writes the 95th percentile of latencies, and of how many where some items have none."""
    if facts.p95_ms is None:
        return ""
    if facts.timed < facts.total:
        return f"{latency(facts.p95_ms)} ({facts.timed:,} timed)"
    earlier = before.p95_ms if before and before.timed == before.total else None
    is_shown = earlier is not None and earlier >= LEAST_MS
    return latency(facts.p95_ms) + _change(earlier if is_shown else None, facts.p95_ms)


def _cost(facts: SideFacts, before: SideFacts | None, item: str) -> str:
    """Writes what a run cost in all, and for each answer whose price is known."""
    if facts.cost_usd is None or facts.each_usd is None:
        return ""
    each = amount_of("cost_usd", facts.each_usd)
    return f"{cost(facts.cost_usd)}, {each} per {item}{_change(before and before.each_usd, facts.each_usd)}"


def _change(before: float | None, after: float) -> str:
    """Writes how a figure changed; nothing where it did not.

    >>> _change(2.0, 2.5), _change(2.0, 2.0), _change(None, 1.0)
    (' (+25%)', '', '')
    """
    percent = round(100 * (after - before) / before) if before else 0
    return f" ({percent:+,}%)" if percent else ""


def _later(before: str, after: str) -> str:
    """Writes how long after another time a time is.

    >>> _later("2026-11-22T17:20:00Z", "2026-11-22T17:35:00Z"), _later("2026-11-22T17:20:00Z", "?")
    ('15 min later', '')
    >>> _later("2026-11-22T17:20:00Z", "2026-11-19T17:20:00Z")
    '3 days earlier'
    """
    try:
        one, other = (datetime.fromisoformat(text) for text in (before, after))
        minutes = round((other - one).total_seconds() / 60)
    except (ValueError, TypeError):  # no time, or one without a zone
        return ""
    size, word = abs(minutes), "later" if minutes > 0 else "earlier"
    for unit, of in (("day", 24 * 60), ("hour", 60)):
        if size >= 2 * of:
            return f"{plural(size // of, unit)} {word}"
    return f"{size:,} min {word}" if size else ""


def _minute(iso: str) -> str:
    """Writes a time.

    >>> _minute("2026-11-22T17:20:00.000Z"), _minute("2026-11-22T18:20:00+01:00"), _minute("?")
    ('2026-11-22 17:20', '2026-11-22 17:20', '?')
    """
    try:
        return f"{datetime.fromisoformat(iso).astimezone(UTC):%Y-%m-%d %H:%M}"
    except ValueError:
        return iso
