r"""Decides threads in bulk: batches of input lines in, blocks of result lines and the thread's state out.

This is the hot path of turns, some microseconds each: lines are decoded and encoded by msgspec, and of a
memento only what changed is encoded. The decisions are made by `worker.breakpoint.orchestrator` alone.

    decided turn   {"threadId": …, "messageId": …, "decision": …, …, "memento": {…}, "response": null}, which
                   is stored in the short form of `shared.codecs.turn_lines`
    refused turn   {"error": {"code": …, "message": …}, "result": {…, "decision": null, "rule": null, …}}
    thread         {"count": 3, "memento": {…}, "pointTimesMs": […]}, empty for a new thread; after live turns
                   also "recent", which is passed through unchanged here; with signals that count once
                   also "consumed"
"""

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import msgspec

from shared.clock import iso_utc
from shared.codecs.turn_batches import CODE_OF_DECISION, unpack_batch
from shared.codecs.turn_lines import LineWriter
from worker.breakpoint.engine import DECISION_OF_RULE
from worker.breakpoint.idempotency import CodedLine, Requests, request_ids
from worker.breakpoint.lines import ResultLine, encode, error_line
from worker.breakpoint.memento import KeptMemento, Latest, latest_of, seed
from worker.breakpoint.orchestrator import Refusal, RunPolicy, SignalName, Thread, run_turn
from worker.breakpoint.turn_wire import WireTurn, decode_turns

__all__ = [
    "ERROR_CODE",
    "Batch",
    "DecidedBlock",
    "Refusal",
    "RunPolicy",
    "ThreadOutcome",
    "decide_thread",
    "public_state",
    "refused_line",
    "request_ids",
    "tally_of",
]

INVALID_TURN: Final = "invalid_turn"
ERROR_CODE: Final = "x0"


@dataclass(frozen=True, slots=True)
class Batch:
    """Turns of one thread in one chunk of one run."""

    policy: RunPolicy
    """Settings of their run."""
    offset: int
    """How many of them are decided already."""
    payload: bytes
    """Their lines, as `shared.codecs.turn_batches.pack_batch` wrote them."""
    limit: int | None = None
    """Decide at most so many; None for all."""


class DecidedBlock(NamedTuple):
    """The results of a batch, to be packed with the worker's times."""

    offset: int
    """Position in the batch of the first turn."""
    indexes: list[int]
    """Position of each turn in the input."""
    codes: list[str]
    """One code per turn, as in `shared.codecs.turn_batches`."""
    lines: list[bytes]
    """One per turn, as stored: `shared.codecs.turn_lines.expand` gives the JSON documents."""
    dead: list[int]
    """Positions in the batch of turns that ended in an error."""
    figures: Mapping[str, int] = MappingProxyType({})
    """Counts for progress displays that its codes do not show."""


class ThreadOutcome(NamedTuple):
    """The results of deciding a thread's waiting turns."""

    state: bytes
    """The thread's state to be stored."""
    blocks: list[DecidedBlock]
    """One for each batch, in order."""
    requests: list[tuple[str, bytes]]
    """`clientRequestId`s answered for the first time, with what a repetition is answered from."""


_NO_RECENT: Final = msgspec.Raw()
"""A thread without live turns."""


class _State(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """The stored state of a thread."""

    count: int
    memento: msgspec.Raw
    point_times_ms: list[int]
    recent: msgspec.Raw = _NO_RECENT
    consumed: tuple[SignalName, ...] = ()


_decode_state: Final = msgspec.json.Decoder(_State).decode
_decode_memento: Final = msgspec.json.Decoder(KeptMemento).decode


CODES: Final = {
    4 * rule + 2 * frozen + applied: f"{CODE_OF_DECISION[decision]}{rule}{'f' * frozen}{'u' * applied}"
    for rule, decision in DECISION_OF_RULE.items()
    for frozen in (False, True)
    for applied in (False, True)
}
"""The code of every possible outcome, by rule, frozen and applied as one number."""
TALLY_COUNTERS: Final[Mapping[str, str]] = {
    **{letter: decision for decision, letter in CODE_OF_DECISION.items()},
    "x": "error",
    "f": "frozen",
    "u": "updated",
    "d": "duplicate",
}
"""Names of progress counters, by the letter of a code that they count."""


def tally_of(codes: Iterable[str]) -> dict[str, int]:
    """Counts outcomes for progress displays.

    >>> tally_of(["m2fu", "x0", "m1"])
    {'must': 2, 'error': 1, 'frozen': 1, 'updated': 1}
    """
    letters = "".join(codes)
    return {word: count for letter, word in TALLY_COUNTERS.items() if (count := letters.count(letter))}


def decide_thread(
    *, thread: str, state: bytes, batches: Sequence[Batch], known: MutableMapping[str, bytes]
) -> ThreadOutcome:
    """Decides the waiting turns of one thread in order.

    Args:
        thread: which conversation.
        state: its stored state; empty for a new thread.
        batches: its inbox, oldest first; it may contain turns of several runs.
        known: answered requests of the namespace, among those that `request_ids` finds in the batches;
            requests answered by this call are added.
    """
    decider = ThreadDecider(load_thread(thread, state), Requests(known))
    blocks = [_decide_batch(decider, batch) for batch in batches]
    return ThreadOutcome(decider.state() or state, blocks, decider.requests.new)


def public_state(state: bytes) -> tuple[str, bytes]:
    """Reads etag and memento, as users see them, from a stored state that is not empty."""
    stored = _decode_state(state)
    return str(stored.count), bytes(stored.memento)


def refused_line(thread: str, message_id: str, refusal: Refusal, *, state: bytes, now_ms: int) -> bytes:
    """Writes the result line of a turn that was never decided.

    Args:
        thread: which conversation.
        message_id: which turn.
        refusal: why.
        state: the thread's stored state; empty for a new thread.
        now_ms: the time of a new thread's empty memento, epoch milliseconds.
    """
    etag, memento = public_state(state) if state else ("0", encode(seed(thread, iso_utc(now_ms)).memento))
    return error_line(thread, message_id, *refusal, etag=etag, memento=msgspec.Raw(memento))


def _decide_batch(decider: "ThreadDecider", batch: Batch) -> DecidedBlock:
    """Decides the turns of one batch, or as many of them as it allows."""
    indexes, body = unpack_batch(batch.payload)
    if batch.offset or batch.limit is not None:
        end = None if batch.limit is None else batch.offset + batch.limit
        indexes = indexes[batch.offset : end]
        body = b"\n".join(body.split(b"\n")[batch.offset : end])
    policy, answer = batch.policy, decider.answer
    decider.lines = LineWriter()  # a block is read on its own
    answers = [answer(turn, index, policy) for turn, index in zip(decode_turns(body), indexes, strict=True)]
    codes = [code for code, _ in answers]
    dead = [batch.offset + at for at, code in enumerate(codes) if code == ERROR_CODE]
    return DecidedBlock(batch.offset, indexes, codes, [line for _, line in answers], dead)


def load_thread(thread_id: str, state: bytes) -> Thread:
    """Reads the stored state of a thread."""
    if not state:
        return Thread(thread_id)
    stored = _decode_state(state)
    latest = latest_of(_decode_memento(stored.memento), stored.point_times_ms)
    return Thread(thread_id, stored.count, latest, stored.recent, stored.consumed)


class Decide(Protocol):
    """Takes a turn through the flow."""

    def __call__(self, turn: WireTurn, index: int, policy: RunPolicy, *, in_full: bool = False) -> CodedLine:
        """Returns its result; one that duplicates will receive is written in full."""


class ThreadDecider:
    """Decides the turns of one thread, one after the other."""

    __slots__ = ("_encoded", "_latest", "lines", "requests", "thread")

    def __init__(self, thread: Thread, requests: Requests) -> None:
        self.requests = requests
        self.lines = LineWriter()
        self.thread = thread
        self._latest: Latest | None = None
        self._encoded = msgspec.Raw()

    def answer(
        self, turn: WireTurn | None, index: int, policy: RunPolicy, decide: Decide | None = None
    ) -> CodedLine:
        """Answers a turn: with the first answer to its request, or by deciding it.

        Args:
            turn: the turn; None for a line that is none.
            index: its position in the input.
            policy: the settings of its run.
            decide: takes it through the flow; None: `decide`.
        """
        if turn is None:
            refusal = Refusal(INVALID_TURN, "the line does not fit the contract of turns")
            return self.refuse(f"{self.thread.thread_id}#{index}", policy.submitted_at, refusal)
        if turn.client_request_id is None:
            return self.decide(turn, index, policy) if decide is None else decide(turn, index, policy)
        item = f"{policy.run}:{index}"
        earlier = self.requests.find(turn, item)
        if isinstance(earlier, Refusal):
            message_id = turn.message_id or f"{turn.thread_id}#{index}"
            return self.refuse(message_id, turn.ts or policy.submitted_at, earlier)
        if earlier is None:
            earlier = (decide or self.decide)(turn, index, policy, in_full=True)
            if earlier[0] != ERROR_CODE:
                self.requests.store(turn, item, earlier)
        return earlier

    def state(self) -> bytes:
        """Encodes the thread's state for storage; empty if it has no memento yet."""
        latest = self.thread.latest
        if latest is None:
            return b""
        thread = self.thread
        return encode(
            _State(
                thread.count,
                self.encode_memento(latest),
                list(latest.point_times_ms),
                thread.recent or _NO_RECENT,
                thread.consumed,
            )
        )

    def decide(self, turn: WireTurn, index: int, policy: RunPolicy, *, in_full: bool = False) -> CodedLine:
        """Takes a turn through the flow; a result that duplicates will receive is written in full."""
        thread = self.thread
        message_id = turn.message_id or f"{turn.thread_id}#{index}"
        result = run_turn(turn, thread, policy, message_id)
        if isinstance(result, Refusal):
            return self.refuse(message_id, turn.ts or policy.submitted_at, result)
        decision, rule, reason = result.verdict
        frozen, applied = result.peak_guardrail_active, result.summary_updated
        code = CODES[4 * rule + 2 * frozen + applied]
        if not in_full and result.response is None:
            reasoning = code, reason, result.source
            return code, self.lines.line(message_id, reasoning, thread.count, result.previous, result.latest)
        self.lines.reset()
        line = ResultLine(
            thread.thread_id,
            message_id,
            decision,
            rule,
            frozen,
            applied,
            reason,
            result.source,
            thread.etag,
            self.encode_memento(result.latest),
            result.response,
        )
        return code, encode(line)

    def refuse(self, message_id: str, now_iso: str, refusal: Refusal) -> CodedLine:
        """Writes why a turn has no decision, with the unchanged state of the thread."""
        thread = self.thread
        memento = self.encode_memento(thread.latest or seed(thread.thread_id, now_iso))
        code, message = refusal
        return ERROR_CODE, error_line(
            thread.thread_id, message_id, code, message, etag=thread.etag, memento=memento
        )

    def encode_memento(self, latest: Latest) -> msgspec.Raw:
        """Encodes a memento, unless it is the one that was encoded last."""
        if latest is not self._latest:
            self._encoded = msgspec.Raw(encode(latest.memento))
            self._latest = latest
        return self._encoded
