"""Compares two runs of one kind: what was fixed, what broke, and whether that is more than chance; pure."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from producer import kinds
from producer.aggregate.bootstrap import Interval, paired, paired_rate, weighted_mean
from producer.aggregate.compared_items import CHECK_PREFIX, ComparedItem, Items, label, one_each
from producer.aggregate.related import ByCase
from producer.aggregate.statistics import McNemar, mcnemar, wilson
from producer.documents import Rate
from shared.kinds import Kind
from shared.names import Outcome

GOOD: Final = frozenset({Outcome.PASSED.value, Outcome.DECIDED.value})
"""Outcomes of items that did what they should; a turn that was decided has."""
LEVEL: Final = 0.05
"""How often a difference may be called one that is none."""
LOWER_IS_BETTER: Final = frozenset({"latency_ms", "cost_usd"})
SCORES: Final = ("pass_rate", "score", "keywords_found", "rouge_l", "latency_ms", "cost_usd")
"""In the order in which they are shown; scores of checks come after them."""
WEIGHTED: Final = "score"
"""The score in whose means a case counts by its weight: that of B, where A had another one."""
MOST_CHECKS: Final = 50
"""Checks whose scores are compared."""


Pair = tuple[ComparedItem, ComparedItem]
"""An item in A and in B."""


@dataclass(frozen=True, slots=True)
class Change:
    """An item that ended otherwise."""

    item: str
    """Its name in both runs."""
    before: str
    """Its outcome or decision in A."""
    after: str
    """The same in B."""
    pair: Pair
    """The item in both runs."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score in both runs, over items that have it in both."""

    name: str
    before: float
    """Mean over items in A, `score` by the weights of cases, as reports and gates have it."""
    after: float
    """The same in B."""
    difference: Interval
    """Mean difference, made of pairs of units."""

    @property
    def is_worse(self) -> bool:
        """Whether B is worse all over the interval."""
        low, high = self.difference.low, self.difference.high
        return low > 0 if self.name in LOWER_IS_BETTER else high < 0

    def differs(self, level: float) -> bool:
        """Whether the interval leaves out 0 and is made of units enough to mean it."""
        return self.difference.is_significant and can_differ(self.difference.n, level)


@dataclass(slots=True)
class Comparison:
    """Two runs, item by item."""

    kind: Kind
    rate_a: Rate
    """Share of items of A that passed; of turns, that were decided."""
    rate_b: Rate
    models: tuple[str, str] | None = None
    """The two models, when cases were paired in spite of them."""
    prompts: tuple[str, str] | None = None
    """The two prompts, when cases were paired in spite of them."""
    pairs: int = 0
    """Items in both runs."""
    fixed: list[Change] = field(default_factory=list)
    """Not passed in A, passed in B."""
    broken: list[Change] = field(default_factory=list)
    """Passed in A, not in B."""
    changed: list[Change] = field(default_factory=list)
    """As good as before, but not the same: another decision, or an error in place of a failure."""
    unchanged: Counter[str] = field(default_factory=Counter)
    """Items with the same outcome in both, by outcome."""
    same: list[Pair] = field(default_factory=list)
    """These items."""
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    skipped: tuple[int, int] = (0, 0)
    """Items without a result, in A and in B."""
    units: int = 0
    """Cases, queries or threads in both runs."""
    better: int = 0
    """Units with more fixed than broken."""
    worse: int = 0
    """Units with more broken than fixed."""
    test: McNemar = field(default_factory=lambda: mcnemar(0, 0))
    """Of better against worse units."""
    scores: list[Score] = field(default_factory=list)
    level: float = LEVEL
    """As asked for; each of several judged things is judged at its part of it."""
    judged: Sequence[str] = ()
    """Scores that decide beside the outcomes."""

    @property
    def level_each(self) -> float:
        """The level at which each judged thing is judged (Bonferroni): together they keep the level."""
        return self.level / (1 + len(self.judged))

    @property
    def regressions(self) -> list[str]:
        """What became worse by more than chance explains."""
        found = ["outcomes"] if self.test.p_value <= self.level_each and self.worse > self.better else []
        worse = [score for score in self.scores if score.is_worse and score.differs(self.level_each)]
        return found + [score.name for score in worse if score.name in self.judged]

    @property
    def verdict(self) -> str:
        """`worse`, `better`, or `no significant difference`."""
        if self.regressions:
            return "worse"
        is_better = self.test.p_value <= self.level_each and self.better > self.worse
        return "better" if is_better else "no significant difference"

    def as_document(self) -> dict[str, Any]:
        """Returns it as `--json` prints it."""
        return {
            "kind": self.kind.name,
            "verdict": self.verdict,
            "regressions": self.regressions,
            "pass_rate": {"a": self.rate_a.as_document(), "b": self.rate_b.as_document()},
            "counts": {
                "pairs": self.pairs,
                "fixed": len(self.fixed),
                "broken": len(self.broken),
                "changed": len(self.changed),
                "unchanged": self.unchanged.total(),
                "only_a": len(self.only_a),
                "only_b": len(self.only_b),
                "skipped_a": self.skipped[0],
                "skipped_b": self.skipped[1],
            },
            "unchanged": dict(self.unchanged),
            "transitions": dict(self._transitions().most_common()),
            "changed_share": self._changed_share().as_document(),
            "test": {
                "name": "mcnemar",
                "method": self.test.method,
                "p_value": self.test.p_value,
                "exact_p": self.test.exact_p,
                "units": self.units,
                "better": self.better,
                "worse": self.worse,
                "level": self.level,
                "level_each": self.level_each,
            },
            "scores": {score.name: _score_document(score, self.level_each) for score in self.scores},
            "models": None if self.models is None else {"a": self.models[0], "b": self.models[1]},
            **({"prompts": {"a": self.prompts[0], "b": self.prompts[1]}} if self.prompts else {}),
            **{name: [_change_document(each) for each in self._changes(name)] for name in _LISTS},
            "only_a": self.only_a,
            "only_b": self.only_b,
        }

    def all_pairs(self) -> Iterator[Pair]:
        """Yields every pair: first what was broken, then what was fixed, what changed, and the rest."""
        for change in (*self.broken, *self.fixed, *self.changed):
            yield change.pair
        yield from self.same

    def _changed_share(self) -> Rate:
        """Returns the share of pairs that ended otherwise; those of one unit are related."""
        pairs = ByCase()
        for change in (*self.broken, *self.fixed, *self.changed):
            pairs.add(change.pair[1].unit, (1, 0))
        for _, item in self.same:
            pairs.add(item.unit, (0, 1))
        changed, effect = self.pairs - self.unchanged.total(), pairs.effect([0], [0, 1])
        return wilson(changed, self.pairs, effect=effect)

    def _transitions(self) -> Counter[str]:
        """Counts what became what."""
        changes = (*self.broken, *self.fixed, *self.changed)
        return Counter(f"{each.before} → {each.after}" for each in changes)

    def _changes(self, name: str) -> list[Change]:
        """Returns one of the lists of changes."""
        found: list[Change] = getattr(self, name)
        return found


_LISTS: Final = ("fixed", "broken", "changed")


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
    proof.

    Args:
        kind: of both runs.
        a: the run before.
        b: the run after.
        level: how often a difference may be called one that is none.
        judged: scores that decide beside the outcomes.
    """
    models = prompts = None
    if kinds.of(kind).compared().comparing.names_model:
        a, b, models = one_each(a, b, "model")
        a, b, prompts = one_each(a, b, "prompt")
    found = Comparison(kind, _rate(a), _rate(b), models, prompts, level=level, judged=judged)
    found.skipped = (a.skipped, b.skipped)
    units = _pair(found, a, b)
    found.units = len(units)
    found.better = sum(unit.net > 0 for unit in units.values())
    found.worse = sum(unit.net < 0 for unit in units.values())
    found.test = mcnemar(found.worse, found.better)
    found.scores = _scores(units, 1 - found.level_each)
    return found


@dataclass(slots=True)
class _Unit:
    """The pairs of one case, query or thread."""

    net: int = 0
    """Fixed less broken."""
    names: tuple[str, ...] = ()
    """Of its scores."""
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


def _pair(found: Comparison, a: Items, b: Items) -> Mapping[str, _Unit]:
    """Sorts the items of both runs into the lists of a comparison."""
    before, units = {item.key: item for item in a.items}, defaultdict[str, _Unit](_Unit)
    for item in b.items:
        earlier = before.pop(item.key, None)
        if earlier is None:
            found.only_b.append(label(item.key))
        else:
            _add_pair(found, units[item.unit], earlier, item)
    found.only_a += [label(key) for key in before]
    return units


def _add_pair(found: Comparison, unit: _Unit, before: ComparedItem, after: ComparedItem) -> None:
    """Takes one item that is in both runs."""
    was_good, is_good = before.outcome in GOOD, after.outcome in GOOD
    found.pairs += 1
    unit.net += is_good - was_good
    unit.add("pass_rate", was_good, is_good)
    for name, score in before.scores.items():
        if name in after.scores:
            unit.add(name, score, after.scores[name], after.weight if name == WEIGHTED else 1.0)
    if before.word == after.word:
        found.unchanged[after.outcome] += 1
        found.same.append((before, after))
        return
    changes = found.changed if was_good == is_good else found.fixed if is_good else found.broken
    changes.append(Change(label(after.key), before.word, after.word, (before, after)))


def _scores(units: Mapping[str, _Unit], level: float) -> list[Score]:
    """Compares each score that some units have in both runs."""
    scores = []
    checks = (name for unit in units.values() for name in unit.names if name.startswith(CHECK_PREFIX))
    for name in (*SCORES, *islice(dict.fromkeys(checks), MOST_CHECKS)):
        means = [found for unit in units.values() if (found := unit.means(name))]
        if means:
            before, after, weights = ([each[at] for each in means] for at in range(3))
            single = name == "pass_rate" and all(weight == 1 for weight in weights)
            difference = (
                _rates(units, level) if single else paired(before, after, weights=weights, level=level)
            )
            one, other = (weighted_mean(values, weights) for values in (before, after))
            scores.append(Score(name, one, other, difference))
    return scores


def _rates(units: Mapping[str, _Unit], level: float) -> Interval:
    """Compares shares of units of one item each."""
    worse, better = (sum(unit.net == sign for unit in units.values()) for sign in (-1, 1))
    return paired_rate(worse, better, len(units), level=level)


def _rate(side: Items) -> Rate:
    """Returns the share of good items in all of a run, skipped ones included."""
    answers = ByCase()
    for item in side.items:
        is_good = item.outcome in GOOD
        answers.add(item.unit, (int(is_good), int(not is_good)))
    good, effect = sum(item.outcome in GOOD for item in side.items), answers.effect([0], [0, 1])
    return wilson(good, len(side.items) + side.skipped, effect=effect)


def _change_document(change: Change) -> dict[str, str]:
    return {"item": change.item, "a": change.before, "b": change.after}


def _score_document(score: Score, level: float) -> dict[str, Any]:
    interval = score.difference
    return {
        "a": score.before,
        "b": score.after,
        "difference": interval.value,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
        "method": interval.method,
        "significant": score.differs(level),
    }
