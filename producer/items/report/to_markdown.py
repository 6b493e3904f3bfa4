"""Lists the first items of a run in Markdown, for kinds without a report of their own."""

from collections.abc import Sequence
from typing import Any, BinaryIO, Final

from producer.items.documents import ItemsRun
from producer.items.report.opened_rows import COLUMNS, cells_of, opened
from producer.items.report.run_report import run_report
from producer.report.cells import Size, markdown, markdown_table
from producer.report.to_markdown import markdown_report
from shared.codecs.item_rows import ItemRow
from shared.runs import RunInfo

SHOWN: Final = 200
"""First items that are listed; `proctor results` shows all."""


class ItemsMarkdownReport:
    """Keeps the first rows and writes everything at the end.

    Args:
        out: where to.
        info: the run.
        columns: keys of a result that follow `COLUMNS`.
    """

    def __init__(self, out: BinaryIO, info: RunInfo, columns: Sequence[str]) -> None:
        self._out, self._info, self._columns = out, info, columns
        self._rows = list[list[Any]]()

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Keeps the rows that are shown."""
        first = opened(rows[: SHOWN - len(self._rows)])
        self._rows += [cells_of(self._info.kind, item, self._columns) for item in first]

    def end(self, document: ItemsRun) -> None:
        """Writes the report."""
        rows = ([markdown(str(cell), Size.REASON) for cell in row] for row in self._rows)
        items = ["## Items", markdown_table((*COLUMNS, *self._columns), rows)]
        left = document.counts.total - len(self._rows)
        if left > 0:
            items.append(f"{left:,} more: `proctor results {self._info.run}`")
        self._out.write(markdown_report(run_report(document), items))
