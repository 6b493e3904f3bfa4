"""How the producer handles runs of model test cases."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from producer.items import kind as items
from producer.kind import ComparedKind, Example, Traits
from shared.kinds import CASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from producer.aggregate.gate_metrics import GateMetric
    from producer.documents import AnyRun
    from producer.forecasts import FileContents, Forecast
    from producer.item_ids import ItemNames
    from producer.kind import Limit
    from producer.load.chunks import RunInput
    from producer.load.source import Source
    from producer.options import SubmitOptions
    from producer.report.interfaces import ReadFile, Report, Screen, Totals, TurnText
    from producer.report.junit import JunitTest
    from producer.report.run_report import RunReport
    from producer.report.shown_item import ShownItem
    from producer.review.answer_labels import Review
    from producer.row_filter import RowFacts
    from producer.turns.retry import Retry
    from shared.codecs.item_rows import ItemRow
    from shared.errors import UsageError
    from shared.runs import RunInfo, RunStore

_SAMPLE_MODELS: Final = (
    " --api-base http://localhost:3000/v1  # no key: after `proctor sample-api` in another terminal"
)
"""What runs an example that names models of providers."""


class CaseRuns:
    """Runs of cases."""

    kind: ClassVar = CASES
    traits: ClassVar = Traits(
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
            Example(
                "table",
                "test cases from a CSV file, each asked several times",
                ("table.yaml", "countries.csv"),
                "  # no key: after `proctor sample-api` in another terminal",
            ),
            Example(
                "http",
                "an application over HTTP, asked as its users ask it",
                ("http.yaml",),
                "  # after `proctor sample-api` in another terminal",
            ),
            Example(
                "freeform", "answers of models side by side, not judged", ("freeform.yaml",), _SAMPLE_MODELS
            ),
        ),
        formats=items.FORMATS,
        asks_models=True,
        can_rescore=True,
    )

    def load(self, source: Source, options: SubmitOptions, /) -> RunInput:
        from producer.cases.load import load_cases

        return load_cases(source, options)

    def problems(self, _source: Source, /) -> Sequence[UsageError]:
        return ()

    def contents(self, source: Source, options: SubmitOptions, /) -> FileContents:
        from producer.forecasts.cases import contents

        return contents(source, options)

    def forecast(self, source: Source, options: SubmitOptions, /) -> Forecast:
        from producer.forecasts.cases import forecast

        return forecast(source, options)

    def limit(self) -> Limit:
        from producer.last_failed import only_cases

        return only_cases

    def pages(self, store: RunStore, run: str, _text: TurnText, /) -> Iterator[Sequence[ItemRow]]:
        return items.pages_with_input(store, run)

    def totals(self, review: Review, /) -> Totals:
        from producer.cases.totals import CaseTotals

        return CaseTotals(review)

    def fails_fast(self, info: RunInfo, /) -> bool:
        from shared.contracts.case_run import CaseRun

        return CaseRun.from_snapshot(info.snapshot).fail_fast

    def report(self, name: str, out: BinaryIO, info: RunInfo, /) -> Report:
        match name:
            case "jsonl" | "json":
                from producer.cases.report.opened_rows import poisoned
                from producer.cases.report.shown_cases import row_keys
                from producer.items.report.to_jsonl import ItemsJsonlReport, json_report, line_writer

                line = line_writer(info, further=row_keys(info), poisoned=poisoned)
                return ItemsJsonlReport(out, line) if name == "jsonl" else json_report(out, line)
            case "csv":
                from producer.cases.report.to_csv import CasesCsvReport

                return CasesCsvReport(out, info)
            case "md":
                from producer.cases.report.to_markdown import CasesMarkdownReport

                return CasesMarkdownReport(out, info)
            case "html":
                from producer.cases.report.to_html import CasesHtmlReport

                return CasesHtmlReport(out, info)
            case "junit":
                from producer.cases.report.to_junit import CasesJunitReport

                return CasesJunitReport(out, info)
            case "github":
                from producer.report.github import GithubReport

                return GithubReport(out, info, self.run_report, self.screen(), self.tests)
            case _:
                raise ValueError(name)

    def run_report(self, document: AnyRun, /) -> RunReport:
        from producer.cases.report.run_report import run_report

        return run_report(document)

    def screen(self) -> Screen:
        from producer.cases.report.terminal import SCREEN

        return SCREEN

    def tests(self, rows: Iterable[ItemRow], /) -> Iterator[JunitTest]:
        from producer.cases.report.to_junit import tests_of

        return tests_of(rows)

    def shown(self, info: RunInfo, /) -> Callable[[ItemRow], ShownItem]:
        from producer.cases.report.shown_cases import shown_cases

        return shown_cases(info)

    def item_html(self, info: RunInfo, read: ReadFile, /) -> Callable[[ItemRow], bytes]:
        from producer.cases.report.html_item import html_of_cases

        return html_of_cases(info, read)

    def facts(self, fields: frozenset[str], /) -> Callable[[ItemRow], RowFacts]:
        from producer.cases.facts import facts_of_cases

        return facts_of_cases(fields)

    def metrics(self) -> Mapping[str, GateMetric]:
        from producer.aggregate.gate_metrics import CASE_METRICS

        return CASE_METRICS

    def compared(self) -> ComparedKind:
        from producer.aggregate.compared_items import COMPARED_CASES
        from producer.report.comparison.configurations import case_configuration
        from producer.report.comparison.item_texts import texts_of_case

        return ComparedKind(COMPARED_CASES, texts_of_case, None, case_configuration)

    def names(self) -> ItemNames:
        from producer.item_ids import ItemNames, case_id_parts, item_inputs

        return ItemNames(case_id_parts, item_inputs)

    def retry(self) -> Retry:
        from producer.item_ids import case_chunk_name
        from producer.items.retry import RetriedKind, case_groups, is_case_unfinished, retry_items

        kind = RetriedKind(items.pages_with_input, is_case_unfinished, case_chunk_name, case_groups)
        return partial(retry_items, kind)
