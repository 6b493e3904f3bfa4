"""Holds every metric and target against the document's definitions."""

from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from producer.aggregate.queries import calculate_metrics, metrics_of, percentiles, targets
from producer.queries.results import AskedQuery
from shared.contracts.query_vocabulary import CATEGORIES


def result(
    *, oos: bool = False, category: str = "booking", error: str | None = None, **checks: Any
) -> dict[str, Any]:
    """A result that passes everything, with changes: names of checks to their verdict or keys."""
    every: dict[str, Any] = {
        "must_contain": {"pass": True, "total": 1},
        "must_not_contain": {"pass": True},
        "expected_docs": {"pass": True},
        "citation_present": {"pass": True, "applicable": True, "source_count": 1, "citation_count": 0},
        "oos_handling": {"pass": True, "applicable": oos},
        "latency": {"pass": True, "latency_ms": 100},
    }
    for name, change in checks.items():
        every[name] = {**every[name], **(change if isinstance(change, dict) else {"pass": change})}
    return {
        "id": "Q",
        "category": category,
        "is_oos": oos,
        "checks": every,
        "error": error,
        "response": None if error else {},
        "client_latency_ms": 7,
    }


UNCITED = {"pass": False, "source_count": 0}
NOT_APPLICABLE = {"pass": True, "applicable": False, "source_count": 0}


def test_there_are_the_documents_fifteen_keys() -> None:
    """No more, no fewer, and eight in each of five categories, also without any result."""
    metrics = calculate_metrics([])
    assert len(metrics) == 15
    assert tuple(metrics["by_category"]) == CATEGORIES
    assert all(len(numbers) == 8 for numbers in metrics["by_category"].values())


def test_nothing_divided_by_nothing_is_zero() -> None:
    """Rates and means of empty groups are 0.0, floats."""
    metrics = calculate_metrics([])
    rates = [metrics[key] for key in metrics if key.endswith(("rate", "accuracy", "raw", "_ms", "_5s"))]
    assert rates == [0.0] * len(rates)
    assert all(isinstance(rate, float) for rate in rates)


def test_deflection_is_the_share_of_in_scope_answers_with_all_keywords() -> None:
    """Out-of-scope and failed queries are not in its denominator."""
    rows = [result(), result(must_contain=False), result(must_contain=False), result(oos=True)]
    rows.append(result(error="Timeout after 30s", must_contain=False))
    assert calculate_metrics(rows)["deflection_rate"] == 33.3


def test_citation_accuracy_leaves_out_what_could_not_be_cited() -> None:
    """N/A queries are counted apart; the raw share has them in the denominator as not cited."""
    rows = [result(), result(citation_present=UNCITED), result(citation_present=NOT_APPLICABLE)]
    rows.append(result(oos=True, citation_present=NOT_APPLICABLE))
    metrics = calculate_metrics(rows)
    assert metrics["citation_accuracy"] == 50.0
    assert metrics["citation_accuracy_raw"] == 33.3
    assert (metrics["citation_applicable_queries"], metrics["citation_na_queries"]) == (2, 1)


def test_a_failed_query_is_no_hallucination() -> None:
    """Hallucination counts over successful queries, out of scope included."""
    failed = result(error="Invalid response body", must_not_contain=False)
    rows = [result(must_not_contain=False, oos=True), result(), result(), failed]
    assert calculate_metrics(rows)["hallucination_rate"] == 33.3


def test_oos_handling_is_the_share_of_declined_ones() -> None:
    """Only successful out-of-scope queries count."""
    rows = [result(oos=True), result(oos=True, oos_handling=False), result(), result(oos=True, error="x")]
    assert calculate_metrics(rows)["oos_handling_rate"] == 50.0


def test_latency_is_the_servers_over_successful_queries() -> None:
    """The mean is a whole number of milliseconds as a float; under 5 s is strict."""
    rows = [result(latency={"latency_ms": ms}) for ms in (1000, 4999, 5000)]
    rows.append(result(error="x", latency={"latency_ms": 30_000}))
    metrics = calculate_metrics(rows)
    assert repr(metrics["avg_latency_ms"]) == "3666.0"
    assert metrics["latency_under_5s"] == 66.7


def test_counts_tell_failed_from_successful() -> None:
    """Failed queries are in total and failed only."""
    metrics = calculate_metrics([result(), result(oos=True), result(error="x"), result(error="")])
    names = ("total", "successful", "failed", "in_scope", "oos")
    assert [metrics[f"{name}_queries"] for name in names] == [4, 2, 2, 1, 1]


def test_categories_are_unrounded_and_without_failed_queries() -> None:
    """Each category has its own denominators; hallucination counts all successful ones of it."""
    rows = [
        result(category="sla"),
        result(category="sla", must_contain=False, citation_present=NOT_APPLICABLE),
        result(category="sla", must_contain=False, citation_present=UNCITED),
        result(category="sla", oos=True, must_not_contain=False, latency={"latency_ms": 103}),
        result(category="sla", error="x"),
    ]
    assert calculate_metrics(rows)["by_category"]["sla"] == {
        "total": 4,
        "in_scope": 3,
        "oos": 1,
        "citation_applicable": 2,
        "deflection_rate": pytest.approx(100 / 3),
        "citation_accuracy": 50.0,
        "hallucination_rate": 25.0,
        "avg_latency_ms": 100.75,
    }


def test_results_may_be_a_stream() -> None:
    """One pass is enough."""
    assert calculate_metrics(result() for _ in range(3))["total_queries"] == 3


@pytest.mark.parametrize(
    ("metric", "met", "missed"),
    [
        ("deflection_rate", 40.0, 39.9),
        ("citation_accuracy", 80.0, 79.9),
        ("hallucination_rate", 14.9, 15.0),
        ("oos_handling_rate", 90.0, 89.9),
        ("avg_latency_ms", 4999.0, 5000.0),
    ],
)
def test_targets_have_the_documents_limits(metric: str, met: float, missed: float) -> None:
    """At least, or strictly below, as the table says."""
    metrics = metrics_of([result(), result(oos=True)])
    for value, status in ((met, "PASS"), (missed, "FAIL")):
        found = {target.metric: target for target in targets(structs.replace(metrics, **{metric: value}))}
        assert found[metric].status == status
        assert found[metric].judged.value == value


def test_targets_compare_what_is_shown() -> None:
    """A rate that rounds to the target meets it: 39.96 is shown as 40.0."""
    rows = [result(must_contain=number < 999) for number in range(2500)]
    metrics = metrics_of(rows)
    assert (metrics.deflection_rate, targets(metrics)[0].status) == (40.0, "PASS")


def test_a_target_without_data_is_not_applicable() -> None:
    """No data is neither pass nor fail, though the number is 0.0."""
    only_oos = metrics_of([result(oos=True)])
    assert [target.status for target in targets(only_oos)] == ["N/A", "N/A", "PASS", "PASS", "PASS"]
    only_failed = metrics_of([result(error="x")])
    assert {target.status for target in targets(only_failed)} == {"N/A"}


def test_percentiles_are_latencies_that_happened() -> None:
    """Nearest rank over successful queries; none without any."""
    rows = [result(latency={"latency_ms": ms}) for ms in range(1, 101)]
    found = percentiles(Counter(AskedQuery(row).latency_ms for row in rows)).named()
    assert found == {
        "p50": 50,
        "p90": 90,
        "p95": 95,
        "p99": 99,
        "max": 100,
    }
    assert percentiles({}).named() == {}
