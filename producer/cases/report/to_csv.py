"""Writes a cases run as the table of the documented tool: its seventeen columns, and ours behind them."""

import json
from collections.abc import Sequence
from typing import Any, BinaryIO, Final

from producer.cases.documents import GitState
from producer.cases.report.opened_rows import OpenedCase, opened
from producer.documents import AnyRun
from producer.report.cells import csv_lines
from shared.clock import iso_utc
from shared.codecs.item_rows import CACHED, ItemRow
from shared.runs import RunInfo

COLUMNS: Final = (
    "model_name",
    "test_index",
    "passed",
    "status",
    "latency_total",
    "latency_ttft",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cost_usd",
    "input",
    "expected",
    "actual_output",
    "error_message",
    "run_timestamp",
    "git_commit",
    "git_branch",
    "case_id",
    "repeat_index",
    "outcome",
    "decided_by",
    "raw_output",
    "rouge_l",
    "used_fuzzy_match",
    "cached",
    "reasoning",
    "prompt_id",
    "score",
    "failed_checks",
    "tags",
    "cached_input_tokens",
    "reasoning_tokens",
)
"""The first seventeen are the documented tool's, in its order."""
SEPARATOR: Final = "; "
"""Between the names of checks, and between tags."""


class CasesCsvReport:
    """Writes the table.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._stamp = out, iso_utc(info.created_ms)
        git = GitState.of(info.snapshot)
        self._git = (git.commit_hash, git.branch) if git else ("", "")
        out.write(csv_lines([COLUMNS]))

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Writes some rows."""
        self._out.write(csv_lines(map(self._row, opened(rows))))

    def end(self, document: AnyRun) -> None:
        """Has nothing to add."""

    def _row(self, case: OpenedCase) -> list[Any]:
        """Makes one line."""
        result, usage, measured = case.answer, case.answer.usage, case.answer.measured
        first_ms, parsed = measured.first_token_ms, result.parsed_output
        return [
            case.item.model,
            case.item.case + 1,
            result.passed,
            result.status,
            None if case.row.latency_ms is None else case.row.latency_ms / 1000,
            None if first_ms is None else first_ms / 1000,
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.total_tokens,
            case.row.cost_usd,
            case.item.input,
            json.dumps(case.item.expected, ensure_ascii=False),
            None if parsed is None else json.dumps(parsed, ensure_ascii=False),
            f"{case.code}: {case.message}" if case.code else case.message,
            self._stamp,
            *self._git,
            case.item.id,
            case.item.repeat,
            case.row.outcome.value,
            result.decided_by,
            result.raw_output,
            measured.rouge_l,
            result.used_fuzzy_match,
            CACHED in case.row.code,
            result.reasoning,
            case.item.prompt_id,
            result.score,
            SEPARATOR.join(row.name for row in result.failed_checks),
            SEPARATOR.join(case.item.tags),
            usage.cached_input_tokens,
            usage.reasoning_tokens,
        ]
