"""Says how far judges agree with each other beyond chance; pure."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from math import fsum


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Returns the agreement of two judges on the same cases: 1 in full, 0 as by chance.

    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20
    (1960).

    Returns:
        None when chance alone would agree fully, as when both always say the same word.

    Raises:
        ValueError: there are no cases, or not the same number.

    >>> yes, no = "yes", "no"  # 20 and 15 in agreement, 5 and 10 not: 0.4
    >>> round(cohen_kappa([yes] * 25 + [no] * 25, [yes] * 20 + [no] * 5 + [yes] * 10 + [no] * 15), 4)
    0.4
    """
    n = len(first)
    if not n:
        raise ValueError("no cases to agree on")
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    ones, others = Counter(first), Counter(second)
    chance = sum(ones[word] * others[word] for word in ones) / n**2
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def fleiss_kappa(cases: Sequence[Sequence[Hashable]]) -> float | None:
    """Returns the agreement of a panel in which every case has the same number of verdicts.

    J. L. Fleiss, "Measuring nominal scale agreement among many raters", Psychological Bulletin 76 (1971).

    Args:
        cases: the verdicts on each case, two or more.

    Returns:
        None when chance alone would agree fully.

    Raises:
        ValueError: there are no cases, or differing numbers of verdicts; `krippendorff_alpha` takes those.

    >>> round(fleiss_kappa([["a", "a"], ["a", "b"], ["b", "b"], ["b", "b"]]), 4)
    0.4667
    """
    sizes = {len(verdicts) for verdicts in cases}
    if len(sizes) != 1 or min(sizes) < 2:  # noqa: PLR2004 - one verdict agrees with nobody
        raise ValueError("every case needs the same number of verdicts, two or more")
    [judges] = sizes
    counts = [Counter(verdicts) for verdicts in cases]
    pairs = judges * (judges - 1)
    agreed = fsum(sum(c * (c - 1) for c in count.values()) / pairs for count in counts) / len(cases)
    words = sum(counts, Counter[Hashable]())
    chance = fsum((c / (judges * len(cases))) ** 2 for c in words.values())
    return None if len(words) == 1 else (agreed - chance) / (1 - chance)


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
    told = [Counter(word for word in verdicts if word is not None) for verdicts in cases]
    words = list(dict.fromkeys(word for count in told for word in count))
    return alpha_of_tallies(Counter(tuple(count[word] for word in words) for count in told))


def alpha_of_tallies(tallies: Mapping[tuple[int, ...], int]) -> float | None:
    """Returns the same from counts, which do not grow with the number of cases.

    Args:
        tallies: how many judges said each word, the words always in one order; how many cases came out so.

    The same example, of which nobody said anything else than 0 or 1:

    >>> round(alpha_of_tallies({(2, 0): 5, (1, 1): 4, (0, 2): 1}), 3)
    0.095
    """
    pairable = {tally: cases for tally, cases in tallies.items() if sum(tally) > 1}
    said = zip(*([count * cases for count in tally] for tally, cases in pairable.items()), strict=True)
    totals: list[int] = [sum(each) for each in said]
    n: int = sum(totals)
    if sum(total > 0 for total in totals) < 2:  # noqa: PLR2004 - one word cannot differ from itself
        return None
    observed = fsum(
        cases * (sum(tally) ** 2 - sum(c * c for c in tally)) / (sum(tally) - 1)
        for tally, cases in pairable.items()
    )
    expected = (n * n - sum(total * total for total in totals)) / (n - 1)
    return 1 - observed / expected
