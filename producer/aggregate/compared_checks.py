"""Compares how often each check passed in two runs, as outcomes are compared; pure."""

from collections import Counter, defaultdict
from typing import NamedTuple

from producer.aggregate.comparison import LEVEL, PairedItems, PairedTest, tested


class ComparedCheck(NamedTuple):
    """How often a check passed in both runs, over the items that it was asked of in both."""

    a: int
    """Items that passed it in A."""
    b: int
    n: int
    """Items that it was asked of."""
    test: PairedTest
    """Of the units in which it changed."""


def compare_checks(pairs: PairedItems, *, level: float = LEVEL) -> dict[str, ComparedCheck]:
    """Compares how often each check passed; items of which another answer was expected are left out.

    Args:
        pairs: of two runs.
        level: see `compare`.
    """
    counts, changed = dict[str, list[int]](), defaultdict[str, Counter[str]](Counter)
    for pair in pairs.all():
        before, after = pair
        if pair.has_other_expectation:
            continue
        found = dict(before.verdicts)
        for name, is_good in after.verdicts:
            if name not in found:
                continue
            was_good = found[name]
            count = counts.setdefault(name, [0, 0, 0])
            count[0] += was_good
            count[1] += is_good
            count[2] += 1
            if is_good != was_good:
                changed[name][after.unit] += is_good - was_good
    return {
        name: ComparedCheck(a, b, n, tested(changed[name].values(), level, level))
        for name, (a, b, n) in counts.items()
    }
