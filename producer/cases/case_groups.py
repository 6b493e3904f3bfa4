"""Adds up cases by prompt, by tag and by check: outcomes, costs, mean scores with intervals; pure."""

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import repeat
from math import sqrt
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from producer.aggregate.related import ByCase, counts_of, outcome_effects
from producer.aggregate.statistics import Z_95, wilson
from producer.cases.documents import (
    CheckFigures,
    GroupFigures,
    MeanScore,
    PromptFigures,
    PromptModelFigures,
    TagFigures,
)
from producer.cases.judging import Judging
from producer.cases.report.opened_rows import OpenedCase
from producer.cases.results import CheckRow
from shared.names import Outcome

MOST_GROUPS: Final = 1_000
"""Prompts, tags or checks that are counted; later ones are left out, so that memory is bounded."""
MOST_CLUSTERS: Final = 20_000
"""Groups of related scores that are kept apart; with more cases, some share a group."""


class ScoreMean:
    """The weighted mean of scores, with an interval that takes the scores of one case as related.

    The standard error is that of a ratio of sums over clusters, as `clustered_mean` has it for equal weights.

    >>> mean = ScoreMean()
    >>> for case, score in enumerate((1.0, 0.5, 0.0, 0.5)):
    ...     mean.add(case, score)
    >>> found = mean.summary()
    >>> found.value, round(found.standard_error, 3), round(found.low, 3), found.n
    (0.5, 0.204, 0.1, 4)
    """

    __slots__ = ("_is_met", "_n", "_totals", "_weights")

    def __init__(self) -> None:
        self._totals, self._weights, self._is_met = array("d"), array("d"), bytearray()
        self._n = 0

    def add(self, case: int, score: float, weight: float = 1.0) -> None:
        """Counts the score of one answer to a case."""
        cluster = case % MOST_CLUSTERS
        if cluster >= len(self._is_met):
            more = cluster + 1 - len(self._is_met)
            self._is_met.extend(bytes(more))
            self._totals.extend(repeat(0.0, more))
            self._weights.extend(repeat(0.0, more))
        self._totals[cluster] += weight * score
        self._weights[cluster] += weight
        self._is_met[cluster] = 1
        self._n += 1

    def summary(self) -> MeanScore | None:
        """Returns the mean with its bounds; None without scores, no bounds for a single case."""
        weights = sum(self._weights)
        if not weights:
            return None
        mean = min(1.0, sum(self._totals) / weights)
        count = sum(self._is_met)
        if count == 1:
            return MeanScore(round(mean, 4), None, None, None, self._n)
        clusters = zip(self._totals, self._weights, strict=True)
        squares = sum((total - mean * weight) ** 2 for total, weight in clusters)
        error = sqrt(squares * count / (count - 1)) / weights
        low, high = max(0.0, mean - Z_95 * error), min(1.0, mean + Z_95 * error)
        return MeanScore(round(mean, 4), round(low, 4), round(high, 4), error, self._n)


@dataclass(slots=True)
class _Group:
    """The items of one prompt, or with one tag."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    scores: ScoreMean = field(default_factory=ScoreMean)
    by_case: ByCase = field(default_factory=ByCase)
    cost_usd: float = 0.0
    cost_unknown: int = 0

    def add(self, case: OpenedCase) -> None:
        """Counts one row."""
        self.outcomes[case.row.outcome] += 1
        self.by_case.add(case.item.case, counts_of(case.row.outcome))
        self.cost_usd += case.row.cost_usd or 0.0
        self.cost_unknown += case.is_answered and case.row.cost_usd is None
        add_score(self.scores, case)

    def summary(self) -> GroupFigures:
        """Returns its figures; rates are fractions."""
        passed, failed = self.outcomes[Outcome.PASSED], self.outcomes[Outcome.FAILED]
        judged = passed + failed + self.outcomes[Outcome.ERROR]
        effect = outcome_effects(self.by_case).pass_rate_of_judged
        return GroupFigures(
            total=self.outcomes.total(),
            passed=passed,
            failed=failed,
            errors=self.outcomes[Outcome.ERROR],
            skipped=self.outcomes[Outcome.SKIPPED],
            pass_rate=wilson(passed, judged, effect=effect).rounded(),
            score=self.scores.summary(),
            cost_usd=None if self.cost_unknown else self.cost_usd,
            known_cost_usd=self.cost_usd,
        )


@dataclass(slots=True)
class _Check:
    """What became of one check, over all cases that have it."""

    kind: str
    passed: int = 0
    failed: int = 0
    not_asked: int = 0
    scores: ScoreMean = field(default_factory=ScoreMean)
    by_case: ByCase = field(default_factory=ByCase)
    cost_usd: float = 0.0
    judging: Judging | None = None

    def add(self, case: OpenedCase, row: CheckRow) -> None:
        """Counts it for one case."""
        self.cost_usd += row.cost_usd or 0.0
        if row.passed is None:
            self.not_asked += row.score is None
        else:
            self.passed += row.passed
            self.failed += not row.passed
            self.by_case.add(case.item.case, (int(row.passed), int(not row.passed)))
        if row.score is not None:
            self.scores.add(case.item.case, row.score)
        for rubric in row.rubrics:
            if self.judging is None:
                self.judging = Judging()
            answer = str(case.answer.raw_output).encode(errors="replace")
            output = bytes.fromhex(rubric.question) or blake2b(answer, digest_size=16).digest()
            # Labels are about the answer: they say nothing of a rubric that a good one does not meet.
            item = msgspec.structs.replace(case.item, criteria={}) if rubric.negated else case.item
            self.judging.add_question(item, rubric.votes, rubric.passed, output)

    def summary(self, name: str) -> CheckFigures:
        """Returns its figures; those of its judges where it has any."""
        effect = self.by_case.effect([0], [0, 1])
        return CheckFigures(
            name=name,
            check=self.kind,
            passed=self.passed,
            failed=self.failed,
            not_asked=self.not_asked,
            pass_rate=wilson(self.passed, self.passed + self.failed, effect=effect).rounded(),
            score=self.scores.summary(),
            known_cost_usd=self.cost_usd,
            judge=None if self.judging is None else self.judging.summary(),
        )


class CaseGroups:
    """Counts rows by what they have in common; of runs without prompts, tags and checks nothing."""

    def __init__(self) -> None:
        self._prompts: dict[str, _Group] = {}
        self._prompts_by_model: dict[tuple[str, str], _Group] = {}
        self._tags: dict[str, _Group] = {}
        self._checks: dict[str, _Check] = {}

    def add(self, case: OpenedCase) -> None:
        """Counts one row."""
        item = case.item
        if item.prompt_id is not None:
            _add(self._prompts, item.prompt_id, case)
            _add(self._prompts_by_model, (item.model, item.prompt_id), case)
        for tag in dict.fromkeys(item.tags):
            _add(self._tags, tag, case)
        for row in case.result.checks if case.result else ():
            found = _member(self._checks, row.name, lambda row=row: _Check(row.check))  # type: ignore[misc]  # a default binds the row
            if found is not None:
                found.add(case, row)

    def prompts(self) -> list[PromptFigures]:
        """Returns the figures of each prompt."""
        return [PromptFigures(name, **asdict(each.summary())) for name, each in self._prompts.items()]

    def prompts_by_model(self) -> list[PromptModelFigures]:
        """Returns the figures of each prompt with each model."""
        return [
            PromptModelFigures(*pair, **asdict(each.summary()))
            for pair, each in self._prompts_by_model.items()
        ]

    def tags(self) -> list[TagFigures]:
        """Returns the figures of each tag."""
        return [TagFigures(name, **asdict(each.summary())) for name, each in sorted(self._tags.items())]

    def checks(self) -> list[CheckFigures]:
        """Returns the figures of each check."""
        return [each.summary(name) for name, each in self._checks.items()]


def add_score(scores: ScoreMean, case: OpenedCase) -> None:
    """Counts the score of a case, if it has one."""
    score = None if case.code or case.result is None else case.result.score
    if score is not None:
        scores.add(case.item.case, score, case.item.weight)


def _add(groups: dict[Any, _Group], key: Any, case: OpenedCase) -> None:
    """Counts a row for one group."""
    group = _member(groups, key, _Group)
    if group is not None:
        group.add(case)


def _member(groups: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """Returns a group, made when it is first met; None when there are too many."""
    if key not in groups:
        if len(groups) >= MOST_GROUPS:
            return None
        groups[key] = make()
    return groups[key]
