"""Holds intervals, tests and agreement against what scipy and krippendorff compute for the same arguments."""

import json
from typing import Any

import pytest

from producer.aggregate.bootstrap import bootstrap
from producer.aggregate.statistics import clustered_mean, mcnemar, pass_at_k, pass_hat_k, wilson
from producer.cases.judge_statistics import krippendorff_alpha
from tests.support.statistics_oracle import ORACLE

FOUND: dict[str, list[list[Any]]] = json.loads(ORACLE.read_text(encoding="utf-8"))


def exactly(*values: float) -> Any:
    """Equal but for the last digits of a float."""
    return pytest.approx(values, rel=1e-9, abs=1e-12)


def test_wilson() -> None:
    """`scipy.stats.binomtest(...).proportion_ci(0.95, "wilson")`."""
    for part, whole, low, high in FOUND["wilson"]:
        rate = wilson(part, whole)
        assert (rate.low, rate.high) == exactly(low, high), (part, whole)


def test_mcnemar() -> None:
    """The exact value is `scipy.stats.binomtest`'s; mid-p is that less the chance of what was seen."""
    for broken, fixed, exact, mid in FOUND["mcnemar"]:
        found = mcnemar(broken, fixed)
        assert (found.exact_p, found.p_value) == exactly(exact, mid), (broken, fixed)


def test_chances_of_several_tries() -> None:
    """Both are tails of `scipy.stats.hypergeom`: k tries drawn from those that were made."""
    for n, passed, k, at_least_one, all_of_them in FOUND["tries"]:
        assert (pass_at_k(n, passed, k), pass_hat_k(n, passed, k)) == exactly(at_least_one, all_of_them)


def test_standard_errors() -> None:
    """`scipy.stats.sem`, where each case has one value."""
    for values, error in FOUND["standard_error"]:
        assert (clustered_mean([value] for value in values).standard_error,) == exactly(error)


def test_bca() -> None:
    """`scipy.stats.bootstrap` draws others and ten times as many: bounds differ by a tenth of the width."""
    for values, low, high in FOUND["bca"]:
        found, near = bootstrap(values), (high - low) / 10
        assert found.low == pytest.approx(low, abs=near)
        assert found.high == pytest.approx(high, abs=near)


def test_alpha() -> None:
    """`krippendorff.alpha` of nominal values, some missing."""
    for units, alpha in FOUND["alpha"]:
        assert krippendorff_alpha(units) == pytest.approx(alpha, rel=1e-9, abs=1e-12), units
