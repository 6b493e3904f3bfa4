"""Writes results as CSV for spreadsheets: stable columns, and no cell that a spreadsheet would run."""

from collections.abc import Sequence
from typing import Any, BinaryIO, Final

from producer.report.cells import csv_lines
from producer.turns.documents import TurnsRun
from producer.turns.report.opened_rows import OpenedRow, message_of, opened
from shared.runs import RunInfo, TurnRow

COLUMNS: Final = (
    "run_id",
    "item_id",
    "index",
    "outcome",
    "thread_id",
    "message_id",
    "decision",
    "rule",
    "peak_guardrail_active",
    "summary_updated",
    "reason",
    "source",
    "etag",
    "arc",
    "error_code",
    "error_message",
    "attempts",
    "started_at",
    "finished_at",
    "response",
    "message",
)
"""Names never change and new ones go to the end, so that formulas keep their columns."""


class CsvReport:
    """Writes rows as they go by.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._run = out, info.run
        out.write(csv_lines([COLUMNS]))

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Writes some rows."""
        self._out.write(csv_lines(map(self._cells, opened(rows))))

    def end(self, document: TurnsRun) -> None:
        """Has nothing to add."""

    def _cells(self, row: OpenedRow) -> list[Any]:
        """Puts the fields of a row into the order of the columns."""
        result, error = row.result, row.error
        cells: list[Any] = [self._run, row.item_id, row.row.index, row.outcome.value]
        if result is None:
            cells += [None] * 10
        else:
            cells += [
                result.thread_id,
                result.message_id,
                result.decision,
                result.rule,
                str(result.peak_guardrail_active).lower(),
                str(result.summary_updated).lower(),
                result.reason,
                result.source,
                result.etag,
                result.memento.arc,
            ]
        cells += [error.code, error.message] if error else [None, None]
        cells += [row.row.attempts, row.started_at, row.finished_at]
        return [*cells, result and result.response, message_of(row.row)]
