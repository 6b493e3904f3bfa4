"""Declares how the producer handles runs of conversation turns."""

from typing import Final

from producer.kinds.declaration import Example, ProducerKind
from shared.kinds import TURNS
from shared.lazy import Lazy

TURN_RUNS: Final = ProducerKind(
    kind=TURNS,
    loader=Lazy("producer.load.turns", "load_turns"),
    read_options=Lazy("producer.cli.submission", "add_turn_options"),
    keys=frozenset({"threadId", "message", "messageId", "clientRequestId", "signals", "modelShape"}),
    suffixes=(".jsonl", ".ndjson"),
    problems=Lazy("producer.load.turns", "problems_in"),
    forecast=Lazy("producer.cli.forecasts", "forecast_turns"),
    examples=(Example("turns", "the turns of three conversations", ("starter/turns.jsonl",)),),
    asks_models=True,
    pages=Lazy("producer.document", "turn_pages"),
    totals=Lazy("producer.aggregate.turns", "TurnTotals"),
    settings=Lazy("producer.run_settings", "turn_settings"),
    has_text=True,
    formats={
        "jsonl": Lazy("producer.report.turns.to_jsonl", "JsonlReport"),
        "json": Lazy("producer.report.turns.to_jsonl", "json_report"),
        "csv": Lazy("producer.report.turns.to_csv", "CsvReport"),
        "md": Lazy("producer.report.turns.to_markdown", "MarkdownReport"),
        "html": Lazy("producer.report.turns.to_html", "TurnsHtmlReport"),
        "junit": Lazy("producer.report.turns.to_junit", "TurnsJunitReport"),
        "github": Lazy("producer.report.github", "GithubReport"),
        "traces": Lazy("producer.report.turns.to_traces", "TracesReport"),
        "all traces": Lazy("producer.report.turns.to_traces", "AllTracesReport"),
    },
    screen=Lazy("producer.report.turns.terminal", "SCREEN"),
    tests=Lazy("producer.report.turns.to_junit", "tests_of"),
    shown=Lazy("producer.report.turns.shown_turns", "shown_turns"),
    metrics=Lazy("producer.aggregate.gates", "TURN_METRICS"),
    comparing=Lazy("producer.aggregate.compared_items", "COMPARED_TURNS"),
    compared_texts=Lazy("producer.report.comparison.item_texts", "texts_of_turn"),
    compared_inputs=Lazy("producer.report.comparison.item_inputs", "turn_inputs"),
    configuration=Lazy("producer.report.comparison.configurations", "turn_configuration"),
    id_parts=Lazy("producer.item_ids", "turn_id_parts"),
    inputs=Lazy("producer.item_ids", "turn_inputs"),
    retry=Lazy("producer.retry_turns", "retry_turns"),
    is_read_early=True,
)
