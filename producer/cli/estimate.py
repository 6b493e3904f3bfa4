"""Estimates the number of model calls for the turns of a file, before anything is sent."""

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
    called_decisions = CALLED_DECISIONS[live]
    return sum(
        decide(turn, accepted_signals(turn, FROM_REQUEST)).decision in called_decisions
        for turn in decode_turns(lines)
        if turn is not None and turn.role is Role.USER and turn.model_shape is None
    )
