"""Counts what a run of live turns is going to send: the engine decides which turns a model will answer."""

import os
from collections.abc import Iterator
from typing import Final

from producer.forecasts import Forecast, missing_keys, model_warnings
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.text import plural
from producer.turns.load import load_turns
from shared.contracts.live_turns import LiveRun
from shared.contracts.turn_vocabulary import Live, Role
from shared.upstream.prices import cost_of
from shared.upstream.usage import Usage, estimate_text_tokens
from worker.breakpoint.live_decisions import CALLED_DECISIONS
from worker.breakpoint.memento import FROM_REQUEST
from worker.breakpoint.orchestrator import accepted_signals, decide
from worker.breakpoint.turn_wire import decode_turns

PROMPT_TOKENS: Final = 350
"""Length of the instructions and the context of a live turn, about."""
ANSWER_TOKENS: Final = 150
"""Assumed length of an answer to a turn."""


def forecast(source: Source, options: SubmitOptions, live: LiveRun) -> Forecast:
    """Returns what a run is going to send.

    The file is read for this alone, and again when it is submitted: it may be larger than the memory.

    Raises:
        InputError: the file breaks its contract.
    """
    turns = calls = texts = 0
    for chunk in load_turns(source, options).chunks:
        for message in called_messages(chunk.content, live.live):
            calls += 1
            texts += estimate_text_tokens(message)
        turns += chunk.item_count
    prompts = calls * PROMPT_TOKENS + texts
    model = live.target.model
    usd = cost_of(model, Usage(prompts, calls * ANSWER_TOKENS), live.prices)
    return Forecast(
        calls,
        f"of {plural(turns, 'turn')}",
        cost_usd=usd,
        answer_tokens=None if usd is None else ANSWER_TOKENS,
        unpriced=[model] if usd is None else [],
        warnings=model_warnings([live.target], os.environ),
        missing=missing_keys([live.target], os.environ),
    )


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
