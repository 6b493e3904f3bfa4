"""A comparison as values, which terminal, Markdown and page write: sides, figures, pairs, what differs."""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from math import fsum
from typing import Final, NamedTuple

from msgspec import UNSET

from producer.aggregate.compared_items import KEY_PARTS, ComparedItem, Items
from producer.aggregate.comparison import GOOD, CompareDocument, ComparedSide, Comparison, Pair
from producer.aggregate.statistics import mcnemar, percentiles
from producer.report.cells import Size, plain
from producer.report.comparison.configurations import RECORDED
from producer.report.comparison.item_texts import ItemTexts, TextStore
from producer.report.comparison.setting_differences import Setting, Settings, differing, settings_at
from producer.report.comparison.wording import amount_of
from producer.text import bounds, cost, latency, many, percent, plural
from shared.kinds import TURNS, Kind
from shared.names import Outcome

MOST_GROUPS: Final = 100
"""Most models, prompts or tags with a group of their own."""
MOST_NAMED: Final = 3
"""Cases that are named one by one."""


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
    began: str = ""
    """When it was submitted, or its first item began, as ISO text; empty where a report does not say."""
    configuration: Settings | None = None
    """None where a report does not contain any."""
    is_stored: bool = True
    """Whether it is a run with all of its settings, and not a report with some."""
    bench: str = ""
    """What its bench is called; empty where it has no name."""
    label: str = ""
    """The name that it was given; empty without one."""
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

    def as_document(self) -> ComparedSide:
        """Returns it for programs."""
        return ComparedSide(self.name, self.source, self.label or UNSET)


class SideFigures(NamedTuple):
    """One side, as all reports write it."""

    letter: str
    title: str
    heading: str
    """What people call it: its name, else that of its bench, its input, or the file."""
    run_id: str
    """The run's id where the title is a name; else empty."""
    source: str
    run: str
    """The run's id or the file."""
    began: str
    """In UTC, to the minute."""
    total: int
    good: int
    rate: str
    """Share of good items, with its 95% interval."""
    errors: int
    skipped: int
    p95: str
    cost: str


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

    @property
    def cells(self) -> list[str]:
        """Its numbers as a row of a table: pairs, good in A and in B, broken, fixed, p."""
        numbers = (self.pairs, *self.passed, self.broken, self.fixed)
        return [*(f"{number:,}" for number in numbers), f"{self.p_value:.2g}"]

    def add(self, pair: Pair) -> None:
        """Counts a pair."""
        was_good, is_good = (item.outcome in GOOD for item in pair)
        self.pairs += 1
        self.passed[0] += was_good
        self.passed[1] += is_good
        self.fixed += is_good > was_good
        self.broken += is_good < was_good
        if is_good != was_good and not pair.has_other_expectation:
            self.units[pair.after.unit] += is_good - was_good


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
        return self.pair.after.label

    @property
    def reason(self) -> str:
        """Why B did not pass, else why A did not."""
        return self.after.reason or (f"was: {self.before.reason}" if self.before.reason else "")

    @property
    def edits(self) -> list[str]:
        """What of the item is not the same in both."""
        found = (
            (self.pair.has_other_expectation, "expectation changed"),
            (self.pair.has_other_input, "input changed"),
        )
        return [words for is_edited, words in found if is_edited]


@dataclass(frozen=True)
class Contents:
    """All that a report of a comparison is made from."""

    document: CompareDocument
    """The comparison for programs."""
    found: Comparison
    sides: tuple[Side, Side]
    command: str
    """Compares the same again."""
    address: Callable[[str, str], str] | None = None
    """Makes the address of an item's page of its run and its id there; None: they have no pages."""

    @cached_property
    def figures(self) -> tuple[SideFigures, SideFigures]:
        """Figures of A and of B."""
        return self._figures("A", self.sides[0]), self._figures("B", self.sides[1])

    @cached_property
    def groups(self) -> Mapping[str, Sequence[PairGroup]]:
        """Pairs by `model`, `prompt`, `tag` or `category`, most pairs first; not where one group has all."""
        groups: dict[str, dict[str, PairGroup]] = {}
        for pair in self.found.pairs.all():
            for facet, name in self.facets(pair.after):
                named = groups.setdefault(facet, {})
                if name in named or len(named) < MOST_GROUPS:
                    named.setdefault(name, PairGroup(name)).add(pair)
        return {
            facet: sorted(named.values(), key=lambda group: (-group.pairs, group.name))
            for facet, named in groups.items()
            if len(named) > 1 or next(iter(named.values())).pairs < self.found.counts.pairs
        }

    def facets(self, item: ComparedItem) -> Iterator[tuple[str, str]]:
        """Yields what an item is grouped by: the facet, and its value."""
        comparing = self.found.comparing
        if comparing.are_cases:
            yield from ((facet, item.key[at]) for facet, at in KEY_PARTS.items() if item.key[at])
        yield from ((comparing.tag, tag) for tag in item.tags)

    @cached_property
    def settings(self) -> list[Setting] | None:
        """Settings that differ; None where a report does not contain them."""
        before, after = (side.configuration for side in self.sides)
        if before is None or after is None:
            return None
        for by, names in (("model", self.found.models), ("prompt", self.found.prompts)):
            if names is not None:  # those that were paired in spite of it have their settings under one name
                before, after = settings_at(before, by), settings_at(after, by)
        return differing(before, after)

    @cached_property
    def other_input(self) -> str:
        """A sentence on runs of different benches or files; empty where they may be of one."""
        named = [(side.bench, side.source) for side in self.sides]
        if named[0] == named[1] or not all(source for _, source in named):
            return ""
        one_recorded, other_recorded = (side.is_recorded for side in self.sides)
        if named[0][0] == named[1][0] and one_recorded != other_recorded:
            return ""  # one judges answers to the same bench, which the settings say
        one, other = (f"{bench} ({source})" if bench else source for bench, source in named)
        return f"These runs are of different inputs: A of {one}, B of {other}."

    @cached_property
    def differences(self) -> str:
        """A sentence on what differs between the two runs, beside their results."""
        settings = self.settings
        parts = [*map(str, settings or ()), *self._edits()]
        if parts:
            number = "one thing differs" if len(parts) == 1 else f"{len(parts)} things differ"
            is_whole = all(side.is_stored and side.configuration is not None for side in self.sides)
            number = number.capitalize() if is_whole else f"Of what the reports contain, {number}"
            text = f"{number}: {'; '.join(parts)}"
            return text if text.endswith(('."', '!"', '?"')) else f"{text}."
        if settings is None:
            return "The reports do not say how the runs were configured; compare runs by their ids to see it."
        if not all(side.is_stored for side in self.sides):
            return "Of the settings in the reports, none differs; compare runs by their ids to see all."
        changes = any(self.found.pairs.differing())
        return f"No setting differs{self._cause()}" if changes else "No setting differs."

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

    def pages(self, shown: Shown) -> list[tuple[str, str]]:
        """Returns the pages of both items: a letter and an address each."""
        texts = zip("AB", self.sides, (shown.before, shown.after), strict=True)
        return [
            (letter, self.address(side.run, text.item))
            for letter, side, text in texts
            if self.address is not None and text.item
        ]

    def again(self, shown: Shown) -> str:
        """Returns the command that asks B again for its answer; empty where that cannot be done."""
        side, item = self.sides[1], shown.after.item
        if (
            not side.is_stored
            or side.configuration is None
            or side.is_recorded
            or side.kind is TURNS
            or not item
        ):
            return ""
        return shlex.join(["proctor", "retry", side.run, "--item", item])

    def _figures(self, letter: str, side: Side) -> SideFigures:
        item, rates = self.found.comparing.item, self.found.pass_rate
        rate = rates.a if letter == "A" else rates.b
        outcomes = Counter(item.outcome for item in side.items.items)
        skipped = side.items.skipped + outcomes[Outcome.SKIPPED.value]
        total = len(side.items.items) + side.items.skipped
        times, costs = (
            [item.scores[name] for item in side.items.items if name in item.scores]
            for name in ("latency_ms", "cost_usd")
        )
        p95 = latency(percentiles(times)["p95"]) if times else ""
        heading = side.part or side.label
        if not heading and side.is_stored and side.configuration is not None:
            heading = side.bench or side.source
        return SideFigures(
            letter=letter,
            title=side.title,
            heading=heading or side.name,
            run_id=side.run if side.title != side.name else "",
            source=side.source,
            run=side.run,
            began=_minute(side.began),
            total=total,
            good=sum(number for outcome, number in outcomes.items() if outcome in GOOD),
            rate=f"{percent(rate.value)} ({'-'.join(bounds(rate))})" if rate.n else f"no {many(item)}",
            errors=outcomes[Outcome.ERROR.value],
            skipped=skipped,
            p95=f"{p95} ({len(times):,} timed)" if times and len(times) < total else p95,
            cost=f"{cost(fsum(costs))}, {amount_of('cost_usd', fsum(costs) / len(costs))} per {item}"
            if costs
            else "",
        )

    def _edits(self) -> Iterator[str]:
        """Yields what of the items is not the same in both."""
        pairs, unit = list(self.found.pairs.all()), self.found.comparing.unit
        for words, units in (
            ("input", {pair.after.unit for pair in pairs if pair.has_other_input}),
            ("expectation", {pair.after.unit for pair in pairs if pair.has_other_expectation}),
            ("weight", {pair.after.unit for pair in pairs if pair.before.weight != pair.after.weight}),
        ):
            if units:
                yield f"{words} of {_named(units, unit)}"
        if all(side.is_recorded for side in self.sides) and any(
            shown.before.answer != shown.after.answer for shown in self.pairs()
        ):
            yield "recorded outputs"

    def _cause(self) -> str:
        """Returns what is left to explain the differences, after the words that no setting differs."""
        pairs = self.found.pairs
        if not all(all((*before.known, *after.known)) for before, after in pairs.all()):
            return "; what was asked and expected of each item is not known here."
        if all(side.is_recorded for side in self.sides):
            return ", and the recorded outputs are the same."
        if self.found.kind is TURNS:
            settings = [side.configuration or {} for side in self.sides]
            if any(each.get("namespace") for each in settings) or pairs.only_a or pairs.only_b:
                return ": what changed follows from other turns of these threads."
            if not any(each.get("model") for each in settings):
                return ", and the turns are the same: another version of the rules decided."
        return ": what changed is chance, or happened behind the API."


def _named(units: Collection[str], unit: str) -> str:
    """Names a few cases, queries or threads, and counts more of them.

    >>> _named({"peru"}, "case"), _named({"case 3"}, "case"), _named({"b", "a"}, "query")
    ('case peru', 'case 3', 'queries a and b')
    """
    if len(units) > MOST_NAMED:
        return plural(len(units), unit)
    names = [plain(name.removeprefix(f"{unit} "), Size.CELL) for name in sorted(units)]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{unit if len(names) == 1 else many(unit)} {listed}"


def _minute(iso: str) -> str:
    """Writes a time in UTC.

    >>> _minute("2026-11-22T18:20:00+01:00"), _minute("?")
    ('2026-11-22 17:20', '?')
    """
    try:
        return f"{datetime.fromisoformat(iso).astimezone(UTC):%Y-%m-%d %H:%M}"
    except ValueError:
        return iso
