"""How far judges can be trusted: their agreement with each other, and with the labels of people; pure."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from producer.aggregate.statistics import Z_95, wilson
from producer.documents import Rate


def krippendorff_alpha(cases: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Returns the agreement of any number of judges on nominal values, of which some may be missing.

    K. Krippendorff, "Computing Krippendorff's alpha-reliability" (University of Pennsylvania, 2011), section
    C.

    Args:
        cases: the verdicts on each case; None for a judge who gave none.

    Returns:
        None when nothing can be paired, or all verdicts are the same word.

    The example of its section B, two observers and ten units:

    >>> units = ["01", "11", "01", "00", "00", "01", "00", "00", "10", "00"]
    >>> round(krippendorff_alpha([list(unit) for unit in units]), 3)
    0.095
    """
    counters = [Counter(word for word in verdicts if word is not None) for verdicts in cases]
    words = list(dict.fromkeys(word for count in counters for word in count))
    return alpha_of_tallies(Counter(tuple(count[word] for word in words) for count in counters))


def alpha_of_tallies(tallies: Mapping[tuple[int, ...], int]) -> float | None:
    """Returns the same from counts, which do not grow with the number of cases.

    Args:
        tallies: how many judges gave each verdict, the words always in one order; how many cases came out so.

    The same example, of which all verdicts are 0 or 1:

    >>> round(alpha_of_tallies({(2, 0): 5, (1, 1): 4, (0, 2): 1}), 3)
    0.095
    """
    pairable = {tally: cases for tally, cases in tallies.items() if sum(tally) > 1}
    weighted = zip(*([count * cases for count in tally] for tally, cases in pairable.items()), strict=True)
    totals: list[int] = [sum(each) for each in weighted]
    n: int = sum(totals)
    if sum(total > 0 for total in totals) < 2:  # noqa: PLR2004 - one word cannot differ from itself
        return None
    observed = fsum(
        cases * (sum(tally) ** 2 - sum(c * c for c in tally)) / (sum(tally) - 1)
        for tally, cases in pairable.items()
    )
    expected = (n * n - sum(total * total for total in totals)) / (n - 1)
    return 1 - observed / expected


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge against labels; `passed` is the verdict that counts as found."""

    true_passed: int
    """The judge passed what people passed."""
    false_passed: int
    """The judge passed what people failed."""
    true_failed: int
    """The judge failed what people failed."""
    false_failed: int
    """The judge failed what people passed."""

    @property
    def n(self) -> int:
        """Labelled cases."""
        return self.true_passed + self.false_passed + self.true_failed + self.false_failed

    @property
    def accuracy(self) -> Rate:
        """The share of verdicts that are people's."""
        return wilson(self.true_passed + self.true_failed, self.n)

    @property
    def precision(self) -> Rate:
        """Of what the judge passed, the share that people passed too."""
        return wilson(self.true_passed, self.true_passed + self.false_passed)

    @property
    def recall(self) -> Rate:
        """Of what people passed, the share that the judge passed too (sensitivity)."""
        return wilson(self.true_passed, self.true_passed + self.false_failed)

    @property
    def specificity(self) -> Rate:
        """Of what people failed, the share that the judge failed too."""
        return wilson(self.true_failed, self.true_failed + self.false_passed)

    @property
    def balanced_accuracy(self) -> Rate:
        """Mean of recall and specificity: a judge that always passes has 0.5, however many cases are good.

        K. H. Brodersen and others, "The balanced accuracy and its posterior distribution" (ICPR 2010). The
        bounds join the two Wilson intervals by the square-and-add method of R. G. Newcombe, Statistics in
        Medicine 17 (1998), pages 873-890, for the mean in place of the difference.
        """
        one, other = self.recall, self.specificity
        value = (one.value + other.value) / 2
        low = value - sqrt((one.value - one.low) ** 2 + (other.value - other.low) ** 2) / 2
        high = value + sqrt((one.high - one.value) ** 2 + (other.high - other.value) ** 2) / 2
        return Rate(value, max(0.0, low), min(1.0, high), self.n)


def calibrated(counts: Mapping[tuple[bool, bool], int]) -> Calibration:
    """Makes the same of counts of the judge's verdict and people's label.

    >>> calibrated({(True, True): 8, (False, True): 1}).false_failed
    1
    """
    true, false = counts.get((True, True), 0), counts.get((True, False), 0)
    return Calibration(true, false, counts.get((False, False), 0), counts.get((False, True), 0))


def corrected_rate(passed: int, total: int, judge: Calibration) -> Rate | None:
    """Returns the pass rate that people would have given, from the judge's own and its calibration.

    W. J. Rogan, B. Gladen, "Estimating prevalence from the results of a screening test", American Journal of
    Epidemiology 107 (1978): (rate + specificity - 1) / (recall + specificity - 1). The bounds are theirs too,
    by the delta method, with the uncertainty of the labelled cases in them.

    Args:
        passed: cases that the judge passed.
        total: cases that it judged.
        judge: how it did on labelled cases.

    Returns:
        None when the judge is no better than a coin, when labels of one word are missing, or nothing was
        judged.

    >>> judge = Calibration(true_passed=90, false_passed=20, true_failed=80, false_failed=10)
    >>> round(corrected_rate(480, 800, judge).value, 4)  # (0.6 + 0.8 - 1) / (0.9 + 0.8 - 1)
    0.5714
    """
    recall, specificity = judge.recall, judge.specificity
    gain = recall.value + specificity.value - 1
    if not (total and recall.n and specificity.n) or gain <= 0:
        return None
    seen = passed / total
    value = (seen + specificity.value - 1) / gain
    variance = (
        seen * (1 - seen) / total
        + value**2 * recall.value * (1 - recall.value) / recall.n
        + (1 - value) ** 2 * specificity.value * (1 - specificity.value) / specificity.n
    ) / gain**2
    spread = Z_95 * sqrt(variance)
    low, middle, high = (min(1.0, max(0.0, bound)) for bound in (value - spread, value, value + spread))
    return Rate(middle, low, high, total)
