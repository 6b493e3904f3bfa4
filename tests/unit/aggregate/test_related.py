"""Intervals of rates take the answers to one case as related, and leave those of single answers alone."""

from collections import Counter
from random import Random

import pytest

from producer.aggregate.related import design_effect
from producer.aggregate.statistics import wilson
from producer.documents import AnyRun
from producer.report.run_verdict import rated
from producer.text import bounds
from shared.contracts.case_run import CasePayload
from tests.support.case_pages import EXPECTED, GOOD, WRONG, document, item_row, run_info
from tests.support.documents import printed

CASES, ANSWERS = 12, 6
SAMPLES = 600


def drawn(random: Random, rate: float, alike: float) -> Counter[tuple[int, int]]:
    """Cases whose answers are alike to a degree from 0 to 1, drawn from a beta-binomial distribution."""
    found = Counter[tuple[int, int]]()
    for _ in range(CASES):
        chance = rate
        if alike == 1:
            chance = float(random.random() < rate)
        elif alike:
            scale = (1 - alike) / alike
            chance = random.betavariate(rate * scale, (1 - rate) * scale)
        found[sum(random.random() < chance for _ in range(ANSWERS)), ANSWERS] += 1
    return found


def holds(cases: Counter[tuple[int, int]], rate: float, effect: float) -> bool:
    """Whether the interval of a sample holds the true rate."""
    good = sum(good * number for (good, _), number in cases.items())
    found = wilson(good, CASES * ANSWERS, effect=effect)
    return found.low <= rate <= found.high


@pytest.mark.parametrize("rate", [0.5, 0.9])
@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
def test_the_interval_holds_its_level(rate: float, alike: float) -> None:
    """However alike the answers of a case are, nine samples of ten and more have the true rate inside."""
    random = Random(f"{rate} {alike}")
    samples = [drawn(random, rate, alike) for _ in range(SAMPLES)]
    assert sum(holds(cases, rate, design_effect(cases)) for cases in samples) / SAMPLES > 0.91
    if alike:
        independent = sum(holds(cases, rate, 1.0) for cases in samples) / SAMPLES
        assert independent < 0.85, "as if all answers were independent it does not"


def test_one_failure_more_never_raises_the_lower_bound() -> None:
    """A run in which all passed is no less sure of a high rate than one with a failure."""
    every = Counter({(4, 4): 8})
    but_one = Counter({(4, 4): 7, (3, 4): 1})
    lows = [wilson(good, 32, effect=design_effect(cases)).low for good, cases in ((32, every), (31, but_one))]
    assert lows[0] == wilson(8, 8).low
    assert lows[1] < lows[0]


def run_document(repeats: int, models: str, passes: int) -> AnyRun:
    """The document of eight cases; models and repeats multiply their answers, which are alike."""
    items = [
        CasePayload(case, model, "Hi", repeat, criteria={"expected": EXPECTED})
        for model in models
        for case in range(8)
        for repeat in range(repeats)
    ]
    rows = [
        item_row(at, item, GOOD if item.case < passes else WRONG, ms=100, cost=0.01)
        for at, item in enumerate(items)
    ]
    return document(rows, run_info(list(models), 8, repeat=repeats))


@pytest.mark.parametrize(("repeats", "models"), [(1, "a"), (4, "a"), (1, "abcd"), (2, "ab")])
def test_verdict_and_heads_count_cases(repeats: int, models: str) -> None:
    """Four answers to each of eight cases that are all alike tell as much as one to each."""
    found = run_document(repeats, models, 6)
    answers = 8 * repeats * len(models)
    single = wilson(6, 8)
    summary = printed(found)["summary"]
    assert summary["rates"]["pass_rate_of_judged"]["n"] == answers
    for rate in (summary["rates"]["pass_rate_of_judged"], summary["models"][0]["rates"]["pass_rate"]):
        assert rate["low"] == pytest.approx(single.low, abs=0.06)
        assert rate["high"] == pytest.approx(single.high, abs=0.06)
    if answers == 8:
        assert rated(found).rate == "75.0%, 95% interval 40.9-92.8%", "single answers are as they always were"


def test_bounds_near_the_ends_have_a_decimal_more() -> None:
    """What is not 100 is not written as 100, and what is not 0 not as 0."""
    every = wilson(2_000, 2_000)
    assert bounds(every, 0) == ("99.8", "100")
    assert bounds(wilson(0, 2_000), 0) == ("0", "0.2")
    assert bounds(wilson(1, 2), 0) == ("9", "91")
