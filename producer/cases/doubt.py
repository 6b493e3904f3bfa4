"""How little is certain of a case's verdict: what people should look at first; pure."""

from collections.abc import Sequence
from typing import Final

from producer.cases.results import JudgeVote

NEAR: Final = 0.25
"""Scores that are further from their bound are certain."""


def disagreement(votes: Sequence[JudgeVote]) -> float:
    """Returns how evenly judges are divided, from 0 (all agree) to 1 (two halves).

    >>> words = ("pass", "pass", "fail", None)
    >>> round(disagreement([JudgeVote(verdict=word) for word in words]), 2)
    0.67
    """
    given = [vote.verdict == "pass" for vote in votes if vote.verdict]
    smaller = min(given.count(True), given.count(False))
    return 2 * smaller / len(given) if given else 0.0


def nearness(score: float | None, at_least: float | None) -> float:
    """Returns how near a score is to its bound, from 0 to 1.

    >>> [nearness(score, 0.7) for score in (0.7, 0.2, 1.0, None)]
    [1.0, 0.0, 0.0, 0.0]
    """
    if score is None or not at_least or score in {0.0, 1.0}:
        return 0.0
    return max(0.0, 1 - abs(score - at_least) / NEAR)
