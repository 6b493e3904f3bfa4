"""Aggregates repeats of cases: verdicts by several answers, pass@k, the error of the mean; pure."""

from collections import Counter
from collections.abc import Hashable

from producer.aggregate.related import ByCase, counts_of, outcome_effects
from producer.aggregate.statistics import clustered_mean, flakiness, pass_at_k, pass_hat_k, wilson
from producer.cases.documents import CaseVerdicts, RepeatFigures
from producer.documents import Counts
from shared.contracts.case_run import CasePayload, Quorum
from shared.names import Outcome


class Verdicts:
    """Counts cases by the verdict on all their answers; those of one case come one after the other.

    A case that asks for no number of passes counts by each of its answers.
    """

    def __init__(self) -> None:
        self._outcomes = Counter[Outcome]()
        self._by_case = ByCase()
        self._not_needed = 0
        self._case: Hashable = None
        self._quorum: Quorum | None = None
        self._place = 0
        self._answers = Counter[Outcome]()

    def add(self, item: CasePayload, outcome: Outcome, *, is_needed: bool) -> None:
        """Counts one answer.

        Args:
            item: the case, with model and prompt.
            outcome: of the answer.
            is_needed: whether the verdict was open when it was its turn.
        """
        case = (item.model, item.prompt_id, item.case)
        if case != self._case:
            self._close()
            self._case, self._quorum, self._place = case, item.quorum, item.case
        self._not_needed += not is_needed
        if item.quorum is None:
            self._count(outcome)
        else:
            self._answers[outcome] += 1

    def summary(self) -> CaseVerdicts:
        """Returns the figures so far, the case at hand included.

        >>> verdicts = Verdicts()
        >>> for at, outcome in ((0, "passed"), (0, "passed"), (0, "skipped"), (1, "error"), (1, "passed")):
        ...     item = CasePayload(at, "m", "Hi", quorum=Quorum(2, 3))
        ...     verdicts.add(item, Outcome(outcome), is_needed=outcome != "skipped")
        >>> found = verdicts.summary()
        >>> found.counts.named(), found.not_needed
        ({'passed': 1, 'error': 1}, 1)
        """
        self._close()
        passed = self._outcomes[Outcome.PASSED]
        judged = passed + self._outcomes[Outcome.FAILED] + self._outcomes[Outcome.ERROR]
        effect = outcome_effects(self._by_case).pass_rate_of_judged
        counts = Counts.of(self._outcomes, self._outcomes.total())
        return CaseVerdicts(counts, wilson(passed, judged, effect=effect).rounded(), self._not_needed)

    @property
    def has_failed(self) -> bool:
        """Whether a case failed, the one at hand included."""
        self._close()
        return bool(self._outcomes[Outcome.FAILED])

    def _close(self) -> None:
        """Counts the case at hand by its answers."""
        answers, self._answers, self._case = self._answers, Counter[Outcome](), None
        if self._quorum is not None and answers:
            self._count(self._quorum.outcome(answers))

    def _count(self, outcome: Outcome) -> None:
        self._outcomes[outcome] += 1
        self._by_case.add(self._place, counts_of(outcome))


class Repeats:
    """Counts verdicts case by case: tries of one case come one after the other, so nothing grows."""

    def __init__(self) -> None:
        self._ended = Counter[tuple[int, int]]()
        self._case: Hashable = None
        self._tries = self._passed = self._not_needed = 0

    def leave_out(self) -> None:
        """Notes that an answer was not asked for, because the verdict on its case was certain."""
        self._not_needed += 1

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

        Only cases with all their repeats are in pass@k: k tries of fewer are no estimate. Where some were
        not needed there is none: the cases that have all are those near the limit.

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
        sizes = () if self._not_needed else (1, k)
        return RepeatFigures(
            repeats=k,
            cases=len(verdicts),
            complete_cases=len(whole),
            mean=mean.value,
            standard_error=mean.standard_error,
            pass_at_k={str(n): _mean([pass_at_k(k, passed, n) for passed in whole]) for n in sizes},
            pass_hat_k={str(n): _mean([pass_hat_k(k, passed, n) for passed in whole]) for n in sizes},
            flaky=found.flaky,
            disagreement=found.disagreement,
        )

    def _counted(self) -> Counter[tuple[int, int]]:
        """Returns cases by tries and how many of these passed, the one at hand included."""
        return self._ended + Counter([(self._tries, self._passed)]) if self._tries else self._ended


def _mean(values: list[float]) -> float:
    """Returns the mean of at least one value."""
    return sum(values) / len(values)
