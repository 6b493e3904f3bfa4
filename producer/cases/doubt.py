"""How little is certain of a case's verdict: what people should look at first; pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from producer.cases.report.opened_rows import OpenedCase
from producer.cases.results import CheckRow, JudgeVote

NEAR: Final = 0.25
"""Scores that are further from their bound are certain."""


def doubt_of(case: OpenedCase) -> float:
    """Returns how little is certain, from 0 to 1: judges that disagree, and scores near their bounds.

    An answer on which two judges are divided has 1, as has one whose score is its bound.
    """
    return max(_doubts(case), default=0.0) if case.result is not None else 0.0


def _doubts(case: OpenedCase) -> Iterator[float]:
    result = case.answer
    for stage in result.stages:
        yield disagreement(stage.known.voices)
    for row in result.checks:
        yield from (disagreement(rubric.votes) for rubric in row.rubrics)
        yield nearness(row)


def disagreement(votes: Sequence[JudgeVote]) -> float:
    """Returns how evenly judges are divided, from 0 (all agree) to 1 (two halves).

    >>> words = ("pass", "pass", "fail", None)
    >>> round(disagreement([JudgeVote(verdict=word) for word in words]), 2)
    0.67
    """
    given = [vote.verdict == "pass" for vote in votes if vote.verdict]
    smaller = min(given.count(True), given.count(False))
    return 2 * smaller / len(given) if given else 0.0


def nearness(row: CheckRow) -> float:
    """Returns how near a score is to its bound, from 0 to 1.

    >>> [nearness(CheckRow("", "rubric", score, True, "", None, {}, 0.7)) for score in (0.7, 0.2)]
    [1.0, 0.0]
    """
    if row.score is None or not row.at_least or row.score in {0.0, 1.0}:
        return 0.0
    return max(0.0, 1 - abs(row.score - row.at_least) / NEAR)
