"""Declares how the producer handles runs of model test cases."""

from typing import Final

from producer.kinds.declaration import ITEM_FORMATS, Late, ProducerKind
from shared.kinds import CASES

CASE_RUNS: Final = ProducerKind(
    kind=CASES,
    loader=Late("producer.load.case_load", "load_cases"),
    read_options=Late("producer.cli.submission", "read_cases"),
    keys=frozenset(
        {
            "test_cases",
            "test_cases_file",
            "bench",
            "models",
            "model_configs",
            "system_prompt",
            "judge_model",
            "judge_models",
        }
    ),
    suffixes=(".yaml", ".yml"),
    dry_run=Late("producer.cli.checking_cases", "tell_cases"),
    examples=("bench.config.yaml", "validators.py", "freeform.yaml"),
    examples_need=(
        " --api-base http://localhost:3000/v1  # no key: after `proctor sample-api` in another terminal"
    ),
    asks_models=True,
    pages=Late("producer.document", "case_pages"),
    totals=Late("producer.aggregate.cases", "CaseTotals"),
    settings=Late("producer.run_settings", "case_settings"),
    fails_fast=Late("producer.run_settings", "case_run_fails_fast"),
    formats={
        **ITEM_FORMATS,
        "csv": Late("producer.report.cases.to_csv", "CasesCsvReport"),
        "md": Late("producer.report.cases.to_markdown", "CasesMarkdownReport"),
        "html": Late("producer.report.cases.to_html", "CasesHtmlReport"),
        "junit": Late("producer.report.cases.to_junit", "junit_report"),
    },
    screen=Late("producer.report.cases.terminal", "SCREEN"),
    tests=Late("producer.report.cases.to_junit", "tests_of"),
    poisoned=Late("producer.report.cases.opened_rows", "poisoned"),
    metrics=Late("producer.aggregate.gates", "CASE_METRICS"),
    comparing=Late("producer.aggregate.compared_items", "COMPARED_CASES"),
    id_parts=Late("producer.item_ids", "case_id_parts"),
    chunk_name=Late("producer.item_ids", "case_chunk_name"),
    is_unfinished=Late("producer.retry_items", "is_case_unfinished"),
    can_rescore=True,
)
