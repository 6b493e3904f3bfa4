"""Writes the result of a poisoned turn: every worker that tried it died, so none could write one.

Such a turn ends in error with its thread's state as it stood. The ledger stores what it has, the input line
and that state; this puts the two into the form of every other refused turn.
"""

from typing import Final

from msgspec import Raw
from msgspec.json import Encoder

from shared.clock import iso_utc
from shared.runs import TurnRow
from shared.runs.pages import POISONED
from worker.breakpoint.codec import ErrorBody, ErrorLine, ResultLine, public_state
from worker.breakpoint.memento import FROM_STORE, seed
from worker.breakpoint.wire import decode_turns

POISON: Final = "poison"
"""Error code of such a turn."""
REASON: Final = "every worker that tried this turn was lost"
"""Its error message."""

_encode = Encoder().encode


def result_line(row: TurnRow) -> bytes:
    """Returns the stored JSON of a row, written now if no worker could."""
    return _poisoned(row) if row.code == POISONED else row.line


def _poisoned(row: TurnRow) -> bytes:
    """Writes the line of a poisoned turn in the form of every other error."""
    raw, _, state = row.line.partition(b"\n")
    [turn] = decode_turns(raw)
    thread = turn.thread_id if turn else ""
    message_id = (turn.message_id if turn else None) or f"{thread}#{row.index}"
    if state:
        etag, memento = public_state(state)
    else:
        etag, memento = "0", _encode(seed(thread, iso_utc(row.finished_ms)).memento)
    result = ResultLine(
        thread,
        message_id,
        None,
        None,
        peak_guardrail_active=False,
        summary_updated=False,
        reason=REASON,
        source=FROM_STORE,
        etag=etag,
        memento=Raw(memento),
    )
    return _encode(ErrorLine(ErrorBody(POISON, REASON), result))
