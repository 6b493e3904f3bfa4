"""Declares how the producer handles runs of model test cases."""

from typing import Final

from producer.kinds.declaration import ITEM_FORMATS, Example, ProducerKind
from shared.kinds import CASES
from shared.lazy import Lazy

_SAMPLE_MODELS: Final = (
    " --api-base http://localhost:3000/v1  # no key: after `proctor sample-api` in another terminal"
)
"""What runs an example that names models of providers."""

CASE_RUNS: Final = ProducerKind(
    kind=CASES,
    loader=Lazy("producer.load.cases", "load_cases"),
    read_options=Lazy("producer.cli.submission", "add_case_options"),
    keys=frozenset(
        {
            "test_cases",
            "test_cases_file",
            "bench",
            "models",
            "model_configs",
            "system_prompt",
            "prompts",
            "default_checks",
            "judge_model",
            "judge_models",
        }
    ),
    suffixes=(".yaml", ".yml"),
    dry_run=Lazy("producer.cli.checking_cases", "print_estimate"),
    forecast=Lazy("producer.cli.checking_cases", "forecast"),
    limit=Lazy("producer.last_failed", "only_cases"),
    examples=(
        Example(
            "cases",
            "test cases for models, with criteria for good answers",
            ("bench.config.yaml", "validators.py"),
            _SAMPLE_MODELS,
        ),
        Example(
            "prompts",
            "test cases with several prompts, variables, checks and tools",
            ("prompts.yaml",),
            "  # no key: after `proctor sample-api` in another terminal",
        ),
        Example("freeform", "answers of models side by side, not judged", ("freeform.yaml",), _SAMPLE_MODELS),
    ),
    asks_models=True,
    pages=Lazy("producer.document", "pages_with_input"),
    totals=Lazy("producer.aggregate.cases", "CaseTotals"),
    settings=Lazy("producer.run_settings", "case_settings"),
    fails_fast=Lazy("producer.run_settings", "case_run_fails_fast"),
    formats={
        **ITEM_FORMATS,
        "csv": Lazy("producer.report.cases.to_csv", "CasesCsvReport"),
        "md": Lazy("producer.report.cases.to_markdown", "CasesMarkdownReport"),
        "html": Lazy("producer.report.cases.to_html", "CasesHtmlReport"),
        "junit": Lazy("producer.report.cases.to_junit", "junit_report"),
    },
    screen=Lazy("producer.report.cases.terminal", "SCREEN"),
    tests=Lazy("producer.report.cases.to_junit", "tests_of"),
    shown=Lazy("producer.report.cases.shown_cases", "shown_cases"),
    row_keys=Lazy("producer.report.cases.shown_cases", "row_keys"),
    poisoned=Lazy("producer.report.cases.opened_rows", "poisoned"),
    metrics=Lazy("producer.aggregate.gates", "CASE_METRICS"),
    comparing=Lazy("producer.aggregate.compared_items", "COMPARED_CASES"),
    compared_texts=Lazy("producer.report.comparison.item_texts", "texts_of_case"),
    compared_inputs=Lazy("producer.report.comparison.item_inputs", "case_inputs"),
    configuration=Lazy("producer.report.comparison.configurations", "case_configuration"),
    id_parts=Lazy("producer.item_ids", "case_id_parts"),
    chunk_name=Lazy("producer.item_ids", "case_chunk_name"),
    is_unfinished=Lazy("producer.retry_items", "is_case_unfinished"),
    can_rescore=True,
)
