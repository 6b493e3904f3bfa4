"""Threads of a namespace over HTTP: their state, a decision that stores nothing, and their removal."""

import asyncio
from contextlib import suppress
from secrets import token_hex
from typing import Final

from msgspec import Raw, Struct

from producer.access import Access
from producer.serve.micro_runs import ServedTurn, served
from producer.serve.turn_bodies import AcceptedTurn
from shared.clock import now_ms
from shared.codecs.turn_batches import pack_batch
from shared.codecs.turn_lines import expand
from shared.errors import ProctorError, RunStateError
from shared.runs import TurnRow
from shared.runs.threads import ThreadStore
from worker.breakpoint.thread_decider import Batch, RunPolicy, decide_thread, public_state, request_ids

REMOVALS: Final = 40
REMOVAL_PAUSE_S: Final = 0.05
"""How often a removal is tried, and the time in between: deciding turns takes some milliseconds."""


class UnknownThreadError(ProctorError):
    """A namespace has no such thread."""

    code = "unknown_thread"


class ConditionError(ProctorError):
    """A thread is in another state than the request wants it to be."""

    code = "etag_conflict"


class ThreadReply(Struct, frozen=True):
    """The state of a thread."""

    threadId: str  # noqa: N815 - the document's own name
    etag: str
    memento: Raw


def read_thread(access: Access, namespace: str, thread: str) -> ThreadReply:
    """Reads the state of a thread.

    Raises:
        UnknownThreadError: there is no such thread.
    """
    etag, memento = public_state(_state(access, namespace, thread))
    return ThreadReply(thread, etag, Raw(memento))


def names_etag(condition: str, etag: str) -> bool:
    """Returns whether `If-Match` or `If-None-Match` is true of an etag; proxies may have made it a weak one.

    >>> [names_etag(condition, "7") for condition in ('"7"', 'W/"6", W/"7"', "*", "7", '"77"', "")]
    [True, True, True, True, False, False]
    """
    named = {each.strip().removeprefix("W/").strip('"') for each in condition.split(",")}
    return bool(named & {"*", etag})


def remove_thread(access: Access, namespace: str, thread: str, condition: str) -> None:
    """Removes a thread, and what its requests were answered.

    Args:
        access: access to Redis.
        namespace: of the thread.
        thread: its id.
        condition: as `If-Match` has it.

    Raises:
        UnknownThreadError: there is no such thread.
        ConditionError: its state is another.
        RunStateError: turns of the namespace are being decided, or one of the thread has just been.
    """
    state = _state(access, namespace, thread)
    etag, _ = public_state(state)
    if not names_etag(condition, etag):
        raise ConditionError(f"the thread is at {etag}, not at {condition}")
    requests = _store(access).request_ids(namespace, {thread})
    access.ledger.forget(namespace, {thread: state}, requests)


async def remove_thread_soon(access: Access, namespace: str, thread: str, condition: str) -> None:
    """Removes a thread at a moment at which no turn of its namespace is being decided.

    Raises:
        RunStateError: there was none for two seconds.
    """
    for _ in range(REMOVALS):
        with suppress(RunStateError):
            await asyncio.to_thread(remove_thread, access, namespace, thread, condition)
            return
        await asyncio.sleep(REMOVAL_PAUSE_S)
    raise RunStateError("turns of the namespace are being decided", hint="send again after a moment")


def decide_only(access: Access, namespace: str, turn: AcceptedTurn, summary_policy: str) -> ServedTurn:
    """Decides a turn on the state that its thread has now, and stores nothing.

    A request that was answered before has its first answer.
    """
    policy = RunPolicy(f"simulated-{token_hex(4)}", now_ms(), summary_policy)
    batch = Batch(policy, 0, pack_batch([0], [turn.line]))
    state = _store(access).state(namespace, turn.thread)
    known = access.ledger.requests(namespace, sorted(request_ids([batch.payload])))
    outcome = decide_thread(thread=turn.thread, state=state, batches=[batch], known=known)
    [block] = outcome.blocks
    [line] = expand(block.codes, block.lines)
    return served(TurnRow(0, block.codes[0], line, 0, 0, 1))


def _state(access: Access, namespace: str, thread: str) -> bytes:
    """Reads the stored state of a thread.

    Raises:
        UnknownThreadError: there is no such thread.
    """
    state = _store(access).state(namespace, thread)
    if not state:
        raise UnknownThreadError(f"there is no thread {thread!r}")
    return state


def _store(access: Access) -> ThreadStore:
    """Returns what reads threads; a caller who waits is told at once that Redis is away."""
    return ThreadStore(access.client, patience_s=0.0)
