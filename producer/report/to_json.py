"""Writes a run as one JSON document: what `--json` prints, and every result under `results`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from producer.report.to_jsonl import TurnLines
from shared.runs import RunInfo, TurnRow


class JsonReport:
    """Writes results as they go by, and the numbers after them; only a page is in memory.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._lines = out, TurnLines(info.run)
        self._between = b"\n"
        out.write(b'{"results": [')

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Writes some results, one a line."""
        lines = self._lines.page(rows).rstrip(b"\n")
        if lines:
            self._out.write(self._between + lines.replace(b"\n", b",\n"))
            self._between = b",\n"

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the rest of the document."""
        rest = json.dumps(document, ensure_ascii=False, indent=2)
        self._out.write(b"\n],\n" + rest.removeprefix("{\n").encode() + b"\n")
