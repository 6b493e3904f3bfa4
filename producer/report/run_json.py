"""Writes a run as one JSON document: what `--json` prints, and every result under `results`."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from producer.report.items_jsonl import item_line
from producer.report.turns.to_jsonl import TurnLines
from shared.codecs.item_rows import ItemRow
from shared.runs import RunInfo, TurnRow


class _Document:
    """Writes results as they go by, and the numbers after them; only a page is in memory.

    Args:
        out: where to.
        lines_of: writes some rows as JSON, one a line.
    """

    def __init__(self, out: BinaryIO, lines_of: Callable[[Sequence[Any]], bytes]) -> None:
        self._out, self._lines_of = out, lines_of
        self._between = b"\n"
        out.write(b'{"results": [')

    def page(self, rows: Sequence[Any]) -> None:
        """Writes some results, one a line."""
        lines = self._lines_of(rows).rstrip(b"\n")
        if lines:
            self._out.write(self._between + lines.replace(b"\n", b",\n"))
            self._between = b",\n"

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the rest of the document."""
        rest = json.dumps(document, ensure_ascii=False, indent=2)
        self._out.write(b"\n],\n" + rest.removeprefix("{\n").encode() + b"\n")


class JsonReport:
    """Writes a turns run.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._document = _Document(out, TurnLines(info.run).page)

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Writes some results."""
        self._document.page(rows)

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the rest of the document."""
        self._document.end(document)


class ItemsJsonReport:
    """Writes a cases run.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._document = _Document(out, lambda rows: b"".join([item_line(info, row) for row in rows]))

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Writes some results."""
        self._document.page(rows)

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the rest of the document."""
        self._document.end(document)
