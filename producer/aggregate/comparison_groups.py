"""Compares the two runs of a comparison by model, prompt and tag, and counts what each of them had; pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Final, NamedTuple

from producer import kinds
from producer.aggregate.compared_items import KEY_PARTS, ComparedItem, Items
from producer.aggregate.comparison import GOOD, Comparison, Pair
from producer.aggregate.statistics import mcnemar, percentiles
from shared.names import Outcome

MOST_GROUPS: Final = 100
"""Most models, prompts or tags with a group of their own."""


@dataclass(slots=True)
class Group:
    """The pairs of one model, prompt or tag."""

    name: str
    pairs: int = 0
    passed: list[int] = field(default_factory=lambda: [0, 0])
    """In A and in B."""
    fixed: int = 0
    broken: int = 0
    units: Counter[str] = field(default_factory=Counter)
    """Fixed less broken, by case or query, where something changed."""

    @property
    def p_value(self) -> float:
        """How often chance makes so uneven a split of its cases."""
        worse, better = (sum(net * sign > 0 for net in self.units.values()) for sign in (-1, 1))
        return mcnemar(worse, better).p_value

    def add(self, pair: Pair) -> None:
        """Counts a pair."""
        was_good, is_good = (item.outcome in GOOD for item in pair)
        self.pairs += 1
        self.passed[0] += was_good
        self.passed[1] += is_good
        self.fixed += is_good > was_good
        self.broken += is_good < was_good
        if is_good != was_good:
            self.units[pair[1].unit] += is_good - was_good


def groups_of(found: Comparison) -> dict[str, list[Group]]:
    """Groups the pairs of a comparison.

    Returns:
        Groups by what they are (`model`, `prompt`, `tag`, or `category` of queries), most pairs first;
        nothing where all pairs belong to one.
    """
    groups: dict[str, dict[str, Group]] = {}
    for pair in found.all_pairs():
        for facet, name in facets_of(found, pair[1]):
            named = groups.setdefault(facet, {})
            if name in named or len(named) < MOST_GROUPS:
                named.setdefault(name, Group(name)).add(pair)
    return {
        facet: sorted(named.values(), key=lambda group: (-group.pairs, group.name))
        for facet, named in groups.items()
        if len(named) > 1 or next(iter(named.values())).pairs < found.pairs
    }


def facets_of(found: Comparison, item: ComparedItem) -> Iterator[tuple[str, str]]:
    """Yields what an item is grouped by: the facet, and its value."""
    comparing = kinds.of(found.kind).compared().comparing
    if comparing.names_model:
        yield from ((facet, item.key[at]) for facet, at in KEY_PARTS.items() if item.key[at])
    yield from ((comparing.tag, tag) for tag in item.tags)


class SideFacts(NamedTuple):
    """What one run of a comparison had."""

    outcomes: Mapping[str, int]
    """Items by outcome, skipped ones included."""
    p95_ms: float | None
    """95th percentile of latencies, without errors and without answers from the cache."""
    timed: int
    """Items that it is of."""
    cost_usd: float | None
    """Of answers whose price is known; None where no price is."""
    each_usd: float | None
    """The mean of these."""

    @property
    def total(self) -> int:
        """All items."""
        return sum(self.outcomes.values())

    @property
    def good(self) -> int:
        """Items that did what they should."""
        return sum(number for outcome, number in self.outcomes.items() if outcome in GOOD)


def facts_of(side: Items) -> SideFacts:
    """Counts the items of one run."""
    outcomes = Counter(item.outcome for item in side.items)
    if side.skipped:
        outcomes[Outcome.SKIPPED.value] += side.skipped
    costs = _scores(side, "cost_usd")
    times = _scores(side, "latency_ms")
    total = fsum(costs)
    return SideFacts(
        outcomes,
        percentiles(times).get("p95"),
        len(times),
        total if costs else None,
        total / len(costs) if costs else None,
    )


def _scores(side: Items, name: str) -> Sequence[float]:
    return [item.scores[name] for item in side.items if name in item.scores]
