"""Measures how related the answers to a case are, for intervals that do not count them as independent."""

from array import array
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import repeat
from math import fsum
from operator import add
from typing import Final, NamedTuple

from producer.aggregate.statistics import wilson
from producer.documents import Counts, OutcomeRates
from shared.names import Outcome

Tally = tuple[int, ...]
"""Answers of one case by what became of them."""


def design_effect(cases: Mapping[tuple[int, int], int]) -> float:
    """Returns how many related answers tell as much as one that is related to no other.

    The variance of a rate over cases with several answers is that of as many independent answers, times 1 +
    (m - 1)·rho: L. Kish, "Survey Sampling" (1965), with m as the mean of the squared numbers over the mean,
    and rho, how alike the answers of a case are, as the analysis of variance estimates it (A. Donner,
    International Statistical Review 54, 1986). Wilson's interval on the effective number of answers is among
    the best for such rates (K. K. Saha, D. Miller, S. Wang, The International Journal of Biostatistics 12,
    2016). Of few cases, or where all passed, nothing can be estimated; so two cases are added of which one
    always passes and one never does, as Agresti and Coull add answers. They make answers look more alike, and
    matter less with each case.

    Args:
        cases: how many cases have so many good answers, of so many.

    Returns:
        1.0 where each case has one answer.

    >>> design_effect({(1, 1): 30, (0, 1): 10}), design_effect({}), design_effect({(4, 4): 8})
    (1.0, 1.0, 4.0)
    >>> round(design_effect({(2, 4): 50}), 2), round(design_effect({(4, 4): 25, (0, 4): 25}), 2)
    (1.0, 4.0)
    """
    known = {(float(good), float(n)): number for (good, n), number in cases.items() if n}
    groups, answers = sum(known.values()), fsum(n * number for (_, n), number in known.items())
    if answers == groups:
        return 1.0
    size = fsum(n * n * number for (_, n), number in known.items()) / answers
    return 1.0 + (size - 1.0) * _alikeness(known, answers / groups)


def _alikeness(cases: Mapping[tuple[float, float], int], mean: float) -> float:
    """Estimates the correlation of answers within a case, from 0 to 1."""
    counted = [*cases.items(), ((mean, mean), 1), ((0.0, mean), 1)]
    groups = sum(number for _, number in counted)
    total = fsum(n * number for (_, n), number in counted)
    rate = fsum(good * number for (good, _), number in counted) / total
    between = fsum(n * (good / n - rate) ** 2 * number for (good, n), number in counted) / (groups - 1)
    within = fsum(good * (1 - good / n) * number for (good, n), number in counted) / (total - groups)
    size = (total - fsum(n * n * number for (_, n), number in counted) / total) / (groups - 1)
    spread = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / spread)) if spread else 1.0


class ByCase:
    """Counts answers case by case, for the design effects of several shares.

    >>> answers = ByCase()
    >>> for case, passed in ((1, True), (1, True), (2, False), (2, False)):
    ...     answers.add(case, (passed, not passed))
    >>> answers.effect([0], [0, 1])
    2.0
    """

    __slots__ = ("_kinds", "_numbers", "_of_case", "_positions")

    def __init__(self) -> None:
        self._kinds: list[Tally] = [()]
        """Counts that cases have; those that came out alike share them."""
        self._numbers: dict[Tally, int] = {(): 0}
        self._of_case = array("L")
        """Number of its counts by the position of a case: a dictionary would have ten times the size."""
        self._positions: dict[Hashable, int] = {}

    def add(self, case: Hashable, counts: Tally) -> None:
        """Counts some answers of a case, which is named by its position, or by anything else."""
        at = case if isinstance(case, int) else self._positions.setdefault(case, len(self._positions))
        if at >= len(self._of_case):
            self._of_case.extend(repeat(0, at + 1 - len(self._of_case)))
        before = self._of_case[at]
        found = tuple(map(add, self._kinds[before], counts)) if before else counts
        number = self._numbers.setdefault(found, len(self._kinds))
        if number == len(self._kinds):
            self._kinds.append(found)
        self._of_case[at] = number

    def effect(self, good: Sequence[int], of: Sequence[int]) -> float:
        """Returns the design effect of a share.

        Args:
            good: places of what is counted.
            of: places of all that it is a share of.
        """
        shares = Counter[tuple[int, int]]()
        for kind, number in Counter(filter(None, self._of_case)).items():
            counts = self._kinds[kind]
            shares[sum(counts[at] for at in good), sum(counts[at] for at in of)] += number
        return design_effect(shares)


_WORDS: Final = (Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED)
_PASSED, _FAILED, _ERROR, _SKIPPED = range(len(_WORDS))
_COUNTS: Final[Mapping[Outcome, Tally]] = {
    outcome: tuple(int(outcome is word) for word in _WORDS) for outcome in Outcome
}


def counts_of(outcome: Outcome) -> Tally:
    """Returns the counts of one answer, for `outcome_effects`.

    >>> counts_of(Outcome.FAILED)
    (0, 1, 0, 0)
    """
    return _COUNTS[outcome]


class OutcomeEffects(NamedTuple):
    """The design effects of the rates of outcomes; 1 where items are not related."""

    pass_rate: float = 1.0
    pass_rate_of_judged: float = 1.0
    pass_rate_of_answered: float = 1.0
    error_rate: float = 1.0


UNRELATED: Final = OutcomeEffects()


def outcome_effects(answers: ByCase) -> OutcomeEffects:
    """Returns the design effects of the rates of outcomes."""
    judged = (_PASSED, _FAILED, _ERROR)
    return OutcomeEffects(
        answers.effect([_PASSED], [*judged, _SKIPPED]),
        answers.effect([_PASSED], judged),
        answers.effect([_PASSED], [_PASSED, _FAILED]),
        answers.effect([_ERROR], [*judged, _SKIPPED]),
    )


def outcome_rates(counts: Counts, effects: OutcomeEffects = UNRELATED) -> OutcomeRates:
    """Returns the shares of outcomes in all items, and in those with an answer; a decided turn has passed.

    >>> outcome_rates(Counts(total=4, passed=2, error=1, skipped=1)).pass_rate_of_judged.n
    3
    """
    good, answered = counts.good, counts.good + counts.failed
    return OutcomeRates(
        pass_rate=wilson(good, counts.total, effect=effects.pass_rate).rounded(),
        pass_rate_of_judged=wilson(
            good, answered + counts.error, effect=effects.pass_rate_of_judged
        ).rounded(),
        pass_rate_of_answered=wilson(good, answered, effect=effects.pass_rate_of_answered).rounded(),
        error_rate=wilson(counts.error, counts.total, effect=effects.error_rate).rounded(),
    )
