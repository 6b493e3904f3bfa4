"""Writes a run of single items as CSV: the columns that all kinds have, then those of the kind."""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from producer.report.cells import csv_lines
from producer.report.items.opened_rows import cells_of, columns_of, opened
from shared.codecs.item_rows import ItemRow
from shared.runs import RunInfo


class ItemsCsvReport:
    """Writes rows as they go by.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._kind = out, info.kind
        out.write(csv_lines([columns_of(info.kind)]))

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Writes some rows."""
        self._out.write(csv_lines(cells_of(self._kind, item) for item in opened(rows)))

    def end(self, document: Mapping[str, Any]) -> None:
        """Has nothing to add."""
