"""Writes a run of single items as Markdown: the counts, and the first items."""

from collections.abc import Sequence
from typing import Any, BinaryIO, Final

from producer.items.documents import ItemsRun
from producer.items.report.opened_rows import COLUMNS, cells_of, opened
from producer.items.report.terminal import headline, outcome
from producer.report.cells import Size, markdown
from producer.report.run_verdict import verdict_with
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
        run, columns = self._info.run, (*COLUMNS, *self._columns)
        verdict = verdict_with(document, outcome(document))
        lines = [f"# {markdown(str(verdict))}", ""]
        if verdict.why:
            lines += [markdown(" ".join(verdict.why)), ""]
        lines += [
            f"Run {markdown(run)}, {headline(document)}.",
            "",
        ]
        lines += ["| outcome | items |", "| --- | --- |"]
        lines += [f"| {word} | {number:,} |" for word, number in document.counts.named().items()]
        lines += ["", f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
        lines += [f"| {' | '.join(markdown(str(cell), Size.REASON) for cell in row)} |" for row in self._rows]
        left = document.counts.total - len(self._rows)
        if left > 0:
            lines += ["", f"{left:,} more: `proctor results {run}`."]
        self._out.write("\n".join([*lines, ""]).encode(errors="replace"))
