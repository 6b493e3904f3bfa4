"""Decides threads whose turns are answered by a model: as far as the next question, and from its answer on.

    state, inbox ──► decided turns, a question ──► (the model) ──► the answer, with the same ──► …

It is as pure as the rest. The flow is `worker.breakpoint.orchestrator`'s, with a model that has at most one
answer: where it has none, the flow is left before anything has changed, and what it would have asked is
handed out. So whoever asks may take its time, park, or die: the same state gives the same question again.
"""

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from shared.codecs.turn_batches import ASKED, AVOIDED, CACHED, DUPLICATE, unpack_batch
from shared.codecs.turn_lines import LineWriter
from shared.contracts.turn_vocabulary import Live, Role
from worker.breakpoint.codec import (
    CODES,
    ERROR_CODE,
    TALLY_WORDS,
    Batch,
    DecidedBlock,
    ThreadOutcome,
    Visit,
    load_thread,
)
from worker.breakpoint.context import Said, remember, retrieve_context, said_so_far, stored_form
from worker.breakpoint.engine import BreakpointDecision
from worker.breakpoint.idempotency import Answer, Requests
from worker.breakpoint.lines import LiveLine, encode
from worker.breakpoint.memento import Memento
from worker.breakpoint.model_reply import ReadReply, read_reply
from worker.breakpoint.orchestrator import Refusal, Reply, RunPolicy, Thread, TurnResult, run_turn
from worker.breakpoint.prompt import Prompt, prompt_of
from worker.breakpoint.trace import Call, Event, call_event, retrieval_events
from worker.breakpoint.turn_wire import Turn, decode_turns

INTERNAL: Final = "internal"
"""The error code of a turn on which the engine itself failed."""
WORTH: Final[Mapping[str, frozenset[str]]] = {
    Live.MUST: frozenset({"must"}),
    Live.SHOULD: frozenset({"must", "should"}),
    Live.ALL: frozenset({"must", "should", "skip"}),
}
"""Decisions that are worth a call, by what the run says."""
LIVE_WORDS: Final[Mapping[str, str]] = {ASKED: "asked", CACHED: "from_cache", AVOIDED: "avoided"}
"""Names of progress counters, by the letter of a code that they count."""


class Question(NamedTuple):
    """What the model is to be asked for a turn."""

    batch: int
    """Which of the batches the turn stands in."""
    offset: int
    """Its position there."""
    prompt: Prompt
    """The words."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the model said."""

    text: str
    """Its words."""
    call: Call
    """What they cost."""


class LiveOutcome(NamedTuple):
    """How far a thread came."""

    outcome: ThreadOutcome
    """The turns that are decided, possibly none."""
    question: Question | None
    """What has to be answered before the next one is; None when there is none left."""
    failures: list[Exception]
    """What the engine failed with; its turns ended in the error `internal`."""


def decide_live(
    *,
    thread: str,
    state: bytes,
    batches: Sequence[Batch],
    known: MutableMapping[str, bytes],
    answer: Heard | Refusal | None = None,
) -> LiveOutcome:
    """Decides the waiting turns of a thread up to the first that has to be answered.

    Args:
        thread: which conversation.
        state: its state as the last visit left it; empty for a new thread.
        batches: its inbox, oldest first; turns of runs without a model may stand in it too.
        known: as in `worker.breakpoint.codec.decide_thread`.
        answer: to the question that the same state and batches gave; a refusal gives the turn that error.
    """
    visit = _LiveVisit(load_thread(thread, state), Requests(known), answer)
    blocks, question = list[DecidedBlock](), None
    for place, batch in enumerate(batches):
        block, prompt = _decide_batch(visit, batch)
        if block.lines:
            blocks.append(block)
        if prompt is not None:
            question = Question(place, batch.offset + len(block.lines), prompt)
            break
    outcome = ThreadOutcome(visit.state() or state, blocks, visit.requests.new)
    return LiveOutcome(outcome, question, visit.failures)


def _decide_batch(visit: "_LiveVisit", batch: Batch) -> tuple[DecidedBlock, Prompt | None]:
    """Decides the turns of a batch up to the first question."""
    indexes, body = unpack_batch(batch.payload)
    end = None if batch.limit is None else batch.offset + batch.limit
    window = slice(batch.offset, end)
    turns = decode_turns(b"\n".join(body.split(b"\n")[window]))
    visit.lines = LineWriter()  # a block is read on its own
    answers, prompt = list[Answer](), None
    for turn, index in zip(turns, indexes[window], strict=True):
        try:
            answers.append(visit.settle(turn, index, batch.policy))
        except _UnansweredError as unanswered:
            prompt = unanswered.prompt
            break
    codes = [code for code, _ in answers]
    dead = [batch.offset + at for at, code in enumerate(codes) if code.startswith(ERROR_CODE)]
    lines = [line for _, line in answers]
    block = DecidedBlock(
        batch.offset, indexes[window][: len(lines)], codes, lines, dead, visit.tally_of(codes)
    )
    return block, prompt


class _UnansweredError(Exception):
    """The flow needs an answer that is not there."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__()
        self.prompt = prompt


class _GivenUpError(Exception):
    """There will be no answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__()
        self.refusal = refusal


@dataclass(slots=True)
class _OneAnswer:
    """The orchestrator's model for one turn."""

    worth: frozenset[str]
    said: Sequence[Said]
    answer: Heard | Refusal | None
    is_avoided: bool = False
    heard: Heard | None = None
    read: ReadReply | None = None
    context: Sequence[str] = ()

    def is_worth_a_call(self, turn: Turn, decision: BreakpointDecision) -> bool:
        """Answers user turns that bring no recorded answer."""
        if turn.role is not Role.USER or turn.model_shape is not None:
            return False
        self.is_avoided = decision not in self.worth
        return not self.is_avoided

    def retrieve_context(
        self,
        thread_id: str,  # noqa: ARG002 - the port's signature; the thread is at hand
        message: str,  # noqa: ARG002 - as above: what is retrieved does not depend on it
        request_thread_memento: Memento,
    ) -> Sequence[str]:
        """Collects memento and last turns."""
        self.context = retrieve_context(request_thread_memento, self.said)
        return self.context

    def generate(self, turn: Turn, context: Sequence[str], closure: str) -> Reply:
        """Gives the answer, or leaves the flow."""
        answer = self.answer
        if answer is None:
            raise _UnansweredError(prompt_of(turn.message, context, closure))
        if isinstance(answer, Refusal):
            raise _GivenUpError(answer)
        self.heard = answer
        self.read = read = read_reply(answer.text)
        return Reply(read.shape, turn.affect_signal or read.affect_signal, read.response)


class _LiveVisit(Visit):
    """Answers the turns of one thread, with an answer of the model to the first that needs one."""

    __slots__ = ("_answer", "_figures", "failures")

    def __init__(self, thread: Thread, requests: Requests, answer: Heard | Refusal | None) -> None:
        super().__init__(thread, requests)
        self.failures = list[Exception]()
        self._answer = answer
        self._figures = Counter[str]()

    def settle(self, turn: Turn | None, index: int, policy: RunPolicy) -> Answer:
        """Decides a turn; one on which the engine fails becomes an error and no more."""
        thread = self.thread
        before = thread.count, thread.latest, thread.recent
        try:
            return self.answer(turn, index, policy)
        except (MemoryError, _UnansweredError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the thread's other turns
            thread.count, thread.latest, thread.recent = before
            self.lines.forget()
            self.failures.append(error)
            message_id = (turn.message_id if turn else None) or f"{thread.thread_id}#{index}"
            refusal = Refusal(INTERNAL, f"the engine failed: {type(error).__name__}")
            return self._refused(message_id, (turn and turn.ts) or policy.submitted_at, refusal)

    def tally_of(self, codes: Sequence[str]) -> dict[str, int]:
        """Counts for progress displays; forgets what it has counted."""
        letters = "".join(codes)
        first = "".join(code for code in codes if DUPLICATE not in code)
        tally = {word: letters.count(letter) for letter, word in TALLY_WORDS.items()}
        tally |= {word: first.count(letter) for letter, word in LIVE_WORDS.items()}
        tally |= self._figures
        self._figures.clear()
        return {word: count for word, count in tally.items() if count}

    def _decided(self, turn: Turn, index: int, policy: RunPolicy, *, in_full: bool = False) -> Answer:
        """Takes a turn through the flow with the model; turns of runs without one as ever."""
        if not policy.live:
            return super()._decided(turn, index, policy, in_full=in_full)
        thread, message_id = self.thread, turn.message_id or f"{turn.thread_id}#{index}"
        said = said_so_far(thread.recent)
        model = _OneAnswer(WORTH[policy.live], said, self._answer)
        try:
            result = run_turn(turn, thread, policy, message_id, model=model)
        except _GivenUpError as given_up:
            self._answer = None
            return self._refused(message_id, turn.ts or policy.submitted_at, given_up.refusal)
        if isinstance(result, Refusal):
            return self._refused(message_id, turn.ts or policy.submitted_at, result)
        more = [("assistant", result.response)] if result.response is not None else []
        thread.recent = stored_form(remember(said, (turn.role.value, turn.message), *more))
        _, rule, reason = result.verdict
        code = CODES[4 * rule + 2 * result.peak_guardrail_active + result.summary_updated]
        if model.heard is not None:
            self._answer = None
            return self._answered(code, message_id, result, model)
        if model.is_avoided:
            code += AVOIDED
        if not in_full:
            why = code, reason, result.source
            return code, self.lines.line(message_id, why, thread.count, result.previous, result.latest)
        return code, self._in_full(message_id, result, None, [])

    def _answered(self, code: str, message_id: str, result: TurnResult, model: _OneAnswer) -> Answer:
        """Writes the line of a turn that the model answered."""
        assert model.heard is not None  # noqa: S101 - the caller has looked
        read = model.read
        call = model.heard.call
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
        self, message_id: str, result: TurnResult, call: Call | None, events: Sequence[Event]
    ) -> bytes:
        """Writes a result that stands on its own."""
        self.lines.forget()
        decision, rule, reason = result.verdict
        thread = self.thread
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
            self._memento(result.latest),
            result.response,
            call or msgspec.UNSET,
            events or msgspec.UNSET,
        )
        return encode(line)
