"""Evaluates a RAG API against baselines: the script of the evaluation harness document, on Proctor's queue.

    python scripts/evaluation_harness.py --delay 10        in examples/copilot/

Every function and constant of the document is here under its name; they live in Proctor's packages.
"""

import sys
from typing import Any

from producer.aggregate.queries import TARGETS, calculate_metrics
from producer.harness.program import main as _main
from producer.load.baselines import BASELINES_PATH, load_baselines
from producer.queries.report import console
from producer.queries.report.files import (
    REPORT_MD_PATH,
    RESULTS_CSV_PATH,
    RESULTS_JSON_PATH,
    write_report_md,
    write_results_csv,
    write_results_json,
)
from producer.queries.results import AskedQuery
from shared.contracts.query_vocabulary import (
    CATEGORIES,
    DEFAULT_API_URL,
    LATENCY_THRESHOLD_MS,
    MAX_RETRIES,
    QUERY_ENDPOINT,
)
from shared.contracts.query_vocabulary import DEFAULT_DELAY_S as DEFAULT_DELAY
from shared.contracts.query_vocabulary import REQUEST_TIMEOUT_S as REQUEST_TIMEOUT
from worker import standalone
from worker.queries.checks import (
    check_citation_present,
    check_expected_docs,
    check_latency,
    check_must_contain,
    check_must_not_contain,
    check_oos_handling,
    run_checks,
)
from worker.standalone import send_query

__all__ = [
    "BASELINES_PATH",
    "CATEGORIES",
    "DEFAULT_API_URL",
    "DEFAULT_DELAY",
    "LATENCY_THRESHOLD_MS",
    "MAX_RETRIES",
    "QUERY_ENDPOINT",
    "REPORT_MD_PATH",
    "REQUEST_TIMEOUT",
    "RESULTS_CSV_PATH",
    "RESULTS_JSON_PATH",
    "TARGETS",
    "calculate_metrics",
    "check_citation_present",
    "check_expected_docs",
    "check_latency",
    "check_must_contain",
    "check_must_not_contain",
    "check_oos_handling",
    "load_baselines",
    "main",
    "run_all_queries",
    "run_checks",
    "send_query",
    "write_report_md",
    "write_results_csv",
    "write_results_json",
]


def run_all_queries(
    baselines: list[dict[str, Any]], api_url: str, delay: int, start_from: str = standalone.FIRST_ID
) -> list[dict[str, Any]]:
    """Sends all queries one after the other with a delay between each, and prints a line per query.

    Args:
        baselines: what to ask and what good answers look like.
        api_url: the API's base URL.
        delay: seconds between queries.
        start_from: id of the first query.

    Returns:
        One result per query that was sent; a failure to connect ends it early.
    """
    numbers = {baseline["id"]: number for number, baseline in enumerate(baselines, 1)}

    def print_result(result: dict[str, Any]) -> None:
        line = console.query_line(AskedQuery(result), number=numbers[result["id"]], of=len(baselines))
        print(line, end="", flush=True)

    def print_retry(name: str, retry: int, wait_s: float) -> None:
        print(console.retry_line(name, retry=retry, of=MAX_RETRIES, wait_s=wait_s), end="", flush=True)

    callbacks = standalone.Callbacks(print_result, print_retry)
    return standalone.run_all_queries(baselines, api_url, delay, start_from, callbacks=callbacks)


def main() -> int:
    """Runs the full evaluation: parse, load, send through the queue, calculate, write, print.

    Returns:
        0 finished, 1 bad baselines or unknown `--start-from`, 3 API not reachable, 130 Ctrl-C.
    """
    return _main()


if __name__ == "__main__":
    sys.exit(main())
