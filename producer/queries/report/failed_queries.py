"""Groups queries that failed by the first check that did, and those without an answer by their error."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from producer.queries.report.check_reasons import FAILED, NO_CHECK, REASON_OF_CHECK, found_by_checks
from producer.queries.report.opened_rows import OpenedQuery, opened
from producer.queries.results import AskedQuery
from producer.report.cells import Size, plain
from producer.report.run_report import FailureExample, FailureGroup, Failures
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun

MOST_FAILURES: Final = 10
"""Failed queries that are shown, and errors that differ; `results --failed` lists all."""
MOST_NAMES: Final = 3
"""Queries that a line of equal errors names."""


@dataclass(slots=True)
class _Group:
    """Failures with the same reason, as they come."""

    number: int = 0
    examples: list[FailureExample] = field(default_factory=list)


class QueryFailures:
    """Collects failed queries by the first check that failed, and those without an answer by their error.

    Args:
        settings: of the run.
    """

    def __init__(self, settings: QueryRun) -> None:
        self._settings = settings
        self._failed, self._errors = defaultdict[str, _Group](_Group), dict[str, _Group]()
        self._shown = self._left = 0

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for query in opened(rows):
            self.add(query)

    def add(self, query: OpenedQuery) -> None:
        """Counts a query that failed or has no answer."""
        if query.result is None or (not query.code and query.result.passed):
            return
        name = plain(query.result.id, Size.CELL)
        if query.code:
            self._add_error(plain(query.explained(self._settings), Size.REASON), name)
        else:
            self._add_failure(query.result, name)

    def failures(self) -> Failures:
        """Returns the groups: the most frequent check first, errors last."""
        failed = sorted(self._failed.items(), key=lambda each: -each[1].number)
        groups = [
            FailureGroup(group.number, "query", [reason], group.examples)
            for reason, group in (*failed, *self._errors.items())
        ]
        return Failures(groups, self._left)

    def _add_failure(self, result: AskedQuery, name: str) -> None:
        """Counts a query under the first check that failed, and shows it while there are few."""
        failed = [check for check in found_by_checks(result) if check.word == FAILED]
        group = self._failed[REASON_OF_CHECK[failed[0].name] if failed else NO_CHECK]
        group.number += 1
        if self._shown < MOST_FAILURES:
            self._shown += 1
            found = plain("; ".join(check.reason for check in failed), Size.REASON)
            group.examples.append(FailureExample(name, found, plain(result.answer, Size.LINE)))
        else:
            self._left += 1

    def _add_error(self, error: str, name: str) -> None:
        """Counts an error, and names the first queries that have it."""
        if error not in self._errors and len(self._errors) >= MOST_FAILURES:
            self._left += 1
            return
        group = self._errors.setdefault(error, _Group())
        group.number += 1
        if len(group.examples) < MOST_NAMES:
            group.examples.append(FailureExample(name))
