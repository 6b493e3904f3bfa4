"""Writes a run of single items as CSV: the columns that all kinds have, then those of the kind."""

from collections.abc import Sequence
from typing import BinaryIO

from producer.items.documents import ItemsRun
from producer.items.report.opened_rows import COLUMNS, cells_of, opened
from producer.report.cells import csv_lines
from shared.codecs.item_rows import ItemRow
from shared.runs import RunInfo


class ItemsCsvReport:
    """Writes rows as they go by.

    Args:
        out: where to.
        info: the run.
        columns: keys of a result that follow `COLUMNS`.
    """

    def __init__(self, out: BinaryIO, info: RunInfo, columns: Sequence[str]) -> None:
        self._out, self._kind, self._columns = out, info.kind, columns
        out.write(csv_lines([(*COLUMNS, *columns)]))

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Writes some rows."""
        self._out.write(csv_lines(cells_of(self._kind, item, self._columns) for item in opened(rows)))

    def end(self, document: ItemsRun) -> None:
        """Has nothing to add."""
