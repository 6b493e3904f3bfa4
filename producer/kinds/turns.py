"""Declares how the producer handles runs of conversation turns."""

from typing import Final

from producer.kinds.declaration import Late, ProducerKind
from shared.kinds import TURNS

TURN_RUNS: Final = ProducerKind(
    kind=TURNS,
    loader=Late("producer.load.loads", "load_turns"),
    read_options=Late("producer.cli.submission", "read_turns"),
    keys=frozenset({"threadId", "message", "messageId", "clientRequestId", "signals", "modelShape"}),
    suffixes=(".jsonl", ".ndjson"),
    problems=Late("producer.load.turns", "problems_in"),
    examples=("starter/turns.jsonl", "starter/README.md"),
    asks_models=True,
    pages=Late("producer.document", "turn_pages"),
    totals=Late("producer.aggregate.turns", "TurnTotals"),
    settings=Late("producer.run_settings", "turn_settings"),
    has_text=True,
    formats={
        "jsonl": Late("producer.report.turns.to_jsonl", "JsonlReport"),
        "json": Late("producer.report.turns.to_jsonl", "json_report"),
        "csv": Late("producer.report.turns.to_csv", "CsvReport"),
        "md": Late("producer.report.turns.to_markdown", "MarkdownReport"),
        "html": Late("producer.report.turns.to_html", "TurnsHtmlReport"),
        "junit": Late("producer.report.turns.to_junit", "TurnsJunitReport"),
        "github": Late("producer.report.github", "GithubReport"),
        "traces": Late("producer.report.turns.to_traces", "TracesReport"),
        "all traces": Late("producer.report.turns.to_traces", "AllTracesReport"),
    },
    screen=Late("producer.report.turns.terminal", "SCREEN"),
    tests=Late("producer.report.turns.to_junit", "tests_of"),
    metrics=Late("producer.aggregate.gates", "TURN_METRICS"),
    comparing=Late("producer.aggregate.compared_items", "COMPARED_TURNS"),
    id_parts=Late("producer.item_ids", "turn_id_parts"),
    inputs=Late("producer.item_ids", "turn_inputs"),
    retry=Late("producer.retry", "retry_turns"),
    is_read_early=True,
)
