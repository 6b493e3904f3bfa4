"""What a terminal shows of the items of a queries run: the table of results, and failures after a run."""

from collections.abc import Sequence
from typing import Final

import msgspec

from producer.queries.report.check_reasons import failures
from producer.queries.report.failed_queries import QueryFailures
from producer.queries.report.opened_rows import OpenedQuery, opened
from producer.queries.results import AskedQuery
from producer.report.cells import Size, plain
from producer.report.interfaces import Screen
from producer.report.to_terminal import FailureText
from producer.text import latency
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import confidence_of, json_object
from shared.runs import RunInfo

COLUMNS: Final = ("id", "category", "outcome", "confidence", "latency", "why")
"""Of the table of results."""


def table_rows(rows: Sequence[ItemRow]) -> list[list[str]]:
    """Returns results as cells of a table with `COLUMNS`, safe to print."""
    return [_cells(query) for query in opened(rows)]


def _cells(query: OpenedQuery) -> list[str]:
    """Returns the cells of one query."""
    row, result = query.row, query.result
    if result is None:
        baseline = AskedQuery(json_object(msgspec.json.decode(row.line)) if row.line else {})
        return [plain(baseline.id, Size.CELL), "", row.outcome.value, "", "", ""]
    return [
        plain(result.id, Size.CELL),
        plain(result.category, Size.CELL),
        row.outcome.value,
        plain(confidence_of(result.response)[0], Size.CELL),
        "" if result.client_ms is None else latency(result.client_ms),
        plain(query.error or "; ".join(failures(result)), Size.LINE),
    ]


def _failures(info: RunInfo) -> QueryFailures:
    """Begins to group what failed."""
    return QueryFailures(QueryRun.from_snapshot(info.snapshot))


SCREEN: Final = Screen(
    COLUMNS,
    table_rows,
    spare=("confidence", "category"),
    names=("id", "category"),
    right=("latency",),
    failures=_failures,
    details=lambda info, _: FailureText(_failures(info)),
)
"""What a terminal shows of the items of a queries run."""
