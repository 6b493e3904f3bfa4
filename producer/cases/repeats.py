"""Aggregates repeats of cases: pass@k, the error of the mean, and which cases are flaky; pure."""

from collections import Counter
from collections.abc import Hashable

from producer.aggregate.statistics import clustered_mean, flakiness, pass_at_k, pass_hat_k
from producer.cases.documents import RepeatFigures


class Repeats:
    """Counts verdicts case by case: tries of one case come one after the other, so nothing grows."""

    def __init__(self) -> None:
        self._ended = Counter[tuple[int, int]]()
        self._case: Hashable = None
        self._tries = self._passed = 0

    def add(self, case: Hashable, *, passed: bool) -> None:
        """Counts one try of a case; one that ended in error has not passed.

        Args:
            case: identifies the case, and the prompt where there are several.
            passed: whether it passed.
        """
        if case != self._case:
            if self._tries:
                self._ended[self._tries, self._passed] += 1
            self._case, self._tries, self._passed = case, 0, 0
        self._tries += 1
        self._passed += passed

    def summary(self) -> RepeatFigures | None:
        """Returns the figures of the repeats; None when nothing was tried twice.

        Only cases with all their repeats are in pass@k: k tries of fewer are no estimate.

        >>> repeats = Repeats()
        >>> for case, passed in ((0, True), (0, True), (1, True), (1, False)):
        ...     repeats.add(case, passed=passed)
        >>> found = repeats.summary()
        >>> found.pass_at_k, found.pass_hat_k, found.flaky, round(found.standard_error, 4)
        ({'1': 0.75, '2': 1.0}, {'1': 0.75, '2': 0.5}, 1, 0.25)
        """
        cases = self._counted()
        k = max((n for n, _ in cases), default=0)
        if k < 2:  # noqa: PLR2004 - one try is no repeat
            return None
        # Cases that came out alike share one list: it is the pointers that are many.
        verdicts = [
            tries
            for (n, passed), count in sorted(cases.items())
            for tries in [[True] * passed + [False] * (n - passed)] * count
        ]
        whole = [sum(tries) for tries in verdicts if len(tries) == k]
        mean, found = clustered_mean(verdicts), flakiness(verdicts)
        return RepeatFigures(
            repeats=k,
            cases=len(verdicts),
            complete_cases=len(whole),
            mean=mean.value,
            standard_error=mean.standard_error,
            pass_at_k={str(n): _mean([pass_at_k(k, passed, n) for passed in whole]) for n in (1, k)},
            pass_hat_k={str(n): _mean([pass_hat_k(k, passed, n) for passed in whole]) for n in (1, k)},
            flaky=found.flaky,
            disagreement=found.disagreement,
        )

    def _counted(self) -> Counter[tuple[int, int]]:
        """Returns cases by tries and how many of these passed, the one at hand included."""
        return self._ended + Counter([(self._tries, self._passed)]) if self._tries else self._ended


def _mean(values: list[float]) -> float:
    """Returns the mean of at least one value."""
    return sum(values) / len(values)
