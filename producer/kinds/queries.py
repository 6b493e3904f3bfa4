"""Declares how the producer handles runs of queries to a RAG API."""

from typing import Final

from producer.kinds.declaration import ITEM_FORMATS, Late, ProducerKind
from shared.kinds import QUERIES

QUERY_RUNS: Final = ProducerKind(
    kind=QUERIES,
    loader=Late("producer.load.loads", "load_queries"),
    read_options=Late("producer.cli.submission", "read_queries"),
    keys=frozenset({"queries", "query", "is_oos", "category", "expected_urls", "answer_exists"}),
    suffixes=(".json",),
    examples=("starter/baselines.json", "starter/QUERIES.md"),
    examples_need="  # after `proctor sample-api` in another terminal",
    totals=Late("producer.aggregate.query_totals", "QueryTotals"),
    settings=Late("producer.run_settings", "query_settings"),
    formats={
        **ITEM_FORMATS,
        "json": Late("producer.report.queries.reports", "QueriesJsonReport"),
        "csv": Late("producer.report.queries.reports", "QueriesCsvReport"),
        "md": Late("producer.report.queries.reports", "QueriesMarkdownReport"),
        "html": Late("producer.report.queries.to_html", "QueriesHtmlReport"),
        "junit": Late("producer.report.queries.to_junit", "junit_report"),
    },
    screen=Late("producer.report.queries.terminal", "SCREEN"),
    tests=Late("producer.report.queries.to_junit", "tests_of"),
    poisoned=Late("producer.report.queries.opened_rows", "poisoned"),
    metrics=Late("producer.aggregate.gates", "QUERY_METRICS"),
    comparing=Late("producer.aggregate.compared_items", "COMPARED_QUERIES"),
    has_repeated_ids=True,
    is_unfinished=Late("producer.retry_items", "is_query_unfinished"),
)
