"""Draws what became of the pairs of a comparison: broken and fixed ones, in all and by group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from producer.aggregate.compared_items import KEY_PARTS
from producer.report.comparison.contents import Contents
from producer.report.comparison.contents import PairGroup as Split
from producer.report.comparison.wording import listed_transitions, noun
from producer.report.html.rendering import fill
from producer.text import plural
from shared.names import Outcome

TEMPLATE: Final = "comparison/page.html.j2"
MOST_GROUPS: Final = 8
"""Models or prompts beside the flips; the table below has all."""
LEAST_BLOCKS: Final = 3
"""Changes that a picture shows better than the words below it."""
BLOCKS: Final = 30
"""Changes up to which each is a block of its own."""
BAR_WIDTH: Final = 580


class Bar(NamedTuple):
    """A part of the picture of what was broken and fixed."""

    tone: str
    x: float
    width: float


@dataclass(slots=True)
class Flips:
    """The picture of what was broken and fixed, with its legend."""

    bars: Sequence[Bar]
    zero: float
    label: str
    legend: Sequence[tuple[str, str]]
    rest: Sequence[str]
    low: int
    """Where the scale of the groups begins, in percent."""
    width: int = BAR_WIDTH


class Dumbbell(NamedTuple):
    """A row of the dumbbell plot: a group with its rates in A and B."""

    name: str
    changes: str
    passed: Sequence[str]
    pairs: str
    at: tuple[float, float]
    tone: str
    label: str


def flips(contents: Contents, texts: int) -> bytes:
    """Writes what became of the pairs, beside it by model or prompt."""
    document, counts = contents.found, contents.found.counts
    broken, fixed, changed = counts.broken, counts.fixed, counts.changed
    facet = facet_beside(contents)
    splits = contents.groups.get(facet, ())
    shown = splits[:MOST_GROUPS]
    rates = [passed / split.pairs for split in shown for passed in split.passed]
    low = max(0, int(10 * min(rates, default=0) - 0.5)) * 10
    rest = _unchanged(contents) + (
        [f"{texts:,} of them with {text_words(noun(document))[2]}"] if texts else []
    )
    if changed:
        rest = [
            f"{changed:,} changed ({listed_transitions(document)})"
            if not broken and not fixed
            else f"{changed:,} changed",
            *rest,
        ]
    if bool(broken) != bool(fixed):
        rest = [f"nothing {'fixed' if broken else 'broken'}", *rest]
    drawn = Flips(
        *_bars(broken, fixed),
        label=f"{broken:,} broken, {fixed:,} fixed, {counts.unchanged:,} with the same outcome",
        legend=[
            *[("f", f"✗ {broken:,} broken")] * bool(broken),
            *[("p", f"✓ {fixed:,} fixed")] * bool(fixed),
        ],
        rest=rest,
        low=low,
    )
    title = f"{plural(counts.pairs, noun(document))}, by outcome"
    dumbbells = [_dumbbell(split, low) for split in shown]
    more = f"all {len(splits):,}" if len(splits) > MOST_GROUPS else ""
    return fill(TEMPLATE, "flips", drawn, title, facet, dumbbells, more)


def facet_beside(contents: Contents) -> str:
    """Returns what the pairs are grouped by beside the flips; empty for nothing."""
    return next((facet for facet in contents.groups if facet in KEY_PARTS), next(iter(contents.groups), ""))


def _unchanged(contents: Contents) -> list[str]:
    """Counts what kept its outcome."""
    unchanged = contents.found.unchanged
    total = sum(unchanged.values())
    if not total:
        return []
    good = sum(number for word, number in unchanged.items() if word in {Outcome.PASSED, Outcome.DECIDED})
    parts = (
        f"{good:,} {contents.found.comparing.good}, {total - good:,} not"
        if good < total
        else "all " + contents.found.comparing.good
    )
    return [f"{total:,} with the same outcome ({parts})"]


def _bars(broken: int, fixed: int) -> tuple[list[Bar], float]:
    """Draws changes on the scale of the changes: a block for each where they are few.

    >>> _bars(1, 2)[1], [bar.tone for bar in _bars(1, 2)[0]], len(_bars(1_000, 0)[0]), _bars(1, 0)
    (34.0, ['f', 'p', 'p'], 1, ([], 0.0))
    """
    total = broken + fixed
    if total < LEAST_BLOCKS:
        return [], 0.0
    unit = min(34.0, BAR_WIDTH / total)
    zero = broken * unit
    if total > BLOCKS:
        bars = [Bar("f", 0.0, zero - 1), Bar("p", zero + 1, fixed * unit - 1)]
        return [bar for bar in bars if bar.width > 0], zero
    gap = min(4.0, unit / 5)
    lefts = [Bar("f", number * unit + gap / 2, unit - gap) for number in range(broken)]
    return lefts + [Bar("p", zero + number * unit + gap / 2, unit - gap) for number in range(fixed)], zero


def _dumbbell(split: Split, low: int) -> Dumbbell:
    """Draws a group: two rates on a scale from `low` to 100 percent."""
    rates = [passed / split.pairs for passed in split.passed]
    one, other = (200 * (100 * rate - low) / (100 - low) for rate in rates)
    tone = "p" if rates[1] > rates[0] else "f" if rates[1] < rates[0] else ""
    parts = [f"{split.broken:,} broken"] * bool(split.broken) + [f"{split.fixed:,} fixed"] * bool(split.fixed)
    changes = ", ".join([*parts, f"p\u00a0{_p(split.p_value)}"]) if parts else "nothing broken or fixed"
    label = f"{100 * rates[0]:.0f}% to {100 * rates[1]:.0f}%"
    passed = [f"{number:,}" for number in split.passed]
    return Dumbbell(split.name, changes, passed, f"{split.pairs:,}", (one, other), tone, label)


def _p(value: float) -> str:
    return "<\u00a00.001" if value < 0.001 else f"=\u00a0{value:.2g}"  # noqa: PLR2004 - less says no more


def text_words(item: str) -> tuple[str, str, str]:
    """Names pairs of which only the text is another: on a chip, in a heading, in a count."""
    if item == "turn":
        return (
            "Decision the same",
            "the same decision, but another reason or summary",
            "another reason or summary",
        )
    return "Text changed", "the same outcome, but another text", "another text"
