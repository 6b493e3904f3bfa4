"""Writes the result of a poisoned turn: every worker that tried it died, so none could write one.

Such a turn ends in error with its thread's state as it stood. The ledger stores what it has, the input line
and that state; this puts the two into the form of every other refused turn.
"""

from typing import Final

from shared.runs import TurnRow
from shared.runs.pages import POISONED
from worker.breakpoint.codec import refused_line
from worker.breakpoint.orchestrator import Refusal
from worker.breakpoint.turn_wire import decode_turns

REFUSAL: Final = Refusal("poison", "every worker that tried this turn was lost")
"""Error code and message of such a turn."""


def result_line(row: TurnRow) -> bytes:
    """Returns the stored JSON of a row, written now if no worker could."""
    return _poisoned(row) if row.code == POISONED else row.line


def _poisoned(row: TurnRow) -> bytes:
    """Writes the line of a poisoned turn in the form of every other error."""
    raw, _, state = row.line.partition(b"\n")
    [turn] = decode_turns(raw)
    thread = turn.thread_id if turn else ""
    message_id = (turn.message_id if turn else None) or f"{thread}#{row.index}"
    return refused_line(thread, message_id, REFUSAL, state=state, now_ms=row.finished_ms)
