"""What a terminal shows of single queries after a run: those that failed, and errors by their message."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from producer.report.cells import plain
from producer.report.queries.check_reasons import failures
from producer.report.queries.opened_rows import opened
from producer.tables import hanging
from shared.codecs.item_rows import ItemRow

MOST_FAILURES: Final = 10
"""Failed queries that are shown, and errors that differ; `results --failed` lists all."""
MOST_NAMES: Final = 3
"""Queries that a line of equal errors names."""
NAME_CHARS: Final = 60
MESSAGE_CHARS: Final = 300


class QueryFailures:
    """Collects failed queries one by one, and equal errors as one line with their count."""

    def __init__(self) -> None:
        self._run = ""
        self._failed = list[str]()
        self._errors: dict[str, list[str]] = {}
        self._numbers: dict[str, int] = {}
        self._left = 0

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for query in opened(rows):
            if query.result is None or (not query.code and query.result["overall_pass"]):
                continue
            name = plain(query.result["id"], NAME_CHARS)
            if query.code:
                self._add_error(plain(query.error, MESSAGE_CHARS), name)
            elif len(self._failed) < MOST_FAILURES:
                why = plain("; ".join(failures(query.result)), MESSAGE_CHARS)
                self._failed.append(f"✗ {name}  {why}")
            else:
                self._left += 1

    def end(self, document: Mapping[str, Any]) -> None:
        """Keeps the run's id, for the command that lists the rest."""
        self._run = document["run_id"]

    def text(self) -> str:
        """Writes them one under the other; empty when nothing failed."""
        lines = list(self._failed)
        for error, names in self._errors.items():
            number = self._numbers[error]
            some = ", ".join(names) + (f" and {number - len(names):,} more" if number > len(names) else "")
            lines.append(f"✗ {number:,} x {error} ({some})" if number > 1 else f"✗ {some}  {error}")
        if self._left:
            lines.append(f"{self._left:,} more: `proctor results {self._run} --failed`")
        return "\n".join(map(hanging, lines))

    def _add_error(self, error: str, name: str) -> None:
        """Counts an error, and names the first queries that have it."""
        if error not in self._errors and len(self._errors) >= MOST_FAILURES:
            self._left += 1
            return
        names = self._errors.setdefault(error, [])
        self._numbers[error] = self._numbers.get(error, 0) + 1
        if len(names) < MOST_NAMES:
            names.append(name)
