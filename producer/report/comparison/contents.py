"""What the reports of a comparison are made from: two sides, their pairs in groups, and what differs."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import Any, Final, NamedTuple

from msgspec import UNSET

from producer.aggregate.compared_items import KEY_PARTS, ComparedItem, Items, label
from producer.aggregate.comparison import GOOD, CompareDocument, ComparedSide, Comparison, Pair
from producer.aggregate.statistics import mcnemar, percentiles
from producer.report.comparison.configurations import PROMPT, RECORDED
from producer.report.comparison.input_differences import InputDifferences, input_differences
from producer.report.comparison.item_texts import ItemTexts, TextStore
from producer.report.comparison.setting_differences import Placed, Setting, differing
from shared.kinds import TURNS, Kind
from shared.names import Outcome

MOST_GROUPS: Final = 100
"""Most models, prompts or tags with a group of their own."""


@dataclass(slots=True)
class PairGroup:
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


def groups_of(found: Comparison) -> dict[str, list[PairGroup]]:
    """Groups the pairs of a comparison.

    Returns:
        Groups by what they are (`model`, `prompt`, `tag`, or `category` of queries), most pairs first;
        nothing where all pairs belong to one.
    """
    groups: dict[str, dict[str, PairGroup]] = {}
    for pair in found.pairs.all():
        for facet, name in facets_of(found, pair[1]):
            named = groups.setdefault(facet, {})
            if name in named or len(named) < MOST_GROUPS:
                named.setdefault(name, PairGroup(name)).add(pair)
    return {
        facet: sorted(named.values(), key=lambda group: (-group.pairs, group.name))
        for facet, named in groups.items()
        if len(named) > 1 or next(iter(named.values())).pairs < found.counts.pairs
    }


def facets_of(found: Comparison, item: ComparedItem) -> Iterator[tuple[str, str]]:
    """Yields what an item is grouped by: the facet, and its value."""
    comparing = found.comparing
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


class Side(NamedTuple):
    """One side of a comparison."""

    name: str
    """The run's id, or the file."""
    source: str
    """Its input; empty if a report file does not name it."""
    kind: Kind
    items: Items
    is_final: bool
    """Whether it is complete."""
    texts: TextStore
    """Texts of its items."""
    began: str = ""
    """When it was submitted, or its first item began, as ISO text; empty where a report does not say."""
    configuration: Mapping[str, Any] | None = None
    """Settings by their names; None where a report does not contain them."""
    is_whole: bool = False
    """Whether these are all settings that make results differ."""
    is_stored: bool = False
    """Whether it is a run, and not a report of one."""
    bench: str = ""
    """What its bench is called; empty where it has no name."""
    label: str = ""
    """The name that it was given; empty without one."""
    page: str = ""
    """Where its own page is, if that is known: a path."""
    by: str = ""
    """`model` or `prompt` where this is a part of a run."""
    part: str = ""
    """Name of that model or prompt."""

    @property
    def run(self) -> str:
        """The run's id, or the file, without the part of it that is compared."""
        return self.name.removesuffix(f" {self.by} {self.part}") if self.by else self.name

    @property
    def title(self) -> str:
        """What it is called where its letter stands before it."""
        return self.part or self.label or self.name

    @property
    def is_recorded(self) -> bool:
        """Whether its answers were recorded, and no model was asked."""
        return bool((self.configuration or {}).get(RECORDED))

    def again(self, item: str) -> str:
        """Returns the command that asks an item again; empty where that cannot be done.

        >>> from shared.kinds import CASES
        >>> Side("run-1", "", CASES, Items([], 0), True, None, is_stored=True).again("case-3")
        'proctor retry run-1 --item case-3'
        """
        if not self.is_stored or not item or self.is_recorded or self.kind is TURNS:
            return ""
        return shlex.join(["proctor", "retry", self.run, "--item", item])

    def as_document(self) -> ComparedSide:
        """Returns it for programs."""
        return ComparedSide(self.name, self.source, self.label or UNSET)


class Shown(NamedTuple):
    """A pair as it is shown."""

    sort: str
    """`broken`, `fixed`, `changed`, or `text` where only the answer is another."""
    pair: Pair
    before: ItemTexts
    after: ItemTexts

    @property
    def name(self) -> str:
        """The item that both answered, as people read it."""
        return label(self.pair[1].key)


@dataclass(frozen=True)
class Contents:
    """All that a report of a comparison is made from."""

    document: CompareDocument
    """The comparison for programs."""
    found: Comparison
    sides: tuple[Side, Side]
    command: str
    """Compares the same again."""
    swapped: str = ""
    """Compares them the other way round; empty where that is not known."""

    @cached_property
    def facts(self) -> tuple[SideFacts, SideFacts]:
        """Figures of A and of B: outcomes, latency, cost."""
        one, other = (facts_of(side.items) for side in self.sides)
        return one, other

    @cached_property
    def groups(self) -> Mapping[str, Sequence[PairGroup]]:
        """Pairs by model, prompt and tag."""
        return groups_of(self.found)

    @cached_property
    def settings(self) -> list[Setting] | None:
        """Settings that differ; None where a report does not contain them."""
        before, after = (self._configuration(side) for side in self.sides)
        return None if before is None or after is None else differing(before, after)

    def other_input(self) -> str:
        """Returns a sentence on runs of different benches or files; empty where they may be of one."""
        named = [(side.bench, side.source) for side in self.sides]
        if named[0] == named[1] or not all(source for _, source in named):
            return ""
        one_recorded, other_recorded = (side.is_recorded for side in self.sides)
        if named[0][0] == named[1][0] and one_recorded != other_recorded:
            return ""  # one judges answers to the same bench, which the settings say
        one, other = (f"{bench} ({source})" if bench else source for bench, source in named)
        return f"These runs are of different inputs: A of {one}, B of {other}."

    def differences(self) -> str:
        """Returns a sentence on what differs between the two runs, beside their results."""
        if self.settings is None:
            return "The reports do not say how the runs were configured; compare runs by their ids to see it."
        inputs = self._inputs
        unit = self.found.comparing.unit
        parts = [*map(str, self.settings), *inputs.sentences(unit)] or inputs.unexplained(unit)
        if parts:
            number = "one thing differs" if len(parts) == 1 else f"{len(parts)} things differ"
            is_whole = all(side.is_whole for side in self.sides)
            number = number.capitalize() if is_whole else f"Of what the reports contain, {number}"
            return _ended(f"{number}: {'; '.join(parts)}")
        if inputs.unknown and not all(side.is_whole for side in self.sides):
            return "Of the settings in the reports, none differs; compare runs by their ids to see all."
        changes = any(self.found.pairs.differing())
        return f"No setting differs{self._cause(inputs)}" if changes else "No setting differs."

    @cached_property
    def _inputs(self) -> InputDifferences:
        """What was asked and judged otherwise, apart from what settings explain."""
        before, after = ((side.configuration or {}).get(PROMPT) for side in self.sides)
        return input_differences(self.found, before, after)

    def _configuration(self, side: Side) -> Mapping[str, Any] | None:
        """Returns the settings of a side; of models or prompts that were paired, under the same name."""
        found = side.configuration
        for at, names in enumerate((self.found.models, self.found.prompts)):
            if found is not None and names is not None:
                found = {
                    name: value.without(at) if isinstance(value, Placed) else value
                    for name, value in found.items()
                }
        return found

    def _cause(self, inputs: InputDifferences) -> str:
        """Returns what is left to explain the differences, after the words that no setting differs."""
        if inputs.unknown:
            return "; what was sent for each item is not known here."
        if all(side.is_recorded for side in self.sides):
            return ", and the recorded outputs are the same."
        configurations = [side.configuration or {} for side in self.sides]
        if self.found.kind is TURNS:
            if (
                any(each.get("namespace") for each in configurations)
                or self.found.pairs.only_a
                or self.found.pairs.only_b
            ):
                return ": what changed follows from other turns of these threads."
            if not any(each.get("model") for each in configurations):
                return ", and the turns are the same: another version of the rules decided."
        return ": what changed is chance, or happened behind the API."

    def pairs(self) -> Iterator[Shown]:
        """Yields pairs that differ: broken ones, fixed ones, changed ones, then those with another answer."""
        pairs = self.found.pairs
        for sort, found in (("broken", pairs.broken), ("fixed", pairs.fixed), ("changed", pairs.changed)):
            for pair in found:
                yield self.shown(sort, pair)
        for pair in pairs.same:
            shown = self.shown("text", pair)
            if shown.before.answer != shown.after.answer:
                yield shown

    def shown(self, sort: str, pair: Pair) -> Shown:
        """Reads the texts of a pair."""
        texts = (side.texts.read(item.place) for side, item in zip(self.sides, pair, strict=True))
        return Shown(sort, pair, *texts)


def _ended(text: str) -> str:
    """Ends a sentence, which a quoted one may have done.

    >>> _ended("models a → b"), _ended('prompt "A." → "B."')
    ('models a → b.', 'prompt "A." → "B."')
    """
    return text if text.endswith(('."', '!"', '?"')) else f"{text}."
