"""Strengths of competitors from comparisons of pairs: the Bradley-Terry model with its intervals.

The probability that i is preferred to j is 1 / (1 + exp(strength j - strength i)). Strengths are found by
Newton's method; their sum is 0. Intervals are those of the likelihood's curvature (R. A. Bradley and
M. E. Terry, Biometrika 39, 1952; D. R. Hunter, Annals of Statistics 32, 2004).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

Wins = Mapping[tuple[str, str], float]
"""How often the first was preferred to the second; a tie is half a win of each."""

SMOOTHING: Final = 0.5
"""Added to each direction of each pair where one never won, or never lost: its strength is infinite."""
MOST_STEPS: Final = 100
CLOSE: Final = 1e-10
LONGEST_STEP: Final = 2.0
Z_95: Final = 1.959963984540054


class Strengths(NamedTuple):
    """A fit."""

    names: tuple[str, ...]
    """The competitors, in the order of the other fields."""
    values: tuple[float, ...]
    """Log strengths; their sum is 0."""
    covariance: tuple[tuple[float, ...], ...]
    """Of the values."""
    is_smoothed: bool
    """Whether half a win was added to each direction of each pair."""

    def beats_average(self, name: str) -> tuple[float, float, float]:
        """Returns the probability that a competitor is preferred to an average one, with its 95% interval."""
        at = self.names.index(name)
        value, error = self.values[at], math.sqrt(max(0.0, self.covariance[at][at]))
        return sigmoid(value), sigmoid(value - Z_95 * error), sigmoid(value + Z_95 * error)


def fit(names: Sequence[str], wins: Wins) -> Strengths:
    """Fits strengths to comparisons.

    Args:
        names: the competitors; at least one.
        wins: how often each was preferred to each other.

    >>> strengths = fit(["a", "b"], {("a", "b"): 3, ("b", "a"): 1})
    >>> [round(each, 3) for each in strengths.beats_average("a")], strengths.is_smoothed
    ([0.634, 0.358, 0.843], False)
    """
    is_smoothed = not _is_connected(names, wins)
    extra = SMOOTHING if is_smoothed else 0.0
    won = [[0.0 if one == other else wins.get((one, other), 0.0) + extra for other in names] for one in names]
    values = [0.0] * len(names)
    for _ in range(MOST_STEPS):
        gradient, inverse = _gradient(values, won), _inverse(_information(values, won))
        step = [sum(a * b for a, b in zip(row, gradient, strict=True)) for row in inverse]
        longest = max(map(abs, step))
        scale = min(1.0, LONGEST_STEP / longest) if longest else 0.0
        values = [value + scale * each for value, each in zip(values, step, strict=True)]
        if longest < CLOSE:
            break
    mean, share = sum(values) / len(values), 1 / len(values)
    inverse = _inverse(_information(values, won))
    covariance = tuple(tuple(each - share for each in row) for row in inverse)
    return Strengths(tuple(names), tuple(value - mean for value in values), covariance, is_smoothed)


def sigmoid(value: float) -> float:
    """The probability of a log strength against one of 0.

    >>> sigmoid(0.0), round(sigmoid(-800.0), 3)
    (0.5, 0.0)
    """
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))


def _gradient(values: Sequence[float], won: Sequence[Sequence[float]]) -> list[float]:
    """How the log likelihood grows with each strength."""
    everyone = range(len(values))
    return [
        sum(won[i][j] - (won[i][j] + won[j][i]) * sigmoid(values[i] - values[j]) for j in everyone if j != i)
        for i in everyone
    ]


def _information(values: Sequence[float], won: Sequence[Sequence[float]]) -> list[list[float]]:
    """The curvature of the log likelihood; 1/n in each place takes out that only differences count."""
    everyone = range(len(values))
    matrix = [[1 / len(values)] * len(values) for _ in everyone]
    for i in everyone:
        for j in everyone:
            if i != j:
                chance = sigmoid(values[i] - values[j])
                weight = (won[i][j] + won[j][i]) * chance * (1 - chance)
                matrix[i][i] += weight
                matrix[i][j] -= weight
    return matrix


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """Inverts a matrix by Gauss and Jordan's elimination, with the largest pivot of each column."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for at in range(size):
        best = max(range(at, size), key=lambda row: abs(rows[row][at]))
        rows[at], rows[best] = rows[best], rows[at]
        pivot = rows[at][at]
        rows[at] = [each / pivot for each in rows[at]]
        for other in range(size):
            factor = rows[other][at]
            if other != at and factor:
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [row[size:] for row in rows]


def _is_connected(names: Sequence[str], wins: Wins) -> bool:
    """Whether a chain of wins leads from each competitor to each other: only then are strengths finite."""
    return all(_reached(names, wins, is_forward=way) == set(names) for way in (True, False))


def _reached(names: Sequence[str], wins: Wins, *, is_forward: bool) -> set[str]:
    """Who can be reached from the first by chains of wins, or of losses."""
    found, waiting = {names[0]}, [names[0]]
    while waiting:
        one = waiting.pop()
        for other in names:
            pair = (one, other) if is_forward else (other, one)
            if other not in found and wins.get(pair, 0.0) > 0:
                found.add(other)
                waiting.append(other)
    return found
