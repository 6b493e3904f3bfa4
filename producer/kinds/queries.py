"""Declares how the producer handles runs of queries to a RAG API."""

from typing import Final

from producer.kinds.declaration import ITEM_FORMATS, Example, ProducerKind
from shared.kinds import QUERIES
from shared.lazy import Lazy

QUERY_RUNS: Final = ProducerKind(
    kind=QUERIES,
    loader=Lazy("producer.load.queries", "load_queries"),
    read_options=Lazy("producer.cli.submission", "add_query_options"),
    keys=frozenset({"queries", "query", "is_oos", "category", "expected_urls", "answer_exists"}),
    suffixes=(".json",),
    forecast=Lazy("producer.cli.forecasts", "forecast_queries"),
    limit=Lazy("producer.last_failed", "only_queries"),
    examples=(
        Example(
            "queries",
            "questions to an API that answers from documents",
            ("starter/baselines.json",),
            "  # after `proctor sample-api` in another terminal",
        ),
    ),
    totals=Lazy("producer.aggregate.query_totals", "QueryTotals"),
    pages=Lazy("producer.document", "pages_with_input"),
    settings=Lazy("producer.run_settings", "query_settings"),
    formats={
        **ITEM_FORMATS,
        "json": Lazy("producer.report.queries.reports", "QueriesJsonReport"),
        "csv": Lazy("producer.report.queries.reports", "QueriesCsvReport"),
        "md": Lazy("producer.report.queries.reports", "QueriesMarkdownReport"),
        "html": Lazy("producer.report.queries.to_html", "QueriesHtmlReport"),
        "junit": Lazy("producer.report.queries.to_junit", "junit_report"),
    },
    screen=Lazy("producer.report.queries.terminal", "SCREEN"),
    tests=Lazy("producer.report.queries.to_junit", "tests_of"),
    shown=Lazy("producer.report.queries.shown_queries", "shown_queries"),
    poisoned=Lazy("producer.report.queries.opened_rows", "poisoned"),
    metrics=Lazy("producer.aggregate.gates", "QUERY_METRICS"),
    comparing=Lazy("producer.aggregate.compared_items", "COMPARED_QUERIES"),
    compared_texts=Lazy("producer.report.comparison.item_texts", "texts_of_query"),
    compared_inputs=Lazy("producer.report.comparison.item_inputs", "query_inputs"),
    configuration=Lazy("producer.report.comparison.configurations", "query_configuration"),
    has_repeated_ids=True,
    is_unfinished=Lazy("producer.retry_items", "is_query_unfinished"),
)
