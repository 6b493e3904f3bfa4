"""What filters look at in the rows of a queries run."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from producer.items.facts import facts_of_item
from producer.row_filter import RowFacts
from shared.codecs.item_rows import POISON_CODE, ItemRow
from shared.names import Outcome


class _Check(Struct, gc=False, rename={"is_passed": "pass"}):
    is_passed: bool = True


class _Response(Struct, gc=False):
    answer: Any = None


class _Query(Struct, gc=False):
    id: str = ""
    category: str = ""
    checks: dict[str, _Check] = {}
    response: _Response | None = None


class _ErrorLine(Struct, gc=False):
    result: _Query


_query: Final = msgspec.json.Decoder(_Query).decode
_error: Final = msgspec.json.Decoder(_ErrorLine).decode


def facts_of_query(row: ItemRow) -> RowFacts:
    """Returns what is known of a query; its reason is the error, or the checks that failed.

    >>> line = b'{"id":"Q-1","checks":{"must_contain":{"pass":false}},"response":{"answer":"No."}}'
    >>> facts = facts_of_query(ItemRow(0, "f", line))
    >>> facts.id, facts.failed_checks, facts.output
    ('Q-1', ['must_contain'], 'No.')
    """
    facts = facts_of_item(row)
    has_error_line = row.outcome is Outcome.ERROR and row.code != POISON_CODE
    query = _error(row.line).result if has_error_line else _query(row.line)
    facts.id, facts.category = query.id, query.category
    if row.code and row.outcome is not Outcome.ERROR:
        facts.failed_checks = [name for name, check in query.checks.items() if not check.is_passed]
        facts.reason = ", ".join(facts.failed_checks)
    if query.response is not None and isinstance(query.response.answer, str):
        facts.output = query.response.answer
    return facts
