"""Which turns of a file a model will answer, decided by the engine without a call."""

from collections.abc import Iterator

from shared.contracts.turn_vocabulary import Live, Role
from worker.breakpoint.live_decisions import CALLED_DECISIONS
from worker.breakpoint.memento import FROM_REQUEST
from worker.breakpoint.orchestrator import accepted_signals, decide
from worker.breakpoint.turn_wire import decode_turns


def calls_of(lines: bytes, live: Live) -> int:
    r"""Counts the turns for which the model will be called.

    Exact except for signals of mementos that are ignored, repeated requests and stale tokens.

    Args:
        lines: checked turns, one a line.
        live: which decisions are worth a call.

    >>> calls_of(b'{"threadId":"t","message":"Rome?"}\n{"threadId":"t","message":"ok"}', Live.SHOULD)
    1
    """
    return sum(1 for _ in called_messages(lines, live))


def called_messages(lines: bytes, live: Live) -> Iterator[str]:
    """Yields the messages of the turns for which the model will be called; see `calls_of`."""
    called_decisions = CALLED_DECISIONS[live]
    for turn in decode_turns(lines):
        is_open = turn is not None and turn.role is Role.USER and turn.model_shape is None
        if turn is not None and is_open:
            decision = decide(turn, accepted_signals(turn, FROM_REQUEST)).decision
            if decision in called_decisions:
                yield turn.message
