"""Compares two runs of one kind: what was fixed, what broke, and whether that is more than chance; pure."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from producer import kinds
from producer.aggregate.bootstrap import paired, paired_rate, weighted_mean
from producer.aggregate.compared_items import CHECK_PREFIX, ComparedItem, Comparing, Items, one_each
from producer.aggregate.related import design_effect
from producer.aggregate.statistics import mcnemar, wilson
from producer.documents import (
    SCHEMA_VERSION,
    Count,
    Exit,
    Fraction,
    KindName,
    Name,
    Part,
    Rate,
    Version,
    WrittenFile,
)
from shared.kinds import Kind
from shared.names import Outcome

GOOD: Final = frozenset({Outcome.PASSED.value, Outcome.DECIDED.value})
"""Outcomes of items that did what they should; a turn that was decided has."""
LEVEL: Final = 0.05
"""Share of unchanged runs that may be called different."""
PASS_RATE: Final = "pass_rate"  # noqa: S105 - a score, no secret
LOWER_IS_BETTER: Final = frozenset({"latency_ms", "cost_usd"})
SCORES: Final = (PASS_RATE, "score", "keywords_found", "rouge_l", "latency_ms", "cost_usd")
"""In the order in which they are shown; scores of checks come after them."""
WEIGHTED: Final = "score"
"""The score in whose means a case counts by its weight: that of B, where A had another one."""
MOST_CHECKS: Final = 50
"""Checks whose scores are compared."""


class Pair(NamedTuple):
    """An item in A and in B."""

    before: ComparedItem
    after: ComparedItem

    @property
    def has_other_input(self) -> bool:
        """Whether it is known that another question was asked."""
        one, other = (item.known.asked for item in self)
        return bool(one and other) and one != other

    @property
    def has_other_expectation(self) -> bool:
        """Whether it is known that another answer was expected: that outcomes differ proves nothing then."""
        one, other = (item.known.expects for item in self)
        return bool(one and other) and one != other


class ComparedSide(Part, frozen=True):
    """One of the two runs that are compared."""

    name: str
    source: str
    label: Name = UNSET


class ComparedCounts(Part, frozen=True):
    """PairedItems of items by what became of them, and items without a partner."""

    pairs: Count
    fixed: Count
    broken: Count
    changed: Count
    unchanged: Count
    only_a: Count
    only_b: Count
    skipped_a: Count
    skipped_b: Count

    @property
    def are_all_paired(self) -> bool:
        """Whether each item of both runs has a partner and a result."""
        return not (self.only_a or self.only_b or self.skipped_a or self.skipped_b)


class RatesOfBoth(Part, frozen=True):
    """A share in both runs."""

    a: Rate
    b: Rate


class PairedTest(Part, kw_only=True, frozen=True):
    """The test of the pairs that changed; `level_each` is the level of each of several comparisons."""

    name: Literal["mcnemar"] = "mcnemar"
    method: str
    p_value: Fraction
    exact_p: Fraction
    units: Count
    better: Count
    worse: Count
    level: Fraction
    level_each: Fraction

    @property
    def is_significant(self) -> bool:
        """Whether outcomes changed by more than chance; nothing else decides that."""
        return self.p_value <= self.level_each and self.worse != self.better


class ComparedScore(Part, frozen=True):
    """A measured value in both runs, and the interval of the difference."""

    a: float
    b: float
    difference: float
    low: float
    high: float
    n: Count
    method: str
    significant: bool

    @property
    def leaves_out_zero(self) -> bool:
        """Whether no change at all lies outside of the interval."""
        return self.low > 0 or self.high < 0


class ComparedNames(Part, frozen=True):
    """Two models, or two prompts, whose answers to the same cases are compared."""

    a: str
    b: str


class ChangedItem(Part, frozen=True):
    """An item whose outcome changed."""

    item: str
    a: str
    b: str


class CompareDocument(Part, kw_only=True, frozen=True):
    """What compare prints with --json, and writes as .json."""

    schema_version: Version = SCHEMA_VERSION
    a: ComparedSide
    b: ComparedSide
    kind: KindName
    verdict: str
    regressions: tuple[str, ...]
    pass_rate: RatesOfBoth
    counts: ComparedCounts
    unchanged: dict[str, Count]
    transitions: dict[str, Count]
    changed_share: Rate
    test: PairedTest
    scores: dict[str, ComparedScore]
    models: ComparedNames | None
    prompts: Annotated[
        ComparedNames | UnsetType,
        Meta(description="Only where runs with one prompt each are compared, and not the same."),
    ] = UNSET
    fixed: tuple[ChangedItem, ...]
    broken: tuple[ChangedItem, ...]
    changed: tuple[ChangedItem, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    input_changed: Annotated[
        tuple[str, ...], Meta(description="Items that were asked something else, as far as that is known.")
    ]
    expectation_changed: Annotated[
        tuple[str, ...],
        Meta(description="Items of which another answer was expected; the test leaves them out."),
    ]
    files: tuple[WrittenFile, ...]
    exit: Exit


@dataclass(slots=True)
class _Unit:
    """The pairs of one case, query or thread."""

    net: int = 0
    """Fixed less broken."""
    names: tuple[str, ...] = ()
    """Names of its scores."""
    sums: "array[float]" = field(default_factory=lambda: array("d"))
    """Sum in A, sum in B and weight, score by score; all units of two runs are held at once."""

    def add(self, name: str, before: float, after: float, weight: float = 1.0) -> None:
        """Adds a score of a pair."""
        if name not in self.names:
            self.names += (name,)
            self.sums.extend((0.0, 0.0, 0.0))
        at = 3 * self.names.index(name)
        self.sums[at] += weight * before
        self.sums[at + 1] += weight * after
        self.sums[at + 2] += weight

    def means(self, name: str) -> tuple[float, float, float] | None:
        """Returns the mean of a score in A and in B, and its weight; None without any."""
        if name not in self.names:
            return None
        before, after, weight = self.sums[3 * self.names.index(name) :][:3]
        return (before / weight, after / weight, weight) if weight else None


@dataclass(slots=True)
class PairedItems:
    """The items of two runs, by what became of them."""

    broken: list[Pair] = field(default_factory=list)
    """Passed in A, not in B."""
    fixed: list[Pair] = field(default_factory=list)
    """Not passed in A, passed in B."""
    changed: list[Pair] = field(default_factory=list)
    """As good as before, but not the same: another decision, or an error in place of a failure."""
    same: list[Pair] = field(default_factory=list)
    """Those with the same outcome in both."""
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    units: dict[str, _Unit] = field(default_factory=lambda: defaultdict(_Unit))
    """With what is known of pairs that were judged alike."""

    def differing(self) -> Iterator[Pair]:
        """Yields pairs that ended otherwise: first what was broken, then what was fixed, and the rest."""
        return chain(self.broken, self.fixed, self.changed)

    def all(self) -> Iterator[Pair]:
        """Yields every pair, those that ended otherwise first."""
        return chain(self.differing(), self.same)

    def add(self, pair: Pair) -> None:
        """Takes one item that is in both runs."""
        before, after = pair
        was_good, is_good = before.outcome in GOOD, after.outcome in GOOD
        unit = self.units[after.unit]
        if not pair.has_other_expectation:
            unit.net += is_good - was_good
            unit.add(PASS_RATE, was_good, is_good)
            for name, one, other in before.scores.pairs(after.scores):
                unit.add(name, one, other, after.weight if name == WEIGHTED else 1.0)
        if before.word == after.word:
            found = self.same
        elif was_good == is_good:
            found = self.changed
        else:
            found = self.fixed if is_good else self.broken
        found.append(pair)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, item by item; `CompareDocument` says what else its fields are."""

    kind: Kind
    pairs: PairedItems
    pass_rate: RatesOfBoth
    """Share of items that passed; of turns, that were decided."""
    counts: ComparedCounts
    unchanged: Mapping[str, int]
    """Items with the same outcome in both, by outcome."""
    transitions: Mapping[str, int]
    """What became what, the most frequent first."""
    changed_share: Rate
    """Share of pairs that ended otherwise."""
    test: PairedTest
    """Test of better against worse units: cases, queries or threads."""
    scores: Mapping[str, ComparedScore]
    judged: Sequence[str] = ()
    """Scores that decide beside the outcomes."""
    models: ComparedNames | None = None
    """The two models, when cases were paired in spite of them."""
    prompts: ComparedNames | None = None

    @property
    def comparing(self) -> Comparing:
        """How items of this kind are compared."""
        return kinds.of(self.kind).compared().comparing

    @property
    def regressions(self) -> list[str]:
        """What became worse by more than chance explains."""
        found = ["outcomes"] if self.test.is_significant and self.test.worse > self.test.better else []
        return found + [
            name
            for name, score in self.scores.items()
            if name in self.judged
            and score.significant
            and (score.low > 0 if name in LOWER_IS_BETTER else score.high < 0)
        ]

    @property
    def verdict(self) -> str:
        """`worse`, `better`, or `no significant difference`."""
        if self.regressions:
            return "worse"
        return "better" if self.test.is_significant else "no significant difference"

    def as_document(
        self, a: ComparedSide, b: ComparedSide, files: Sequence[WrittenFile] = (), *, code: int = 0
    ) -> CompareDocument:
        """Returns it for programs, with the names of both sides and the exit code of the command."""
        pairs = self.pairs
        fixed, broken, changed = (
            tuple(ChangedItem(after.label, before.word, after.word) for before, after in each)
            for each in (pairs.fixed, pairs.broken, pairs.changed)
        )
        return CompareDocument(
            a=a,
            b=b,
            kind=self.kind.name,
            verdict=self.verdict,
            regressions=tuple(self.regressions),
            pass_rate=self.pass_rate,
            counts=self.counts,
            unchanged=dict(self.unchanged),
            transitions=dict(self.transitions),
            changed_share=self.changed_share,
            test=self.test,
            scores=dict(self.scores),
            models=self.models,
            prompts=self.prompts or UNSET,
            fixed=fixed,
            broken=broken,
            changed=changed,
            only_a=tuple(pairs.only_a),
            only_b=tuple(pairs.only_b),
            input_changed=tuple(pair.after.label for pair in pairs.all() if pair.has_other_input),
            expectation_changed=tuple(pair.after.label for pair in pairs.all() if pair.has_other_expectation),
            files=tuple(files),
            exit=code,
        )


def can_differ(units: int, level: float) -> bool:
    """Whether a difference of so many units can be more than chance: all of them worse would have to be.

    An interval that is resampled from two or three units is as narrow as they are alike, and leaves out 0
    whenever all of them moved the same way, which chance does once in two or four times.

    >>> can_differ(4, 0.05), can_differ(5, 0.05)
    (False, True)
    """
    return mcnemar(units, 0).p_value <= level


def compare(
    kind: Kind, a: Items, b: Items, *, level: float = LEVEL, judged: Sequence[str] = ()
) -> Comparison:
    """Pairs the items of two runs and compares them.

    Repeats of a case, the models that answered it, and the turns of a thread are related: they are one unit
    of the tests, better or worse by most of its items. Counted one by one they would make chance look like
    proof. Items of which another answer was expected are in no test.

    Args:
        kind: of both runs.
        a: the run before.
        b: the run after.
        level: share of unchanged runs that may be called different; each of several judged things is judged
            at its part of it (Bonferroni), so that together they keep the level.
        judged: scores that decide beside the outcomes.
    """
    models = prompts = None
    if kinds.of(kind).compared().comparing.are_cases:
        a, b, models = one_each(a, b, "model")
        a, b, prompts = one_each(a, b, "prompt")
    pairs, level_each = _paired(a, b), level / (1 + len(judged))
    return Comparison(
        kind=kind,
        pairs=pairs,
        pass_rate=RatesOfBoth(_rate(a), _rate(b)),
        counts=ComparedCounts(
            pairs=sum(1 for _ in pairs.all()),
            fixed=len(pairs.fixed),
            broken=len(pairs.broken),
            changed=len(pairs.changed),
            unchanged=len(pairs.same),
            only_a=len(pairs.only_a),
            only_b=len(pairs.only_b),
            skipped_a=a.skipped,
            skipped_b=b.skipped,
        ),
        unchanged=Counter(pair.after.outcome for pair in pairs.same),
        transitions=dict(
            Counter(f"{before.word} → {after.word}" for before, after in pairs.differing()).most_common()
        ),
        changed_share=_share(
            [(pair.after.unit, True) for pair in pairs.differing()]
            + [(pair.after.unit, False) for pair in pairs.same]
        ),
        test=tested([unit.net for unit in pairs.units.values()], level, level_each),
        scores=dict(_scores(pairs.units, level_each)),
        judged=judged,
        models=models and ComparedNames(*models),
        prompts=prompts and ComparedNames(*prompts),
    )


def _paired(a: Items, b: Items) -> PairedItems:
    """Sorts the items of both runs."""
    earlier, found = {item.key: item for item in a.items}, PairedItems()
    for item in b.items:
        if before := earlier.pop(item.key, None):
            found.add(Pair(before, item))
        else:
            found.only_b.append(item.label)
    found.only_a += [item.label for item in earlier.values()]
    return found


def tested(nets: Collection[int], level: float, level_each: float) -> PairedTest:
    """Tests better against worse units.

    Args:
        nets: of each unit, the fixed less the broken.
        level: see `compare`.
        level_each: its part of it.
    """
    better, worse = (sum(net * sign > 0 for net in nets) for sign in (1, -1))
    test = mcnemar(worse, better)
    return PairedTest(
        method=test.method,
        p_value=test.p_value,
        exact_p=test.exact_p,
        units=len(nets),
        better=better,
        worse=worse,
        level=level,
        level_each=level_each,
    )


def _scores(units: Mapping[str, _Unit], level: float) -> Iterator[tuple[str, ComparedScore]]:
    """Compares each score that some units have in both runs, by means over them."""
    checks = (name for unit in units.values() for name in unit.names if name.startswith(CHECK_PREFIX))
    for name in (*SCORES, *islice(dict.fromkeys(checks), MOST_CHECKS)):
        means = [found for unit in units.values() if (found := unit.means(name))]
        if not means:
            continue
        before, after, weights = ([each[at] for each in means] for at in range(3))
        if name == PASS_RATE and all(weight == 1 for weight in weights):
            worse, better = (sum(unit.net == sign for unit in units.values()) for sign in (-1, 1))
            change = paired_rate(worse, better, len(means), level=1 - level)
        else:
            change = paired(before, after, weights=weights, level=1 - level)
        yield (
            name,
            ComparedScore(
                a=weighted_mean(before, weights),
                b=weighted_mean(after, weights),
                difference=change.value,
                low=change.low,
                high=change.high,
                n=change.n,
                method=change.method,
                significant=change.is_significant and can_differ(change.n, level),
            ),
        )


def _rate(side: Items) -> Rate:
    """Returns the share of good items in all of a run, skipped ones included."""
    return _share([(item.unit, item.outcome in GOOD) for item in side.items], skipped=side.skipped)


def _share(answers: Sequence[tuple[str, bool]], *, skipped: int = 0) -> Rate:
    """Returns the share of true ones; those of one unit are related."""
    units, true = Counter(unit for unit, _ in answers), Counter(unit for unit, is_true in answers if is_true)
    effect = design_effect(Counter((true[unit], size) for unit, size in units.items()))
    return wilson(true.total(), len(answers) + skipped, effect=effect).rounded()
