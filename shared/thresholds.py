"""Compares figures with thresholds, so that the rounding of sums and quotients decides nothing."""

from typing import Final

TOLERANCE: Final = 1e-9
"""By how much a figure may miss its threshold; no score, rate or price is written this exactly."""


def reaches(figure: float, threshold: float) -> bool:
    """Whether a figure is at least a threshold.

    >>> (0.1 + 0.7) / 2 >= 0.4, reaches((0.1 + 0.7) / 2, 0.4), reaches(0.399_999, 0.4)
    (False, True, False)
    """
    return figure >= threshold - TOLERANCE


def exceeds(figure: float, threshold: float) -> bool:
    """Whether a figure is more than a threshold.

    >>> 0.1 + 0.2 > 0.3, exceeds(0.1 + 0.2, 0.3), exceeds(0.300_001, 0.3)
    (True, False, True)
    """
    return figure > threshold + TOLERANCE
