"""Adds up how far judges can be trusted: agreement, sameness over repeats, labels of people; pure.

Nothing but counts is kept, whatever the size of the run.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from producer.aggregate.statistics import wilson
from producer.cases.documents import (
    Agreement,
    Consistency,
    JudgeFigures,
    JudgingFigures,
    LabelFigures,
)
from producer.cases.judge_statistics import Calibration, alpha_of_tallies, calibrated, corrected_rate
from producer.cases.report.opened_rows import OpenedCase
from producer.cases.results import CaseResult, JudgeVote
from producer.documents import Rate
from shared.contracts.case_run import CasePayload
from shared.contracts.case_vocabulary import Stage
from worker.validation.case_verdict import StageOutcome

FEW_LABELS: Final = 30
"""Labelled answers below which figures are rough."""
WORDS: Final = ("pass", "fail", "unclear")
"""The verdicts of a judge."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Sameness:
    """Takes verdicts answer by answer: repeats of one come one after the other, so nothing grows.

    >>> sameness = Sameness()
    >>> for output, verdict in ((b"x", "pass"), (b"x", "pass"), (b"y", "pass"), (b"y", "fail")):
    ...     sameness.add(("model", 0), "judge", output, verdict)
    >>> found = sameness.summary("judge")
    >>> found.n, found.same.value, sameness.summary("other")
    (2, 0.5, None)
    """

    def __init__(self) -> None:
        self._answer = ("", -1)
        self._open: dict[tuple[str, bytes], Counter[str]] = {}
        self._ended = Counter[tuple[str, bool]]()

    def add(self, answer: tuple[str, int], judge: str, output: bytes, verdict: str) -> None:
        """Counts one verdict.

        Args:
            answer: model and case.
            judge: whose verdict it is; empty for all of them together.
            output: stands for what was judged.
            verdict: the verdict.
        """
        if answer != self._answer:
            self._ended, self._open, self._answer = self._counted(), {}, answer
        self._open.setdefault((judge, output), Counter())[verdict] += 1

    def summary(self, judge: str) -> Consistency | None:
        """Returns how many outputs were judged more than once, and the share judged the same each time."""
        counted = self._counted()
        same, other = counted[judge, True], counted[judge, False]
        return Consistency(same + other, wilson(same, same + other).rounded()) if same + other else None

    def _counted(self) -> Counter[tuple[str, bool]]:
        """Returns outputs that were judged more than once, by judge and sameness, the open ones included."""
        repeated = ((judge, given) for (judge, _), given in self._open.items() if given.total() > 1)
        return self._ended + Counter((judge, len(given) == 1) for judge, given in repeated)


@dataclass(slots=True)
class _Judge:
    """The verdicts of one judge."""

    words: Counter[str] = field(default_factory=Counter)
    unreached: int = 0
    cost_usd: float = 0.0
    agreed: int = 0
    """Votes for what the panel decided."""
    decided: int = 0
    """Votes in panels that decided."""
    against: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    """Its verdicts beside people's."""

    def summary(self, name: str, sameness: Sameness, *, is_panel: bool) -> JudgeFigures:
        """Returns its line of the summary."""
        passed, failed, unclear = (self.words[word] for word in WORDS)
        return JudgeFigures(
            model=name,
            votes=self.words.total(),
            passed=passed,
            failed=failed,
            unclear=unclear,
            unreached=self.unreached,
            cost_usd=self.cost_usd,
            with_panel=_rate(wilson(self.agreed, self.decided)) if is_panel else None,
            consistency=sameness.summary(name),
            calibration=_label_figures(_calibrated(self.against)),
        )


class Judging:
    """Counts the verdicts of the judges of a run; the repeats of a case come one after the other."""

    def __init__(self) -> None:
        self._judges: dict[str, _Judge] = {}
        self.not_reached: dict[str, str] = {}
        """Why a judge could not be asked the first time, by its name."""
        self._passed = self._failed = self._unreached = 0
        self._is_panel = False
        self._tallies = Counter[tuple[int, ...]]()
        self._against = Counter[tuple[bool, bool]]()
        self._sameness = Sameness()
        self._labelled = self._answers = 0
        self._last_answer = ("", -1)

    def add(self, case: OpenedCase, result: CaseResult) -> None:
        """Counts one case that has a verdict."""
        if not result.stages or result.stages[-1].stage is not Stage.FUZZY:
            self._labelled += case.item.label is not None
            return
        judged = result.stages[-1]
        found = judged.known
        self._unreached += found.unreachable
        output = blake2b(_encode(result.parsed_output), digest_size=16).digest()
        decided = None if found.unreachable else judged.outcome is StageOutcome.PASS
        self.add_question(case.item, found.voices, decided, output)

    def add_question(
        self,
        item: CasePayload,
        votes: Sequence[JudgeVote],
        decided: bool | None,  # noqa: FBT001 - a verdict
        output: bytes,
    ) -> None:
        """Counts one question to the judges.

        Args:
            item: the case.
            votes: one of each judge.
            decided: what they decided together; None where too few could be asked.
            output: stands for what was judged.
        """
        self._labelled += item.label is not None
        if not votes:
            return
        answer = (f"{item.model}\n{item.prompt_id or ''}", item.case)
        self._count_verdict(item.label, answer, decided)
        self._is_panel |= len(votes) > 1
        given = Counter(vote.verdict for vote in votes if vote.verdict)
        if len(votes) > 1:
            self._tallies[tuple(given[word] for word in WORDS)] += 1
        if decided is not None:
            self._sameness.add(answer, "", output, str(decided))
        for vote in votes:
            self._count_vote(vote, decided, item.label)
            if vote.verdict:
                self._sameness.add(answer, vote.model, output, vote.verdict)

    def summary(self) -> JudgingFigures:
        """Returns all of it; figures that need more than there is are None."""
        judged = self._passed + self._failed
        found = _calibrated(self._against)
        true_rate = (
            corrected_rate(self._passed, judged, found) if found and self._answers >= FEW_LABELS else None
        )
        return JudgingFigures(
            calls=sum(judge.words.total() for judge in self._judges.values()),
            cost_usd=sum(judge.cost_usd for judge in self._judges.values()),
            unreached=self._unreached,
            judged=judged,
            pass_rate=_rate(wilson(self._passed, judged)),
            judges=[
                judge.summary(name, self._sameness, is_panel=self._is_panel)
                for name, judge in self._judges.items()
            ],
            agreement=self._agreement(),
            consistency=self._sameness.summary(""),
            labelled=self._labelled,
            calibration=_label_figures(found, self._answers),
            corrected_pass_rate=_rate(true_rate),
        )

    def _count_verdict(
        self,
        label: str | None,
        answer: tuple[str, int],
        decided: bool | None,  # noqa: FBT001 - same
    ) -> None:
        """Counts what the judges decided together."""
        if decided is None:
            return
        self._passed += decided
        self._failed += not decided
        if label is not None:
            self._against[decided, label == "pass"] += 1
            self._answers += answer != self._last_answer
            self._last_answer = answer

    def _count_vote(self, vote: JudgeVote, decided: bool | None, label: str | None) -> None:  # noqa: FBT001 - same
        """Counts the verdict of one judge."""
        judge = self._judges.setdefault(vote.model, _Judge())
        if not vote.verdict:
            judge.unreached += 1
            self.not_reached.setdefault(vote.model, str(vote.unreachable or ""))
            return
        judge.words[vote.verdict] += 1
        judge.cost_usd += vote.cost_usd or 0.0
        is_pass = vote.verdict == "pass"
        if decided is not None:
            judge.decided += 1
            judge.agreed += is_pass == decided
        if label is not None:
            judge.against[is_pass, label == "pass"] += 1

    def _agreement(self) -> Agreement | None:
        """Computes how far the judges of a panel agree; None where no case has two verdicts."""
        paired = {tally: cases for tally, cases in self._tallies.items() if sum(tally) > 1}
        if not paired:
            return None
        alike = sum(cases for tally, cases in paired.items() if max(tally) == sum(tally))
        pairs, alpha = sum(paired.values()), alpha_of_tallies(paired)
        return Agreement(
            judges=len(self._judges),
            n=pairs,
            unanimous=_rate(wilson(alike, pairs)),
            krippendorff_alpha=None if alpha is None else round(alpha, 4),
        )


def _calibrated(pairs: Mapping[tuple[bool, bool], int]) -> Calibration | None:
    """Puts verdicts beside labels; None without any."""
    return calibrated(pairs) if pairs else None


def _label_figures(found: Calibration | None, answers: int | UnsetType = UNSET) -> LabelFigures | None:
    """Returns what a calibration amounts to."""
    if found is None:
        return None
    balanced = found.balanced_accuracy if found.recall.n and found.specificity.n else None
    return LabelFigures(
        n=found.n,
        answers=answers,
        few=UNSET if answers is UNSET else answers < FEW_LABELS,
        true_passed=found.true_passed,
        false_passed=found.false_passed,
        true_failed=found.true_failed,
        false_failed=found.false_failed,
        accuracy=_rate(found.accuracy),
        precision=_rate(found.precision),
        recall=_rate(found.recall),
        specificity=_rate(found.specificity),
        balanced_accuracy=_rate(balanced),
    )


def _rate(rate: Rate | None) -> Rate | None:
    """Rounds a rate; one of nothing is None."""
    return rate.rounded() if rate is not None and rate.n else None
