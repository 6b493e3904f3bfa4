"""Holds the console text against the document's expected output."""

from pathlib import Path
from typing import Any

from msgspec import structs

from producer.aggregate.queries import metrics_of
from producer.queries.report import console
from producer.queries.report.sections import metric_rows
from producer.queries.results import AskedQuery
from shared.contracts.queries import Baseline
from tests.support.query_results import HOSTILE, answered, baseline, one_of_each

HEADER = """\
============================================================
  Waypoint Co-Pilot - Evaluation Harness
============================================================
  API:    http://localhost:3000
  Delay:  30s between queries
  Start:  Q-01
  Mode:   LIVE

Loaded 50 baselines (version: 1.0)
  40 in-scope, 10 out-of-scope
"""

SUMMARY = """\
============================================================
  EVALUATION SUMMARY
============================================================
  Queries:         50/50 successful
  Deflection Rate: 72.5% (target: >= 40.0%)
  Citation Acc:    87.5% (target: >= 80.0%)
  Hallucination:   4.0% (target: < 15.0%)
  OOS Handling:    90.0% (target: >= 90.0%)
  Avg Latency:     1842ms (target: < 5000ms)
============================================================
"""


def checked(identifier: str = "Q-01", **changes: Any) -> Baseline:
    return Baseline.model_validate(baseline(identifier, **changes))


def line(result: dict[str, Any], **changes: Any) -> str:
    return console.query_line(AskedQuery({**result, **changes}), number=1, of=50)


def test_header_and_load_line_are_the_documents() -> None:
    """Letter for letter."""
    baselines = [checked(is_oos=number >= 40) for number in range(50)]
    header = console.header(api_url="http://localhost:3000", delay_s=30, start_from="Q-01")
    assert header + console.loaded(baselines, "1.0") == HEADER


def test_a_dry_run_says_so_in_its_header() -> None:
    """The mode is not LIVE."""
    header = console.header(api_url="http://a", delay_s=0, start_from="Q-01", dry_run=True)
    assert "  Mode:   DRY RUN\n" in header


def test_the_estimate_is_queries_times_delay() -> None:
    """Fifty queries at 30 s are 25 minutes."""
    assert console.estimate(50, 30) == "  Estimated run time: ~25m 0s\n"
    assert console.estimate(3, 25) == "  Estimated run time: ~1m 15s\n"


def test_a_query_line_is_cut_and_ends_with_the_verdict() -> None:
    """Number, id, start of the query, latency, confidence as given, verdict of all checks."""
    result = answered("Q-01", query="What documents are needed for sea freight Singapore to Rotterdam?")
    expected = '  [01/50] Q-01: "What documents are needed for sea freight Singap..." (1234ms) [High] PASS\n'
    assert line(result) == expected
    assert line(answered("Q-01", "no")).endswith("[High] FAIL\n")
    assert line(answered("Q-01"), response={"answer": "x"}).endswith("[-] PASS\n")


def test_a_failed_query_says_why() -> None:
    """The error stands where the verdict would."""
    assert line(one_of_each()[7]).endswith("(30004ms) ERROR: Timeout after 30s\n")


def test_the_numbers_width_follows_the_number_of_queries() -> None:
    """A thousand queries stay aligned."""
    assert console.query_line(AskedQuery(answered("Q-1")), number=7, of=1000).startswith("  [0007/1000] Q-1:")


def test_hostile_text_stays_on_its_line() -> None:
    """No control character of an answer or a query reaches the terminal."""
    result = answered("Q-01", query=HOSTILE)
    text = line(result, error=HOSTILE)
    assert text.count("\n") == 1
    assert text[:-1].isprintable()


def test_the_file_list_is_the_documents() -> None:
    """Three lines under their title."""
    paths = ("data/evaluation_results.json", "data/evaluation_results.csv", "reports/evaluation_report.md")
    assert console.written_files(*map(Path, paths)) == (
        "Writing output files...\n"
        "  JSON: data/evaluation_results.json\n"
        "  CSV:  data/evaluation_results.csv\n"
        "  Report: reports/evaluation_report.md\n"
    )


def test_the_summary_is_the_documents() -> None:
    """Letter for letter with the document's numbers."""
    metrics = structs.replace(
        metrics_of([]),
        successful_queries=50,
        total_queries=50,
        in_scope_queries=40,
        citation_applicable_queries=40,
        oos_queries=10,
        deflection_rate=72.5,
        citation_accuracy=87.5,
        hallucination_rate=4.0,
        oos_handling_rate=90.0,
        avg_latency_ms=1842.0,
    )
    assert console.summary(metrics) == SUMMARY


def test_what_was_not_measured_is_not_zero() -> None:
    """Without a query of a group its metric is N/A, in the summary and in the report."""
    assert console.summary(metrics_of([])).count(" N/A (target: ") == 5
    assert {cells[1] for _, cells in metric_rows(metrics_of([]))} == {"N/A"}


def test_a_dry_run_estimates_what_would_be_sent() -> None:
    """With `--start-from` only the queries from there on cost time."""
    text = console.dry_run([checked(f"Q-{number}") for number in range(30)], delay_s=30, queries=2)
    assert text.endswith("~1m 0s\n")


def test_a_retry_says_when() -> None:
    """Which query, which retry, how long."""
    assert (
        console.retry_line("Q-07", retry=2, of=3, wait_s=60.0)
        == "  Q-07: rate limited (429), retry 2/3 in 60s\n"
    )


def test_a_dry_run_counts_and_warns() -> None:
    """Totals of keywords, thin baselines, undeclinable ones, and the time; should_contain may be absent."""
    baselines = [
        checked("Q-01", must_contain=["a", "b"], expected_docs=["d"]),
        checked("Q-02"),
        checked("Q-03", is_oos=True, oos_decline_signals=[]),
    ]
    assert console.dry_run(baselines, delay_s=30) == (
        "DRY RUN: baselines are valid, no queries sent\n"
        "\n"
        "  Totals:\n"
        "    must_contain:        4\n"
        "    must_not_contain:    3\n"
        "    should_contain:      0\n"
        "    expected_docs:       1\n"
        "    oos_decline_signals: 2\n"
        "\n"
        "  In-scope with fewer than 2 must_contain: 1 (Q-02)\n"
        "  Out-of-scope without decline signals: 1 (Q-03)\n"
        "\n"
        "  Estimated run time: ~1m 30s\n"
    )


def test_a_dry_run_names_few_ids() -> None:
    """A long list is counted and cut."""
    text = console.dry_run([checked(f"Q-{number}") for number in range(30)], delay_s=0)
    assert "fewer than 2 must_contain: 30 (Q-0, Q-1, Q-2, Q-3, Q-4, Q-5, Q-6, Q-7, Q-8, Q-9, ...)" in text
