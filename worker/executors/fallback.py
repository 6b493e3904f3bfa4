"""Saves a thread on one of whose turns the engine itself failed: that turn gets an error, the rest decisions.

An engine that raises does so each time it sees the same turn, so trying again later mends nothing: the turn
ends with the error code `internal` and stands in the dead set, from where `retry` takes it up after the mend.
It leaves the thread's state as it was, like every turn that ended in an error.
"""

import logging
from collections import Counter
from collections.abc import MutableMapping, Sequence
from typing import Final

from shared.codecs.turn_batches import unpack_batch
from shared.ledger import ClaimedThread
from worker.breakpoint.codec import (
    ERROR_CODE,
    Batch,
    DecidedBlock,
    Refusal,
    ThreadOutcome,
    decide_thread,
    refused_line,
)
from worker.breakpoint.wire import decode_turns

INTERNAL: Final = "internal"
"""The error code of a turn on which the engine failed."""

logger = logging.getLogger(__name__)


def decide_one_by_one(
    claimed: ClaimedThread, batches: Sequence[Batch], known: MutableMapping[str, bytes], error: Exception
) -> ThreadOutcome:
    """Decides the turns of a thread one at a time, and refuses those on which the engine fails.

    Args:
        claimed: the thread as it was claimed.
        batches: what to decide, as it was given to `decide_thread`, which raised.
        known: requests answered before.
        error: what it raised, for the log.
    """
    logger.error("thread decided one by one", extra={"thread_id": claimed.thread}, exc_info=error)
    state, blocks, requests = claimed.memento, [], []
    for batch in batches:
        count = len(unpack_batch(batch.payload)[0])
        end = count if batch.limit is None else min(count, batch.offset + batch.limit)
        turns = []
        for offset in range(batch.offset, end):
            outcome = _decide_one(claimed.thread, state, Batch(batch.policy, offset, batch.payload, 1), known)
            state = outcome.state
            requests += outcome.requests
            turns += outcome.blocks
        blocks.append(_joined(batch.offset, turns))
    return ThreadOutcome(state, blocks, requests)


def _decide_one(thread: str, state: bytes, batch: Batch, known: MutableMapping[str, bytes]) -> ThreadOutcome:
    try:
        return decide_thread(thread=thread, state=state, batches=[batch], known=known)
    except MemoryError:
        raise  # not the turn's fault
    except Exception as error:
        indexes, body = unpack_batch(batch.payload)
        index = indexes[batch.offset]
        logger.exception("engine failed", extra={"run": batch.policy.run, "item": index})
        [turn] = decode_turns(body.split(b"\n")[batch.offset])
        message_id = (turn.message_id if turn else None) or f"{thread}#{index}"
        refusal = Refusal(INTERNAL, f"the engine failed: {type(error).__name__}")
        line = refused_line(thread, message_id, refusal, state=state, now_ms=batch.policy.submitted_ms)
        block = DecidedBlock(batch.offset, [index], [ERROR_CODE], [line], [batch.offset], {"error": 1})
        return ThreadOutcome(state, [block], [])


def _joined(offset: int, turns: Sequence[DecidedBlock]) -> DecidedBlock:
    """Makes one block of single turns that follow each other."""
    tally: Counter[str] = Counter()
    for turn in turns:
        tally.update(turn.tally)
    return DecidedBlock(
        offset,
        [index for turn in turns for index in turn.indexes],
        [code for turn in turns for code in turn.codes],
        [line for turn in turns for line in turn.lines],
        [position for turn in turns for position in turn.dead],
        dict(tally),
    )
