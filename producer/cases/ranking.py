"""Ranks models by comparisons of their answers, each shown to the judge in both orders.

A pair of answers is won by the one that is preferred in both orders; all else is a tie, so that a judge who
prefers a position prefers no model. How often the first answer was preferred is reported beside the ranking.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from producer.aggregate.bradley_terry import fit
from producer.aggregate.statistics import wilson
from producer.documents import SCHEMA_VERSION, Count, Exit, Fraction, Part, Rate, Version

NO_PAIRS: Final[Mapping[tuple[str, str], int]] = {}


class RankedStrength(Part, frozen=True):
    """Probability that an answer is preferred to that of an average model, with its 95% interval."""

    value: Fraction
    low: Fraction
    high: Fraction


class RankedModel(Part, frozen=True):
    """One model of a ranking."""

    name: str
    wins: Count
    losses: Count
    ties: Count
    win_rate: Rate
    strength: RankedStrength


class JudgePosition(Part, frozen=True):
    """Whether the judge prefers a position."""

    first_preferred: Annotated[
        Rate, Meta(description="How often the answer shown first was preferred; half without bias.")
    ]
    orders_agree: Annotated[Rate, Meta(description="In how many pairs both orders gave the same verdict.")]


class RankDocument(Part, kw_only=True, frozen=True):
    """What rank prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    exit: Exit
    run_id: Annotated[str, Meta(description="Of the comparisons.")]
    ranks: Annotated[str, Meta(description="The run whose answers were compared.")]
    pairs: Annotated[Count, Meta(description="Pairs that were judged in both orders.")]
    equal: Annotated[Count, Meta(description="Pairs of equal answers, which tie without being judged.")]
    unclear: Count
    smoothed: bool
    position: JudgePosition
    table: Annotated[
        tuple[RankedModel, ...],
        Meta(description="The strongest first; empty where no pair has a verdict in both orders."),
    ]


class PairVerdict(NamedTuple):
    """The verdict of a judge on one pair in one order."""

    question: str
    """Which case, prompt and repetition it is about."""
    first: str
    """Whose answer was shown as A."""
    second: str
    """Whose answer was shown as B."""
    winner: str | None
    """`A`, `B`, `tie`, or None: the judge did not answer, or its reply has no choice."""


class Ranking(NamedTuple):
    """All competitors."""

    table: Sequence[RankedModel]
    """The strongest first."""
    pairs: int
    """Pairs that were judged in both orders."""
    equal: int
    """Pairs of equal answers, which tie without being judged."""
    unclear: int
    """Verdicts that are missing or unreadable; their pairs do not count."""
    prefers_first: Rate
    """How often the answer shown first was preferred, of all verdicts that prefer one: half without bias."""
    agrees: Rate
    """In how many pairs both orders gave the same verdict."""
    is_smoothed: bool
    """Whether half a win was added to each direction of each pair, because one never won, or never lost."""

    def as_document(self, run: str, ranks: str, *, code: int = 0) -> RankDocument:
        """Returns it for programs, with the runs that it is of and the exit code of the command."""
        return RankDocument(
            exit=code,
            run_id=run,
            ranks=ranks,
            pairs=self.pairs,
            equal=self.equal,
            unclear=self.unclear,
            smoothed=self.is_smoothed,
            position=JudgePosition(self.prefers_first.rounded(), self.agrees.rounded()),
            table=tuple(self.table),
        )


def rank(
    names: Sequence[str], verdicts: Iterable[PairVerdict], equal: Mapping[tuple[str, str], int] = NO_PAIRS
) -> Ranking:
    """Ranks competitors; without a pair that was judged in both orders the table is empty.

    Args:
        names: all of them; at least two.
        verdicts: each pair in both orders.
        equal: how many answers of two competitors are equal, and were not judged.

    >>> both = [PairVerdict("q1", "a", "b", "A"), PairVerdict("q1", "b", "a", "B")]
    >>> found = rank(["b", "a"], both)
    >>> [(each.name, each.wins, each.losses) for each in found.table], found.is_smoothed
    ([('a', 1, 0), ('b', 0, 1)], True)
    >>> biased = rank(["a", "b"], [PairVerdict("q1", "a", "b", "A"), PairVerdict("q1", "b", "a", "A")])
    >>> biased.table[0].ties, biased.prefers_first.value, biased.agrees.value
    (1, 1.0, 0.0)
    """
    complete, unclear = _in_pairs(verdicts)
    wins, losses, ties = Counter[str](), Counter[str](), Counter[str]()
    scores = Counter[tuple[str, str]]()
    for both in complete:
        one, other = sorted((both[0].first, both[0].second))
        preferred = {_preferred(verdict) for verdict in both}
        if preferred in ({one}, {other}):
            winner = preferred.pop()
            loser = other if winner == one else one
            wins[str(winner)] += 1
            losses[loser] += 1
            scores[str(winner), loser] += 2
        else:
            ties[one] += 1
            ties[other] += 1
            scores[one, other] += 1
            scores[other, one] += 1
    for (one, other), count in equal.items():
        ties[one] += count
        ties[other] += count
        scores[one, other] += count
        scores[other, one] += count
    strengths = fit(names, {pair: score / 2 for pair, score in scores.items()})
    decided = [verdict.winner for both in complete for verdict in both if verdict.winner != "tie"]
    same = sum(len({_preferred(verdict) for verdict in both}) == 1 for both in complete)
    beats = {name: strengths.beats_average(name) for name in names if complete}
    table = [
        _ranked(name, (wins[name], losses[name], ties[name]), beats[name])
        for name in sorted(beats, key=lambda each: -beats[each][0])
    ]
    return Ranking(
        table,
        len(complete),
        sum(equal.values()),
        unclear,
        wilson(decided.count("A"), len(decided)),
        wilson(same, len(complete)),
        strengths.is_smoothed,
    )


def _ranked(name: str, ends: tuple[int, int, int], strength: tuple[float, float, float]) -> RankedModel:
    """The row of one competitor, by its wins, losses and ties."""
    wins, losses, ties = ends
    rounded = RankedStrength(*(round(part, 4) for part in strength))
    return RankedModel(name, wins, losses, ties, wilson(wins, sum(ends)).rounded(), rounded)


def _in_pairs(verdicts: Iterable[PairVerdict]) -> tuple[list[tuple[PairVerdict, ...]], int]:
    """The pairs that have a verdict in both orders, and how many verdicts are missing."""
    pairs: Mapping[tuple[str, frozenset[str]], dict[str, PairVerdict]] = defaultdict(dict)
    unclear = 0
    for verdict in verdicts:
        if verdict.winner is None:
            unclear += 1
        else:
            pairs[verdict.question, frozenset((verdict.first, verdict.second))][verdict.first] = verdict
    return [tuple(both.values()) for both in pairs.values() if len(both) == len(("A", "B"))], unclear


def _preferred(verdict: PairVerdict) -> str | None:
    """Whose answer a verdict prefers; None for a tie."""
    return {"A": verdict.first, "B": verdict.second}.get(str(verdict.winner))
