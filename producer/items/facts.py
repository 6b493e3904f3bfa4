"""What filters look at in rows of single items: how they ended, what they took, why there is no result."""

from typing import Final

import msgspec
from msgspec import Struct

from producer.row_filter import RowFacts
from shared.codecs.item_rows import CACHED, POISON_CODE, POISON_ERROR, ItemRow
from shared.names import Outcome

HEAD: Final = frozenset(("outcome", "latency_ms", "cost_usd", "attempts", "is_cached"))
"""Facts that stand before the line of a row."""


class _Problem(Struct, gc=False):
    code: str
    message: str = ""


class _ErrorLine(Struct, gc=False):
    error: _Problem


_error: Final = msgspec.json.Decoder(_ErrorLine).decode


def facts_of_item(row: ItemRow) -> RowFacts:
    """Returns what is known of any row.

    >>> facts_of_item(ItemRow(0, "x", b'{"error":{"code":"timeout","message":"after 5 s"}}')).error
    'timeout'
    """
    facts = head_of(row)
    if row.code == POISON_CODE:
        facts.error, facts.reason = POISON_ERROR
    elif row.outcome is Outcome.ERROR:
        problem = _error(row.line).error
        facts.error, facts.reason = problem.code, problem.message
    return facts


def head_of(row: ItemRow) -> RowFacts:
    """Returns what stands before the line of a row."""
    return RowFacts(
        status=row.outcome.value,
        outcome=row.outcome.value,
        latency_ms=row.latency_ms,
        cost_usd=row.cost_usd,
        attempts=row.attempts,
        is_cached=CACHED in row.code,
    )
