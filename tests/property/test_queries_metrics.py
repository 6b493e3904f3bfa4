"""Explores the metrics over any mix of results: bounded, consistent, never divided by zero."""

from collections import Counter
from itertools import pairwise
from math import isfinite
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from producer.aggregate.queries import calculate_metrics, metrics_of, percentiles, targets
from producer.queries.results import AskedQuery
from shared.contracts.query_vocabulary import CATEGORIES, failed

COUNTS = st.integers(0, 9)
FLAGS = st.booleans()
CITATION = st.fixed_dictionaries(
    {"pass": FLAGS}, optional={"applicable": FLAGS, "source_count": COUNTS, "citation_count": COUNTS}
)
CHECKS = st.fixed_dictionaries(
    {},
    optional={
        "must_contain": st.fixed_dictionaries({"pass": FLAGS, "total": COUNTS}),
        "must_not_contain": st.fixed_dictionaries({"pass": FLAGS}),
        "citation_present": CITATION,
        "oos_handling": st.fixed_dictionaries({"pass": FLAGS}),
        "latency": st.fixed_dictionaries({"latency_ms": st.integers() | st.floats() | st.none() | st.text()}),
    },
)
RESULTS = st.lists(
    st.fixed_dictionaries(
        {
            "category": st.sampled_from([*CATEGORIES, "something else"]),
            "is_oos": FLAGS,
            "error": st.none() | st.text(max_size=5),
        },
        optional={
            "checks": CHECKS | st.none(),
            "client_latency_ms": st.integers() | st.none(),
            "response": st.none() | st.just({"metadata": {"latencyMs": 10**400}}),
        },
    ),
    max_size=30,
)
RATES = ("deflection_rate", "citation_accuracy", "hallucination_rate")


@given(RESULTS)
def test_rates_are_percentages(results: list[dict[str, Any]]) -> None:
    """Every rate, over the run and in every category, is a float from 0 to 100; means are finite."""
    metrics = calculate_metrics(results)
    shares = [
        metrics[name] for name in (*RATES, "citation_accuracy_raw", "oos_handling_rate", "latency_under_5s")
    ]
    means = [metrics["avg_latency_ms"]]
    for numbers in metrics["by_category"].values():
        shares += [numbers[name] for name in RATES]
        means.append(numbers["avg_latency_ms"])
    assert all(isinstance(share, float) and 0 <= share <= 100 for share in shares)
    assert all(isinstance(mean, float) and isfinite(mean) and mean >= 0 for mean in means)


@given(RESULTS)
def test_counts_add_up(results: list[dict[str, Any]]) -> None:
    """Total is successful and failed; successful is in and out of scope, and the sum over categories."""
    metrics = calculate_metrics(results)
    assert metrics["total_queries"] == len(results)
    assert metrics["successful_queries"] + metrics["failed_queries"] == len(results)
    assert metrics["in_scope_queries"] + metrics["oos_queries"] == metrics["successful_queries"]
    applicable, rest = metrics["citation_applicable_queries"], metrics["citation_na_queries"]
    assert applicable + rest == metrics["in_scope_queries"]
    categories = metrics["by_category"].values()
    assert sum(numbers["total"] for numbers in categories) == metrics["successful_queries"]
    assert sum(numbers["citation_applicable"] for numbers in categories) == applicable


@given(RESULTS, st.randoms(use_true_random=False))
def test_order_does_not_matter(results: list[dict[str, Any]], random: Any) -> None:
    """Workers finish in any order; the metrics are the same."""
    shuffled = list(results)
    random.shuffle(shuffled)
    first, second = calculate_metrics(results), calculate_metrics(shuffled)
    first["by_category"], second["by_category"] = dict(first["by_category"]), dict(second["by_category"])
    assert first == second


@given(RESULTS)
def test_targets_never_pass_without_data(results: list[dict[str, Any]]) -> None:
    """N/A exactly where the group of the target is empty."""
    metrics = metrics_of(results)
    assert len(targets(metrics)) == 5
    for target in targets(metrics):
        assert (target.status == "N/A") == (getattr(metrics, target.group) == 0)


@given(RESULTS)
def test_percentiles_rise(results: list[dict[str, Any]]) -> None:
    """Each is at least the one before."""
    times = Counter(AskedQuery(row).latency_ms for row in results if not failed(row))
    values = list(percentiles(times).named().values())
    assert all(low <= high for low, high in pairwise(values))
    assert len(values) == (5 if calculate_metrics(results)["successful_queries"] else 0)
