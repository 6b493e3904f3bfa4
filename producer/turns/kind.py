"""How the producer handles runs of conversation turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from producer.kind import ComparedKind, Example, Traits
from shared.kinds import TURNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from producer.aggregate.gate_metrics import GateMetric
    from producer.documents import AnyRun
    from producer.forecasts import FileContents, Forecast
    from producer.item_ids import ItemNames
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
    from shared.errors import UsageError
    from shared.runs import RunInfo, RunStore, TurnRow


class TurnRuns:
    """Runs of turns."""

    kind: ClassVar = TURNS
    traits: ClassVar = Traits(
        keys=frozenset({"threadId", "message", "messageId", "clientRequestId", "signals", "modelShape"}),
        suffixes=(".jsonl", ".ndjson"),
        examples=(Example("turns", "the turns of three conversations", ("starter/turns.jsonl",)),),
        formats=("jsonl", "json", "csv", "md", "html", "junit", "github", "traces", "all traces"),
        asks_models=True,
        has_text=True,
        is_read_early=True,
    )

    def load(self, source: Source, options: SubmitOptions, /) -> RunInput:
        from producer.turns.load import load_turns

        return load_turns(source, options)

    def problems(self, source: Source, /) -> Sequence[UsageError]:
        from producer.turns.load import problems_in

        return problems_in(source)[1]

    def contents(self, _source: Source, _options: SubmitOptions, /) -> FileContents | None:
        return None

    def forecast(self, source: Source, options: SubmitOptions, /) -> Forecast | None:
        if options.live is None or not source.repeatable:
            return None
        from producer.forecasts.turns import forecast

        return forecast(source, options, options.live)

    def limit(self) -> None:
        return None

    def pages(self, store: RunStore, run: str, text: TurnText, /) -> Iterator[Sequence[TurnRow]]:
        from producer.report.interfaces import TurnText

        pages = store.pages(run, with_payload=text is not TurnText.NOT_READ)
        if text is not TurnText.WITHHELD:
            return pages
        from producer.turns.report.opened_rows import withheld

        return map(withheld, pages)

    def totals(self, _review: Review, /) -> Totals:
        from producer.turns.totals import TurnTotals

        return TurnTotals()

    def fails_fast(self, _info: RunInfo, /) -> bool:
        return False

    def report(self, name: str, out: BinaryIO, info: RunInfo, /) -> Report:
        match name:
            case "jsonl":
                from producer.turns.report.to_jsonl import JsonlReport

                return JsonlReport(out, info)
            case "json":
                from producer.turns.report.to_jsonl import json_report

                return json_report(out, info)
            case "csv":
                from producer.turns.report.to_csv import CsvReport

                return CsvReport(out, info)
            case "md":
                from producer.turns.report.to_markdown import MarkdownReport

                return MarkdownReport(out, info)
            case "html":
                from producer.turns.report.to_html import TurnsHtmlReport

                return TurnsHtmlReport(out, info)
            case "junit":
                from producer.turns.report.to_junit import TurnsJunitReport

                return TurnsJunitReport(out, info)
            case "github":
                from producer.report.github import GithubReport

                return GithubReport(out, info, self.run_report, self.screen(), self.tests)
            case "traces" | "all traces":
                from producer.turns.report.to_traces import TracesReport

                return TracesReport(out, info, all_phases=name != "traces")
            case _:
                raise ValueError(name)

    def run_report(self, document: AnyRun, /) -> RunReport:
        from producer.turns.report.run_report import run_report

        return run_report(document)

    def screen(self) -> Screen:
        from producer.turns.report.terminal import SCREEN

        return SCREEN

    def tests(self, rows: Iterable[TurnRow], /) -> Iterator[JunitTest]:
        from producer.turns.report.to_junit import tests_of

        return tests_of(rows)

    def shown(self, _info: RunInfo, /) -> Callable[[TurnRow], ShownItem]:
        from producer.turns.report.shown_turns import shown_turn

        return shown_turn

    def item_html(self, _info: RunInfo, _read: ReadFile, /) -> None:
        return None

    def facts(self, _fields: frozenset[str], /) -> Callable[[TurnRow], RowFacts]:
        from producer.turns.facts import facts_of_turn

        return facts_of_turn

    def metrics(self) -> Mapping[str, GateMetric]:
        from producer.aggregate.gate_metrics import TURN_METRICS

        return TURN_METRICS

    def compared(self) -> ComparedKind:
        from producer.aggregate.compared_items import COMPARED_TURNS
        from producer.report.comparison.configurations import turn_configuration, turn_inputs
        from producer.report.comparison.item_texts import texts_of_turn

        return ComparedKind(COMPARED_TURNS, texts_of_turn, turn_inputs, turn_configuration)

    def names(self) -> ItemNames:
        from producer.item_ids import ItemNames, turn_id_parts, turn_inputs

        return ItemNames(turn_id_parts, turn_inputs)

    def retry(self) -> Retry:
        from producer.turns.retry import retry_turns

        return retry_turns
