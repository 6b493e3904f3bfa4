"""How the producer handles runs of queries to a RAG API."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from producer.items import kind as items
from producer.kind import ComparedKind, Example, Traits
from shared.kinds import QUERIES

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


class QueryRuns:
    """Runs of queries."""

    kind: ClassVar = QUERIES
    traits: ClassVar = Traits(
        keys=frozenset({"queries", "query", "is_oos", "category", "expected_urls", "answer_exists"}),
        suffixes=(".json",),
        examples=(
            Example(
                "queries",
                "questions to an API that answers from documents",
                ("starter/baselines.json",),
                "  # after `proctor sample-api` in another terminal",
            ),
        ),
        formats=items.FORMATS,
    )

    def load(self, source: Source, options: SubmitOptions, /) -> RunInput:
        from producer.queries.load import load_queries

        return load_queries(source, options)

    def problems(self, _source: Source, /) -> Sequence[UsageError]:
        return ()

    def contents(self, _source: Source, _options: SubmitOptions, /) -> FileContents | None:
        return None

    def forecast(self, source: Source, options: SubmitOptions, /) -> Forecast | None:
        from producer.forecasts.queries import forecast

        return forecast(source, options)

    def limit(self) -> Limit:
        from producer.last_failed import only_queries

        return only_queries

    def pages(self, store: RunStore, run: str, _text: TurnText, /) -> Iterator[Sequence[ItemRow]]:
        return items.pages_with_input(store, run)

    def totals(self, _review: Review, /) -> Totals:
        from producer.aggregate.query_totals import QueryTotals

        return QueryTotals()

    def fails_fast(self, _info: RunInfo, /) -> bool:
        return False

    def report(self, name: str, out: BinaryIO, info: RunInfo, /) -> Report:
        match name:
            case "jsonl":
                from producer.items.report.to_jsonl import ItemsJsonlReport, line_writer
                from producer.queries.report.opened_rows import poisoned

                return ItemsJsonlReport(out, line_writer(info, poisoned=poisoned))
            case "json":
                from producer.queries.report.reports import QueriesJsonReport

                return QueriesJsonReport(out, info)
            case "csv":
                from producer.queries.report.reports import QueriesCsvReport

                return QueriesCsvReport(out, info)
            case "md":
                from producer.queries.report.reports import QueriesMarkdownReport

                return QueriesMarkdownReport(out, info)
            case "html":
                from producer.queries.report.to_html import QueriesHtmlReport

                return QueriesHtmlReport(out, info)
            case "junit":
                from producer.queries.report.to_junit import junit_report

                return junit_report(out, info)
            case "github":
                from producer.report.github import GithubReport

                return GithubReport(out, info, self.run_report, self.screen(), self.tests)
            case _:
                raise ValueError(name)

    def run_report(self, document: AnyRun, /) -> RunReport:
        from producer.queries.report.run_report import run_report

        return run_report(document)

    def screen(self) -> Screen:
        from producer.queries.report.terminal import SCREEN

        return SCREEN

    def tests(self, rows: Iterable[ItemRow], /) -> Iterator[JunitTest]:
        from producer.queries.report.to_junit import tests_of

        return tests_of(rows)

    def shown(self, info: RunInfo, /) -> Callable[[ItemRow], ShownItem]:
        from producer.queries.report.shown_queries import shown_queries

        return shown_queries(info)

    def item_html(self, info: RunInfo, _read: ReadFile, /) -> Callable[[ItemRow], bytes]:
        from producer.queries.report.html_query import html_of_queries

        return html_of_queries(info)

    def facts(self, _fields: frozenset[str], /) -> Callable[[ItemRow], RowFacts]:
        from producer.queries.facts import facts_of_query

        return facts_of_query

    def metrics(self) -> Mapping[str, GateMetric]:
        from producer.aggregate.gate_metrics import QUERY_METRICS

        return QUERY_METRICS

    def compared(self) -> ComparedKind:
        from producer.aggregate.compared_items import COMPARED_QUERIES
        from producer.report.comparison.configurations import query_configuration, query_inputs
        from producer.report.comparison.item_texts import texts_of_query

        return ComparedKind(COMPARED_QUERIES, texts_of_query, query_inputs, query_configuration)

    def names(self) -> ItemNames:
        from producer.item_ids import ItemNames, item_id_parts, item_inputs

        return ItemNames(item_id_parts, item_inputs, has_repeated=True)

    def retry(self) -> Retry:
        from producer.item_ids import item_chunk_name
        from producer.items.retry import RetriedKind, is_query_unfinished, item_groups, retry_items

        kind = RetriedKind(items.pages_with_input, is_query_unfinished, item_chunk_name, item_groups)
        return partial(retry_items, kind)
