"""Decides threads whose turns a model answers: up to the next question, then on from its answer.

    state, inbox ──► decided turns, a question ──► (the model) ──► the answer, with the same ──► …

It is as pure as the rest of the engine. It runs the flow of `worker.breakpoint.orchestrator` with a model
that has at most one answer. Where the answer is missing, the flow stops before anything has changed and
returns the question. The caller may take any time, park the thread, or crash: the same state gives the same
question again.
"""

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from shared.codecs.turn_batches import ASKED, AVOIDED, CACHED, DUPLICATE, unpack_batch
from shared.codecs.turn_lines import LineWriter
from shared.contracts.turn_vocabulary import Live, Role
from worker.breakpoint.context import (
    RecentMessage,
    append_recent,
    decode_recent,
    encode_recent,
    retrieve_context,
)
from worker.breakpoint.engine import BreakpointDecision
from worker.breakpoint.idempotency import CodedLine, Requests
from worker.breakpoint.lines import LiveLine, encode
from worker.breakpoint.memento import KeptMemento
from worker.breakpoint.model_reply import ReadReply, read_reply
from worker.breakpoint.orchestrator import (
    DecidedTurn,
    Refusal,
    RunPolicy,
    TurnReply,
    affect_signal_of,
    run_turn,
)
from worker.breakpoint.prompt import TurnPrompt, prompt_of
from worker.breakpoint.thread_decider import (
    CODES,
    ERROR_CODE,
    Batch,
    DecidedBlock,
    ThreadDecider,
    ThreadOutcome,
    load_thread,
)
from worker.breakpoint.trace import Event, TracedCall, call_event, retrieval_events
from worker.breakpoint.turn_wire import WireTurn, decode_turns

INTERNAL: Final = "internal"
"""The error code of a turn on which the engine itself failed."""
CALLED_DECISIONS: Final[Mapping[str, frozenset[str]]] = {
    Live.MUST: frozenset({"must"}),
    Live.SHOULD: frozenset({"must", "should"}),
    Live.ALL: frozenset({"must", "should", "skip"}),
}
"""Decisions for which the model is called, by the `--live` setting of the run."""
LIVE_COUNTERS: Final[Mapping[str, str]] = {ASKED: "asked", CACHED: "from_cache", AVOIDED: "avoided"}
"""Names of progress counters, by the letter of a code that they count."""


class OpenTurn(NamedTuple):
    """The question to the model for one turn."""

    batch: int
    """Position of the batch that contains the turn."""
    offset: int
    """Position of the turn in the batch."""
    prompt: TurnPrompt
    """The prompt."""
    item: int
    """Position of the turn in its run."""
    decision: str
    """What was decided of the turn."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The model's answer."""

    text: str
    """Its text."""
    call: TracedCall
    """Its cost and latency."""


class LiveOutcome(NamedTuple):
    """The progress of a thread up to the next question."""

    outcome: ThreadOutcome
    """The turns that are decided, possibly none."""
    question: OpenTurn | None
    """The question to be answered before the next turn can be decided; None if no turn is left."""
    failures: list[Exception]
    """Exceptions of the engine; their turns ended in the error `internal`."""


def decide_live(
    *,
    thread: str,
    state: bytes,
    batches: Sequence[Batch],
    known: MutableMapping[str, bytes],
    answer: ModelAnswer | Refusal | None = None,
) -> LiveOutcome:
    """Decides the waiting turns of a thread up to the first one that the model has to answer.

    Args:
        thread: which conversation.
        state: its stored state; empty for a new thread.
        batches: its inbox, oldest first; it may also contain turns of runs without a model.
        known: as in `worker.breakpoint.thread_decider.decide_thread`.
        answer: to the question returned for the same state and batches; a refusal becomes the turn's error.
    """
    plain = ThreadDecider(load_thread(thread, state), Requests(known))
    decider = _LiveDecider(plain, answer)
    blocks, question = list[DecidedBlock](), None
    for place, batch in enumerate(batches):
        block, unanswered = _decide_batch(decider, batch)
        if block.lines:
            blocks.append(block)
        if unanswered is not None:
            offset = batch.offset + len(block.lines)
            item = unpack_batch(batch.payload)[0][offset]
            question = OpenTurn(place, offset, unanswered.prompt, item, unanswered.decision)
            break
    outcome = ThreadOutcome(plain.state() or state, blocks, plain.requests.new)
    return LiveOutcome(outcome, question, decider.failures)


def _decide_batch(decider: "_LiveDecider", batch: Batch) -> tuple[DecidedBlock, "_UnansweredError | None"]:
    """Decides the turns of a batch up to the first question."""
    indexes, body = unpack_batch(batch.payload)
    end = None if batch.limit is None else batch.offset + batch.limit
    window = slice(batch.offset, end)
    turns = decode_turns(b"\n".join(body.split(b"\n")[window]))
    decider.start_block()
    answers, unanswered = list[CodedLine](), None
    for turn, index in zip(turns, indexes[window], strict=True):
        try:
            answers.append(decider.decide_or_fail(turn, index, batch.policy))
        except _UnansweredError as error:
            unanswered = error
            break
    codes = [code for code, _ in answers]
    dead = [batch.offset + at for at, code in enumerate(codes) if code.startswith(ERROR_CODE)]
    lines = [line for _, line in answers]
    some = indexes[window][: len(lines)]
    return DecidedBlock(batch.offset, some, codes, lines, dead, decider.take_figures(codes)), unanswered


class _UnansweredError(Exception):
    """The flow needs an answer of the model that is not available yet."""

    def __init__(self, prompt: TurnPrompt, decision: BreakpointDecision) -> None:
        super().__init__()
        self.prompt, self.decision = prompt, decision


class _GivenUpError(Exception):
    """The model call was given up; there will be no answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__()
        self.refusal = refusal


@dataclass(slots=True)
class _SingleAnswerModel:
    """The orchestrator's model for one turn."""

    called_decisions: frozenset[str]
    recent: Sequence[RecentMessage]
    answer: ModelAnswer | Refusal | None
    decision: BreakpointDecision = BreakpointDecision.SKIP
    is_avoided: bool = False
    model_answer: ModelAnswer | None = None
    read: ReadReply | None = None
    context: Sequence[str] = ()

    def is_worth_a_call(self, turn: WireTurn, decision: BreakpointDecision) -> bool:
        """Returns whether a user turn without a recorded answer is to be answered."""
        if turn.role is not Role.USER or turn.model_shape is not None:
            return False
        self.decision, self.is_avoided = decision, decision not in self.called_decisions
        return not self.is_avoided

    def retrieve_context(
        self,
        thread_id: str,  # noqa: ARG002 - the port's signature; the thread is at hand
        message: str,  # noqa: ARG002 - as above: what is retrieved does not depend on it
        request_thread_memento: KeptMemento,
    ) -> Sequence[str]:
        """Collects memento and last turns."""
        self.context = retrieve_context(request_thread_memento, self.recent)
        return self.context

    def generate(self, turn: WireTurn, context: Sequence[str], closure: str) -> TurnReply:
        """Returns the answer, or stops the flow with an exception."""
        answer = self.answer
        if answer is None:
            raise _UnansweredError(prompt_of(turn.message, context, closure), self.decision)
        if isinstance(answer, Refusal):
            raise _GivenUpError(answer)
        self.model_answer = answer
        self.read = read = read_reply(answer.text)
        return TurnReply(read.shape, affect_signal_of(turn) or read.affect_signal, read.response)


class _LiveDecider:
    """Decides the turns of one thread, with a model answer for the first that needs one."""

    __slots__ = ("_answer", "_figures", "_plain", "failures")

    def __init__(self, plain: ThreadDecider, answer: ModelAnswer | Refusal | None) -> None:
        self._plain = plain
        self.failures = list[Exception]()
        self._answer = answer
        self._figures = Counter[str]()

    def start_block(self) -> None:
        """Starts a block, which is read on its own."""
        self._plain.lines = LineWriter()

    def decide_or_fail(self, turn: WireTurn | None, index: int, policy: RunPolicy) -> CodedLine:
        """Decides a turn; if the engine fails, only this turn becomes an error."""
        thread = self._plain.thread
        before = thread.count, thread.latest, thread.recent, thread.consumed
        try:
            return self._plain.answer(turn, index, policy, self._decided)
        except (MemoryError, _UnansweredError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the thread's other turns
            thread.count, thread.latest, thread.recent, thread.consumed = before
            self._plain.lines.reset()
            self.failures.append(error)
            message_id = (turn.message_id if turn else None) or f"{thread.thread_id}#{index}"
            refusal = Refusal(INTERNAL, f"the engine failed: {type(error).__name__}")
            return self._plain.refuse(message_id, (turn and turn.ts) or policy.submitted_at, refusal)

    def take_figures(self, codes: Sequence[str]) -> dict[str, int]:
        """Counts what became of calls, for progress displays, and resets the counters."""
        first = "".join(code for code in codes if DUPLICATE not in code)
        figures = {word: first.count(letter) for letter, word in LIVE_COUNTERS.items()} | self._figures
        self._figures.clear()
        return {word: count for word, count in figures.items() if count}

    def _decided(self, turn: WireTurn, index: int, policy: RunPolicy, *, in_full: bool = False) -> CodedLine:
        """Takes a turn through the flow with the model; turns of runs without a model as usual."""
        if not policy.live:
            return self._plain.decide(turn, index, policy, in_full=in_full)
        thread, message_id = self._plain.thread, turn.message_id or f"{turn.thread_id}#{index}"
        recent = decode_recent(thread.recent)
        model = _SingleAnswerModel(CALLED_DECISIONS[policy.live], recent, self._answer)
        try:
            result = run_turn(turn, thread, policy, message_id, model=model)
        except _GivenUpError as refused:
            self._answer = None
            return self._plain.refuse(message_id, turn.ts or policy.submitted_at, refused.refusal)
        if isinstance(result, Refusal):
            return self._plain.refuse(message_id, turn.ts or policy.submitted_at, result)
        more = [("assistant", result.response)] if result.response is not None else []
        thread.recent = encode_recent(append_recent(recent, (turn.role.value, turn.message), *more))
        _, rule, reason = result.verdict
        code = CODES[4 * rule + 2 * result.peak_guardrail_active + result.summary_updated]
        if model.model_answer is not None:
            self._answer = None
            return self._answered(code, message_id, result, model)
        if model.is_avoided:
            code += AVOIDED
        if not in_full:
            why = code, reason, result.source
            return code, self._plain.lines.line(message_id, why, thread.count, result.previous, result.latest)
        return code, self._in_full(message_id, result, None, [])

    def _answered(
        self, code: str, message_id: str, result: DecidedTurn, model: _SingleAnswerModel
    ) -> CodedLine:
        """Encodes the result of a turn that the model answered."""
        assert model.model_answer is not None  # noqa: S101 - the caller has looked
        read = model.read
        call = model.model_answer.call
        if read is not None:
            call = msgspec.structs.replace(call, unread=read.is_unread, invalid_shape=read.has_bad_shape)
        word = "applied" if result.summary_updated else "none"
        if read is not None and not result.summary_updated and (read.shape or read.has_bad_shape):
            word = "invalid" if read.has_bad_shape else "frozen"
        chars = sum(map(len, model.context))
        started, completed = retrieval_events(len(model.context), chars)
        events = [started, completed, call_event(call, shape=word)]
        if not call.cached:
            self._figures["cost_micro_usd"] += round(1e6 * (call.cost_usd or 0.0))
        code += ASKED + CACHED * call.cached
        return code, self._in_full(message_id, result, call, events)

    def _in_full(
        self, message_id: str, result: DecidedTurn, call: TracedCall | None, events: Sequence[Event]
    ) -> bytes:
        """Encodes a result without reference to the one before it."""
        self._plain.lines.reset()
        decision, rule, reason = result.verdict
        thread = self._plain.thread
        line = LiveLine(
            thread.thread_id,
            message_id,
            decision,
            rule,
            result.peak_guardrail_active,
            result.summary_updated,
            reason,
            result.source,
            thread.etag,
            self._plain.encode_memento(result.latest),
            result.response,
            call or msgspec.UNSET,
            events or msgspec.UNSET,
        )
        return encode(line)
