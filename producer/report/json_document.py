"""Writes a run as one JSON document: what `--json` prints, and every result under `results`."""

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from producer.documents import AnyRun, as_json


class JsonDocument:
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

    def end(self, document: AnyRun) -> None:
        """Writes the rest of the document."""
        rest = as_json(document, indent=2)
        self._out.write(b"\n],\n" + rest.removeprefix("{\n").encode() + b"\n")
