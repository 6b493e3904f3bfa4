"""Cases against models in the HTML report: which fail everywhere, and which only one model gets wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from producer.report.cases.opened_rows import OpenedCase
from producer.report.cells import plain
from shared.names import Outcome

MOST_CELLS: Final = 20_000
"""Cells that are counted; cases that come later are not in the table."""
MOST_ROWS: Final = 100
"""Cases that are shown."""
NAME_CHARS: Final = 60
ABSENT: Final = "·"

_Key = tuple[int, str]
"""A case, and the prompt that it was rendered by."""


@dataclass(slots=True)
class _Count:
    """One case put to one model."""

    passed: int = 0
    tries: int = 0
    place: int = 0
    """The item to look at: the first that did not pass, or else the first."""

    def add(self, place: int, *, is_passed: bool) -> None:
        """Counts a try."""
        if not self.tries or (not is_passed and self.passed == self.tries):
            self.place = place
        self.tries += 1
        self.passed += is_passed


class Cell(NamedTuple):
    """One cell, ready to be shown."""

    text: str
    tone: str = "quiet"
    share: float | None = None
    """Of the tries that passed."""
    link: str = ""


class Row(NamedTuple):
    """One case."""

    number: int
    name: str
    missed: int
    """Models that did not pass all its tries."""
    cells: Sequence[Cell]


class Matrix:
    """Counts verdicts by case and model; memory is bounded."""

    def __init__(self) -> None:
        self._counts: dict[_Key, dict[str, _Count]] = {}
        self._names: dict[_Key, str] = {}
        self._cells = 0

    def add(self, case: OpenedCase) -> None:
        """Counts a case."""
        if case.row.outcome is Outcome.SKIPPED:
            return
        item = case.item
        key = (item.case, item.prompt_id or "")
        models = self._counts.get(key, {})
        if item.model not in models:
            if self._cells >= MOST_CELLS:
                return
            self._cells += 1
            models[item.model] = _Count()
            self._counts[key] = models
            parts = (str(item.case + 1), item.id, item.prompt_id)
            self._names[key] = " · ".join(part for part in parts if part)
        models[item.model].add(case.row.index, is_passed=case.row.outcome is Outcome.PASSED)

    def rows(self, models: Sequence[str]) -> tuple[list[Row], int]:
        """Returns the cases that not every model passed, those that most models miss first.

        Args:
            models: the columns.

        Returns:
            The rows that are shown, and how many more there are; none where there is nothing to compare.
        """
        missed = {at: sum(c.passed < c.tries for c in found.values()) for at, found in self._counts.items()}
        wanted = sorted((at for at in missed if missed[at]), key=lambda at: (-missed[at], at))
        if len(models) < 2:  # noqa: PLR2004 - one model is compared with nothing
            return [], 0
        rows = [
            Row(at[0] + 1, plain(self._names[at], NAME_CHARS), missed[at], _cells(self._counts[at], models))
            for at in wanted[:MOST_ROWS]
        ]
        return rows, len(wanted) - len(rows)


def _cells(found: Mapping[str, _Count], models: Sequence[str]) -> list[Cell]:
    """Writes the cells of one case."""
    return [_cell(found[model]) if model in found else Cell(ABSENT) for model in models]


def _cell(count: _Count) -> Cell:
    """Writes a cell: a mark, or how many of the tries passed.

    >>> _cell(_Count(1, 1, 4)), _cell(_Count(0, 1, 4)).text, _cell(_Count(1, 3, 4)).text
    (Cell(text='✓', tone='good', share=1.0, link='#i5'), '✗', '1 of 3')
    """
    is_good, is_bad = count.passed == count.tries, not count.passed
    mark = "✓" if is_good else "✗"
    text = mark if count.tries == 1 else f"{count.passed} of {count.tries}"
    tone = "good" if is_good else "bad" if is_bad else "warn"
    return Cell(text, tone, count.passed / count.tries, f"#i{count.place + 1}")
