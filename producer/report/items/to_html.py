"""Writes a run of single items as one HTML file that needs nothing else: counts, and a table of the items."""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Final

from producer.report.html.page import Tile, begin, end, fill
from producer.report.html.spool import Spool
from producer.report.items.opened_rows import cells_of, columns_of, opened
from producer.report.items.terminal import headline, outcomes_of
from shared.codecs.item_rows import ItemRow
from shared.runs import RunInfo

TEMPLATE: Final = "items/page.html.j2"
TONES: Final = {"passed": "good", "failed": "bad", "error": "bad", "skipped": "warn"}


class ItemsHtmlReport:
    """Keeps the rows of the table on disk, and writes them behind the counts.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info, self._rows = out, info, Spool()

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for item in opened(rows):
            self._rows.add(0, fill(TEMPLATE, "row", cells_of(self._info.kind, item)))

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the page."""
        counts = outcomes_of(document["counts"])
        tiles = [Tile(word, f"{number:,}", "", TONES.get(word, "")) for word, number in counts.items()]
        is_good = None if self._info.duration_ms is None else document["exit"] == 0
        about = self._info.source
        self._out.write(begin(self._info.run, headline(document), is_good=is_good, tiles=tiles, about=about))
        self._out.write(fill(TEMPLATE, "head", columns_of(self._info.kind)))
        for _, row in self._rows.pieces():
            self._out.write(row)
        self._rows.close()
        self._out.write(fill(TEMPLATE, "foot"))
        self._out.write(end([("run", self._info.run), ("source", self._info.source)]))
