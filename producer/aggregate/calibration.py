"""Says how far a judge can be trusted, from cases that people have labelled; pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from producer.aggregate.statistics import Z_95, Rate, wilson


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


def calibrate(pairs: Iterable[tuple[bool, bool]]) -> Calibration:
    """Counts how a judge did on labelled cases.

    Args:
        pairs: the judge's verdict and people's label of each case.

    >>> found = calibrate([(True, True)] * 8 + [(True, False)] * 2 + [(False, False)] * 9 + [(False, True)])
    >>> round(found.precision.value, 2), round(found.recall.value, 4), round(found.balanced_accuracy.value, 4)
    (0.8, 0.8889, 0.8535)
    """
    return calibrated(Counter(pairs))


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
