"""What a terminal shows of single queries after a run: failures by reason, and errors by message."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from producer.queries.documents import QueriesRun
from producer.queries.report.check_reasons import FAILED, NO_CHECK, REASON_OF_CHECK, found_by_checks
from producer.queries.report.opened_rows import opened
from producer.queries.results import AskedQuery
from producer.report.cells import Size, plain
from producer.report.interfaces import Paint, unpainted
from producer.tables import hanging, terminal_width
from producer.text import grouped
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun

MOST_FAILURES: Final = 10
"""Failed queries that are shown, and errors that differ; `results --failed` lists all."""
MOST_NAMES: Final = 3
"""Queries that a line of equal errors names."""
ANSWER: Final = "  → "
"""Before the beginning of an answer, which never takes more than its line."""
ANSWER_CHARS: Final = 100
"""A line of a wide terminal; a narrow one takes less."""
ANSWER_MARGIN: Final = len(f"    {ANSWER}...")
LEAST_ANSWER: Final = 20
"""Characters of an answer, however narrow the terminal is."""


class _Failure(NamedTuple):
    """A query that failed."""

    line: str
    """Its name, and what its checks found."""
    answer: str
    """The beginning of the answer; empty without one."""


class QueryFailures:
    """Collects failed queries by the first check that failed, and equal errors as one line with a count.

    Args:
        settings: of the run.
    """

    def __init__(self, settings: QueryRun) -> None:
        self._settings = settings
        self._run = ""
        self._failed: dict[str, list[_Failure]] = {}
        self._failures = Counter[str]()
        self._errors: dict[str, list[str]] = {}
        self._numbers: dict[str, int] = {}
        self._left = 0

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for query in opened(rows):
            if query.result is None or (not query.code and query.result.passed):
                continue
            name = plain(query.result.id, Size.CELL)
            if query.code:
                self._add_error(plain(query.explained(self._settings), Size.REASON), name)
            else:
                self._add_failure(query.result, name)

    def end(self, document: QueriesRun) -> None:
        """Keeps the run's id, for the command that lists the rest."""
        self._run = document.run_id

    def text(self, paint: Paint = unpainted) -> str:
        """Writes them one under the other, the most frequent check first; empty when nothing failed."""
        lines = list[str]()
        for reason, number in self._failures.most_common():
            lines.append(grouped(reason, number, "query"))
            for failure in self._failed[reason]:
                lines.append(f"    {hanging(failure.line, ' ' * 6)}")
                if failure.answer:
                    lines.append(f"    {ANSWER}{failure.answer}")
        for error, names in self._errors.items():
            number = self._numbers[error]
            some = ", ".join(names) + (f" and {number - len(names):,} more" if number > len(names) else "")
            lines += [hanging(grouped(error, number, "query")), f"    {some}"]
        if self._left:
            lines.append(f"{self._left:,} more: `proctor results {self._run} --failed`")
        marked = (line.startswith("✗") for line in lines)
        return "\n".join(
            paint("✗", "red") + line[1:] if mark else line for mark, line in zip(marked, lines, strict=True)
        )

    def _add_failure(self, result: AskedQuery, name: str) -> None:
        """Counts a query under the first check that failed, and names it while there are few."""
        failed = [check for check in found_by_checks(result) if check.word == FAILED]
        reason = REASON_OF_CHECK[failed[0].name] if failed else NO_CHECK
        self._failures[reason] += 1
        shown = self._failed.setdefault(reason, [])
        if self._failures.total() <= MOST_FAILURES:
            line = plain(f"{name} {'; '.join(check.reason for check in failed)}", Size.REASON)
            answer = plain(result.answer, _room())
            shown.append(_Failure(line, answer))
        else:
            self._left += 1

    def _add_error(self, error: str, name: str) -> None:
        """Counts an error, and names the first queries that have it."""
        if error not in self._errors and len(self._errors) >= MOST_FAILURES:
            self._left += 1
            return
        names = self._errors.setdefault(error, [])
        self._numbers[error] = self._numbers.get(error, 0) + 1
        if len(names) < MOST_NAMES:
            names.append(name)


def _room() -> int:
    """Returns how many characters of an answer stand in a line."""
    return max(LEAST_ANSWER, min(ANSWER_CHARS, terminal_width() - ANSWER_MARGIN))
